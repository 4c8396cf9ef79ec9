"""One-line mistakes that tests must notice; `tests.campaign.mutants` plants them one at a time."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A mistake."""

    file: str
    old: str  #: occurs once in the file
    new: str
    why: str  #: a test must fail
    tests: tuple[str, ...]  #: which are meant to; arguments of pytest


def _ops(name: str) -> tuple[str, ...]:
    return (f"tests/ops/test_{name}.py",)


def _quantized(name: str) -> tuple[str, ...]:
    return (f"tests/quantized/test_{name}.py",)


_OBSERVERS = ("tests/python/test_quantize_observers.py",)
_OPTIONS = ("tests/python/test_options.py",)
_FOUND = ("tests/faults/test_found.py",)
_FAULTS = ("tests/delegate/test_faults.py",)

FAULTS = (
    # Kernels.
    Fault(
        "kernels/common/heap.cl",
        "if (HEAP_BELOW(context, heap[child], heap[child - 1])) --child;",
        "if (!HEAP_BELOW(context, heap[child - 1], heap[child])) --child;",
        "of equal elements the right child moves up, as in the standard library",
        (*_ops("detection_postprocess"), *_ops("non_max_suppression")),
    ),
    Fault(
        "kernels/detection_postprocess/detection_postprocess.cl",
        "(keys[other] == keys[item] && places[other] < places[item]);",
        "(keys[other] == keys[item] && places[other] > places[item]);",
        "of equal scores the box with the lower index comes first",
        _ops("detection_postprocess"),
    ),
    Fault(
        "kernels/rfft2d/rfft2d.cl",
        "const float2 odd = (float2)(0.5f * (a.y + b.y), 0.5f * (b.x - a.x));",
        "const float2 odd = (float2)(0.5f * (a.y + b.y), 0.5f * (a.x - b.x));",
        "odd elements are divided by the imaginary unit",
        _ops("rfft2d"),
    ),
    Fault(
        "kernels/binary/binary.cl",
        "#define WRAPPED(x) ((VALUE_T)(DST_T)(x))",
        "#define WRAPPED(x) (x)",
        "sums of int16 wrap before their activation",
        _ops("binary"),
    ),
    Fault(
        "kernels/strided_slice/from.cl",
        "return first < 0 ? 0 : first > last ? last : (int)first;",
        "return first < 0 ? 0 : (int)first;",
        "a begin outside of its axis is moved into it",
        _ops("strided_slice"),
    ),
    Fault(
        "kernels/scatter_nd/scatter_nd.cl",
        "int last = count - 1;",
        "int last = count - 2;",
        "of several values for one place the last one counts",
        _ops("scatter_nd"),
    ),
    Fault(
        "kernels/conv3d/conv3d.cl",
        "if (spread < 0 || spread % stride != 0) return -1;",
        "if (spread < 0) return -1;",
        "places between the strides have no source",
        _ops("conv3d"),
    ),
    Fault(
        "kernels/softmax/softmax.cl",
        "shared[mine] = fmax(shared[mine], shared[mine + step]);",
        "shared[mine] = fmin(shared[mine], shared[mine + step]);",
        "the largest element keeps exp from overflowing",
        _ops("softmax"),
    ),
    Fault(
        "kernels/softmax/softmax.cl",
        "STORE(DST_T, dst, c, x - log(sum));",
        "STORE(DST_T, dst, c, x);",
        "the logarithm of softmax is normalised",
        _ops("softmax"),
    ),
    Fault(
        "kernels/conv2d/naive.cl",
        "const int in_x = BORDER(x * stride_w - left + v * dilation_w, in_w);",
        "const int in_x = BORDER(x * stride_w - left + v, in_w);",
        "columns are dilated, too",
        _ops("conv2d"),
    ),
    Fault(
        "kernels/conv2d/naive.cl",
        "const SUM_T a = inside ? LOAD(SRC_T, src, pixel + i) : (SUM_T)src_zero;",
        "const SUM_T a = inside ? LOAD(SRC_T, src, pixel + i) : (SUM_T)0;",
        "integers are padded with what stands for zero",
        _quantized("conv2d"),
    ),
    Fault(
        "kernels/common/pooling.cl",
        "#define POOL_START (-FLT_MAX)",
        "#define POOL_START 0.0f",
        "the maximum of negative numbers is negative",
        _ops("pool"),
    ),
    Fault(
        "kernels/common/pooling.cl",
        "#define POOL_HALF(sum, half) ((sum) > 0 ? (VALUE_T)(half) : (VALUE_T)(-(half)))",
        "#define POOL_HALF(sum, half) ((VALUE_T)(half))",
        "averages of negative integers are rounded away from zero",
        _quantized("pool"),
    ),
    Fault(
        "kernels/pool/window.cl",
        "const int x0 = max(left, 0), x1 = min(left + filter_w, src_w);",
        "const int x0 = max(left, 0), x1 = min(x0 + filter_w, src_w);",
        "a window over the left border is narrower",
        _ops("pool"),
    ),
    Fault(
        "kernels/resize/bilinear.cl",
        "x1 = clamp((int)ceil(x), 0, src_w - 1);",
        "x1 = clamp((int)floor(x) + 1, 0, src_w);",
        "beyond the last column there is nothing to read",
        _ops("resize"),
    ),
    Fault(
        "kernels/topk/topk.cl",
        "const int bits = as_int(value == 0.0f ? 0.0f : value);",
        "const int bits = as_int(value);",
        "0 and -0 are equal, so the first of them comes first",
        _ops("topk"),
    ),
    Fault(
        "kernels/arg_min_max/arg_min_max.cl",
        "(values[other] == values[mine] && indices[other] < indices[mine])) {",
        "(values[other] == values[mine] && indices[other] > indices[mine])) {",
        "of equal elements the first is meant",
        _ops("arg_min_max"),
    ),
    Fault(
        "kernels/gather/gather.cl",
        "if (index >= 0 && index < size) {",
        "if (index >= 0 && index <= size) {",
        "an index behind the end reads other memory",
        _ops("gather"),
    ),
    Fault(
        "kernels/cumsum/cumsum.cl",
        "const ACC_T before = item >= reach ? sums[item - reach] : 0;",
        "const ACC_T before = item > reach ? sums[item - reach] : 0;",
        "a sum lacks an element",
        _ops("cumsum"),
    ),
    Fault(
        "kernels/reduce/quantized_product.cl",
        "int product = LOAD(SRC_T, src, 0) - src_zero;",
        "int product = LOAD(SRC_T, src, 0);",
        "the first factor has a zero point as others have",
        _quantized("reduce"),
    ),
    Fault(
        "kernels/common/activation.cl",
        "#define activation_3(x) WITHIN(x, 0.0f, 6.0f)",
        "#define activation_3(x) AT_LEAST(x, 0.0f)",
        "RELU6 ends at 6",
        (*_ops("unary"), *_ops("conv2d")),
    ),
    Fault(
        "kernels/common/bounds.cl",
        "#define AT_LEAST(x, low) select(fmax(x, low), x, isnan(x))",
        "#define AT_LEAST(x, low) fmax(x, low)",
        "a NaN stays one",
        ("tests/kernels/test_nan.py",),
    ),
    Fault(
        "kernels/common/border.cl",
        "int mirrored(int i, int n) { return n - 1 - (int)abs(n - 1 - (int)abs(i)); }",
        "int mirrored(int i, int n) { return n - 1 - (int)abs(n - 1 - i); }",
        "mirrored padding has a left side, too",
        ("tests/passes/test_fuse_pad.py",),
    ),
    Fault(
        "kernels/common/fixed_point.cl",
        "for (int i = 0; i < 3; ++i) y += FIXED_LEFT",
        "for (int i = 0; i < 1; ++i) y += FIXED_LEFT",
        "a reciprocal takes three steps to be exact",
        (*_quantized("softmax"), *_quantized("unary")),
    ),
    # The Python package.
    Fault(
        "clgpu_delegate/quantization/observers.py",
        "self._low = min(self._low, float(values.min()))",
        "self._low = float(values.min())",
        "the range is that of all samples",
        _OBSERVERS,
    ),
    Fault(
        "clgpu_delegate/quantization/observers.py",
        'last = int(np.searchsorted(below, self._share * total, side="left"))',
        'last = int(np.searchsorted(below, total, side="left"))',
        "the rarest values above are left out",
        _OBSERVERS,
    ),
    Fault(
        "clgpu_delegate/quantization/parameters.py",
        "stored = np.rint(values.astype(np.float64) / scales) + zero_points",
        "stored = np.rint(values.astype(np.float64) / scales - 0.5) + zero_points",
        "rounding is to the nearest",
        ("tests/python/test_quantize_parameters.py",),
    ),
    Fault(
        "clgpu_delegate/options.py",
        'if not row["least"] <= count <= row["most"]:',
        'if not row["least"] - 1 <= count <= row["most"]:',
        "a wrong option is an error",
        _OPTIONS,
    ),
    Fault(
        "clgpu_delegate/options.py",
        "if match and float(match[1]) > 0:",
        "if match:",
        "no model fits into no memory",
        (*_OPTIONS, "tests/python/test_byte_sizes.py"),
    ),
    Fault(
        "clgpu_delegate/report/borders.py",
        'if any(not node["claimed"] for node in others):',
        'if all(not node["claimed"] for node in others):',
        "a tensor that the CPU reads, too, is the CPU's",
        ("tests/python/test_explain.py",),
    ),
    Fault(
        "clgpu_delegate/runner/engines.py",
        "self._waiter.shutdown(wait=True)",
        "self._waiter.shutdown(wait=False)",
        "what is under way is waited for",
        ("tests/python/test_runner.py",),
    ),
    Fault(
        "clgpu_delegate/runner/engines.py",
        "return x if x.flags.c_contiguous else self._keep(tensor, x)",
        "return x",
        "arrays may be transposed",
        ("tests/python/test_runner.py",),
    ),
    Fault(
        "clgpu_delegate/runner/sequence.py",
        "more, failure = False, error",
        "more = False",
        "what an iterable raises arrives",
        ("tests/python/test_runner.py",),
    ),
    # Checks and candidates of operations.
    Fault(
        "src_cpp/ops/families/pool.cpp",
        "if (std::abs(src.scale() - dst.scale()) > kSame || src.zero_point() != dst.zero_point())",
        "if (std::abs(src.scale() - dst.scale()) > kSame)",
        "a pool of integers cannot change the zero point",
        _quantized("pool"),
    ),
    Fault(
        "src_cpp/ops/families/pool.cpp",
        'throw ShapeError("the filter is larger than the input " + src.str());',
        "return {ir::Shape{src[0], 1, 1, src[3]}};",
        "a filter that does not fit is told",
        _ops("pool"),
    ),
    Fault(
        "src_cpp/ops/families/gather.cpp",
        "indices.rank() || batch_dims > *axis,",
        "indices.rank() + 1 || batch_dims > *axis,",
        "more axes of batches than indices have are refused",
        _ops("gather"),
    ),
    Fault(
        "src_cpp/ops/families/softmax.cpp",
        "for (int d = 0; d < 256 && d <= reach_of(step); ++d)",
        "for (int d = 0; d < 255 && d <= reach_of(step); ++d)",
        "the largest difference of two bytes is 255",
        _quantized("softmax"),
    ),
    Fault(
        "src_cpp/ops/families/reshape.cpp",
        "CLGPU_REFUSE_IF(unknown > 1,",
        "CLGPU_REFUSE_IF(unknown > 2,",
        "a new shape has one unknown size at most",
        _ops("reshape"),
    ),
    Fault(
        "src_cpp/ops/families/one_hot.cpp",
        " || (off.rank() > 0 && off.elements() != 1),",
        ",",
        "the value off is one number, too",
        _ops("one_hot"),
    ),
    Fault(
        "src_cpp/ops/families/resize.cpp",
        "(*size)[0] < 1 || (*size)[1] < 1,",
        "(*size)[0] < 1,",
        "an image without columns is refused, too",
        _ops("resize"),
    ),
    Fault(
        "src_cpp/ops/families/space_depth.cpp",
        "block->size() != spatial || margins->size() != 2 * spatial,",
        "block->size() != spatial,",
        "margins are read for each axis of the block",
        _ops("space_depth"),
    ),
    Fault(
        "src_cpp/ops/families/strided_slice.cpp",
        "node.input(2).elements() != count || static_cast<int>(stride->size()) != count,",
        "node.input(2).elements() != count,",
        "strides are read for each axis that begin names",
        _ops("strided_slice"),
    ),
    Fault(
        "src_cpp/ops/families/strided_slice.cpp",
        "(begin && (*begin)[i] < 0) || (*size)[i] < -1,",
        "begin && (*begin)[i] < 0,",
        "a slice has no negative size but -1",
        _ops("strided_slice"),
    ),
    Fault(
        "src_cpp/ops/families/transpose_conv.cpp",
        "attrs.out_h < 1 || attrs.out_w < 1,",
        "attrs.out_h < 1,",
        "a result without columns is refused, too",
        _ops("transpose_conv"),
    ),
    # Claims.
    Fault(
        "src_cpp/ops/registry.cpp",
        "input >= operation.inputs;",
        "input > operation.inputs;",
        "the first operand that may lack is the one behind those that may not",
        ("tests/delegate/test_operands.py",),
    ),
    Fault(
        "src_cpp/ops/registry.cpp",
        "const int typed = operation.outputs == kAnyNumber ? outputs : 1;",
        "const int typed = 1;",
        "each part of a split has the type of the whole",
        ("tests/delegate/test_operands.py",),
    ),
    Fault(
        "src_cpp/delegate/claim/model.cpp",
        "if (tensor.raw().is_variable && !may_vary) return",
        "if (false) return",
        "the state of a variable is the CPU's",
        ("tests/delegate/test_operands.py",),
    ),
    Fault(
        "src_cpp/delegate/claim/model.cpp",
        "  constants_ = stored_;\n",
        "",
        "what a refused node writes is no constant",
        ("tests/delegate/test_claims.py",),
    ),
    Fault(
        "src_cpp/delegate/claim/extract.cpp",
        "if (is_constant(tflite_id) && model_outputs.count(tflite_id) == 0) {",
        "if (is_constant(tflite_id)) {",
        "a constant that is an output of the model is copied back",
        ("tests/delegate/test_claims.py",),
    ),
    Fault(
        "src_cpp/delegate/claim/leaving.cpp",
        "working.empty() ? nodes : working",
        "working",
        "a partition of constants alone is left, too, and not tried for ever",
        _FAULTS,
    ),
    # Passes.
    Fault(
        "src_cpp/passes/fuse_activation.cpp",
        'if (is_output_[uz(result)]) return "its input is a result of the partition";',
        "",
        "an output of the model is before its activation",
        ("tests/passes/test_fuse_activation.py",),
    ),
    Fault(
        "src_cpp/passes/fuse_residual.cpp",
        'if (readers[uz(sum)].size() != 1) return "other nodes read it";',
        "",
        "somebody else reads what is added to",
        ("tests/passes/test_fuse_residual.py",),
    ),
    Fault(
        "src_cpp/passes/fuse_pad.cpp",
        "if (node.inputs.size() == 2 || node.inputs[2] < 0) return true;",
        "return true;",
        "convolutions pad with zeros alone",
        ("tests/passes/test_fuse_pad.py",),
    ),
    Fault(
        "src_cpp/passes/dynamic_range.cpp",
        "!alike || ops::is_grouped(graph, node);",
        "!alike;",
        "a convolution in groups has no symmetric kernel",
        ("tests/passes/test_dynamic_range.py",),
    ),
    Fault(
        "src_cpp/passes/split_weights.cpp",
        "const auto begin = whole->scales.begin() + first;",
        "const auto begin = whole->scales.begin();",
        "a part has the scales of its own channels",
        ("tests/passes/test_split_weights.py",),
    ),
    Fault(
        "src_cpp/passes/choose_storage.cpp",
        "outside[uz(root[uz(id)])] = true;",
        "outside[uz(id)] = true;",
        "an output that is a view is stored as the model's type, and so is what it is a view of",
        ("tests/delegate/test_claims.py", "tests/delegate/test_zero_copy.py", *_ops("reshape")),
    ),
    Fault(
        "src_cpp/passes/place_parts.cpp",
        "outer.first + row * outer.pitch + column};",
        "outer.first + column};",
        "a part of a part begins at its own row",
        ("tests/passes/test_remove_concatenations.py",),
    ),
    # Plans.
    Fault(
        "src_cpp/plan/arena/memory.cpp",
        "if (other.last < block.first || block.last < other.first) continue;",
        "if (other.last <= block.first || block.last < other.first) continue;",
        "a block that is read while another is written is still alive",
        ("tests/plan/test_memory.py",),
    ),
    Fault(
        "src_cpp/plan/arena/memory.cpp",
        "return (offset + limits_.alignment - 1) / limits_.alignment * limits_.alignment;",
        "return offset;",
        "sub-buffers begin at aligned addresses",
        ("tests/plan/test_memory.py",),
    ),
    Fault(
        "src_cpp/plan/arena/in_place.cpp",
        "if (is_static[uz(input)] || is_static[uz(output)]) continue;",
        "",
        "memory that lives longer than an inference is nobody else's",
        ("tests/delegate/test_memory.py",),
    ),
    Fault(
        "src_cpp/plan/arena/memory.cpp",
        "top = std::max(top, other.end);",
        "top = other.end;",
        "a long block reaches beyond the short one that begins behind it",
        ("tests/plan/test_memory.py",),
    ),
    # What runs: nothing is used that is gone, and no memory while a command still uses it.
    Fault(
        "src_cpp/runtime/run/executor.cpp",
        "const bool all = stale_;",
        "const bool all = std::exchange(stale_, false);",
        "the flag of what is half done is cleared last",
        _FOUND,
    ),
    Fault(
        "src_cpp/runtime/run/executor.cpp",
        "noexcept {\n  finish_all();\n  transfers_.forget();",
        "noexcept {\n  transfers_.forget();",
        "commands of an inference that fails end before its error is told",
        (*_FOUND, *_FAULTS),
    ),
    Fault(
        "src_cpp/runtime/run/executor.cpp",
        "if (error.out_of_memory()) throw error;",
        "",
        "no kernel is blamed where memory is short",
        _FAULTS,
    ),
    Fault(
        "src_cpp/runtime/run/executor.cpp",
        "if (error.out_of_memory() || !error.may_pass()) throw;",
        "throw;",
        "what may pass is tried once more",
        _FOUND,
    ),
    Fault(
        "src_cpp/runtime/run/stream.cpp",
        "      api.clFinish(queue->get());\n",
        "",
        "uploads of a lane that fails end before its error is told",
        _FOUND,
    ),
    Fault(
        "src_cpp/runtime/run/pool.cpp",
        "    leave(arena);\n    throw;",
        "    throw;",
        "who got no memory needs none from the others' arena",
        (*_FOUND, *_FAULTS),
    ),
    Fault(
        "src_cpp/runtime/run/pool.cpp",
        "if (pool_->in_flight_ != this) pool_->settle();",
        "",
        "an arena is free when what is in flight there has ended",
        ("tests/delegate/test_stream.py",),
    ),
    Fault(
        "src_cpp/runtime/run/transfers.cpp",
        "last, recording);\n      way.pointer = nullptr;",
        "last, recording);",
        "memory that could not be mapped is looked at anew",
        _FAULTS,
    ),
    Fault(
        "src_cpp/runtime/run/transfers.cpp",
        "way.has_changed = way.is_bound = true;",
        "way.is_bound = true;",
        "kernels get the buffer that the application lends now",
        ("tests/litert/test_opencl_buffers.py",),
    ),
    Fault(
        "src_cpp/plan/roads.cpp",
        "const bool fits = is_input != (written.count(t.buffer) > 0);",
        "const bool fits = true;",
        "no result is written over an input of the application",
        ("tests/litert/test_opencl_buffers.py",),
    ),
    Fault(
        "src_cpp/runtime/run/transfers.cpp",
        "    parting_(object.get());\n",
        "",
        "images go with the memory that they lie over",
        _FOUND,
    ),
    # Devices.
    Fault(
        "src_cpp/cl/plausible.cpp",
        "const bool power_of_two = align != 0 && (align & (align - 1)) == 0;",
        "const bool power_of_two = align != 0;",
        "an alignment is a power of two",
        _FAULTS,
    ),
    Fault(
        "src_cpp/cl/plausible.cpp",
        "info.max_object_bytes = std::min(info.max_object_bytes, info.global_bytes);",
        "",
        "no object is larger than the device",
        _FAULTS,
    ),
    Fault(
        "src_cpp/cl/fork.cpp",
        "forked.store(true, std::memory_order_relaxed);",
        "",
        "a forked child is told that OpenCL does not work there",
        ("tests/load/test_load.py",),
    ),
    Fault(
        "src_cpp/cl/fork.cpp",
        "on_exit(leave, nullptr);",
        "",
        "a forked child does not wait for threads that it lacks",
        ("tests/load/test_load.py",),
    ),
    # The store.
    Fault(
        "src_cpp/store/trust.cpp",
        'if (target.is_absolute()) folder = "/";',
        "",
        "each folder on the way of links is judged",
        ("tests/python/test_cache_trust.py",),
    ),
    Fault(
        "src_cpp/store/trust.cpp",
        "|| (is_sticky && !is_last)) return {};",
        "|| is_sticky) return {};",
        "a folder for all has room for files beside the cache",
        ("tests/python/test_cache_trust.py",),
    ),
    Fault(
        "src_cpp/store/files.cpp",
        "text.substr(kMagic.size(), kChecksum) != checksum(kind, key, value))",
        "false)",
        "a damaged file of a row is never used",
        ("tests/python/test_cache_files.py",),
    ),
    Fault(
        "src_cpp/store/database.cpp",
        "keep_earlier && fs::exists(target);",
        "false;",
        "what may be someone's work is never lost",
        ("tests/python/test_cache.py",),
    ),
    Fault(
        "src_cpp/store/database.cpp",
        "ORDER BY used, rowid LIMIT 1",
        "ORDER BY created, rowid LIMIT 1",
        "the longest unused rows go first",
        ("tests/python/test_cache.py",),
    ),
    Fault(
        "src_cpp/store/database.cpp",
        "damaged = row.bytes_at(1) != checksum(kind, key, bytes);",
        "damaged = false;",
        "a damaged row is never used",
        ("tests/python/test_cache.py",),
    ),
    Fault(
        "src_cpp/store/database.cpp",
        "  make_private_file(path_);  // SQLite would let the umask decide\n",
        "",
        "a new file is the user's alone, whatever the umask",
        ("tests/python/test_cache_trust.py",),
    ),
    Fault(
        "src_cpp/store/database.cpp",
        "if (!empty && format != kFormat) {",
        "if (!empty && format > kFormat) {",
        "a file of another format is put aside",
        ("tests/python/test_cache.py",),
    ),
)
