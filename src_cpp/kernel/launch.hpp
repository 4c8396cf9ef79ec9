// One kernel launch as data: source file, entry, macros, arguments, sizes. No OpenCL types.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace clgpu::kernel {

/// A buffer that a launch reads or writes, as an operand of its node.
struct Operand {
  enum class Kind { kInput, kOutput, kScratch, kPredicate };
  Kind kind;
  int index;    ///< into the node's inputs, its outputs, or the candidate's scratch list
  bool writes;  ///< the kernel writes it, and does not read it unless `reads` is also set
  bool reads;
  /// The kernel reads it as an image over the buffer: texel i is elements 4i to 4i+3 of this type,
  /// float or half. Its size in bytes is a multiple of a texel's.
  std::optional<DType> image{};
  bool early = false;  ///< read before OPERANDS_READY of the kernel (common/local.cl)
};
/// Bytes of a texel of four elements.
inline std::int64_t texel_bytes(DType type) { return 4 * static_cast<std::int64_t>(size_of(type)); }
struct LocalMemory {
  std::size_t bytes;
};
using Arg = std::variant<Operand, std::int32_t, float, LocalMemory>;
using Macros = std::vector<std::pair<std::string, std::string>>;

/// Built in the order of the kernel's parameters: `Launch("softmax/softmax.cl", "softmax_rows")
/// .type("SRC_T", in.storage).macro("WG", 64).src(0).dst(0).i32(cols).f32(beta).range({rows * 64},
/// {64})`.
struct Launch {
  Launch(std::string source_file, std::string entry_point)
      : file(std::move(source_file)), entry(std::move(entry_point)) {}

  std::string file;   ///< path below kernels/
  std::string entry;  ///< kernel function
  Macros macros;      ///< -D NAME=VALUE, always valued
  std::vector<Arg> args;
  std::array<std::size_t, 3> global{1, 1, 1};  ///< work-items; multiples of `local`
  std::array<std::size_t, 3> local{1, 1, 1};   ///< work-items of a work-group
  std::string build_flags;                     ///< of this candidate only; empty = exact IEEE
  /// All work-groups return at once if an element of the first argument, a buffer, is 0
  /// (kernels/common/predicate.cl). The second argument is its index; its type is the macro
  /// PREDICATE_T.
  bool predicated = false;
  /// Not a launch: the host runs the graphs of the node (ir::Node::graphs), and there is no kernel.
  bool runs_graphs = false;
  /// An element type is one of kernels/common/more_types.cl, which then stands before the file.
  bool has_more_types = false;
  /// The elements of the result, or of an input, have another type in memory than in arithmetic:
  /// one of kernels/common/stored_types.cl, which then stands before the file. The first arguments
  /// are the scale and the zero point of the integers.
  bool converts_result = false, converts_input = false;
  /// Never a stage of a chain or a member of a bundle: these do not align local memory as it needs,
  /// or their work-groups have more items than its barriers in PTX may wait for.
  bool is_alone = false;
  /// Half of the registers that a work-item may have are enough, so it may be a stage of a chain
  /// whose work-groups have twice as many items.
  bool slim = false;
  /// The kernel changes what outlives an inference only where KEEPS_RESULTS() says that it may
  /// (kernels/common/local.cl), so it may do that as a stage of a chain.
  bool asks_to_keep = false;

  Launch& macro(const char* name, std::int64_t value) {
    macros.emplace_back(name, std::to_string(value));
    return *this;
  }
  Launch& macro(const char* name, std::string value) {
    has_more_types = has_more_types || value == cl_name(DType::kBF16);
    macros.emplace_back(name, std::move(value));
    return *this;
  }
  /// Macro that names the element type of a buffer parameter ("float", "half", "int", ...).
  Launch& type(const char* name, DType storage) {
    has_more_types = has_more_types || is_wide_unsigned(storage);
    return macro(name, cl_name(storage));
  }

  Launch& src(int input) { return arg(Operand{Operand::Kind::kInput, input, false, true}); }
  Launch& dst(int output) { return arg(Operand{Operand::Kind::kOutput, output, true, false}); }
  Launch& scratch_in(int i) { return arg(Operand{Operand::Kind::kScratch, i, false, true}); }
  Launch& scratch_out(int i) { return arg(Operand{Operand::Kind::kScratch, i, true, false}); }
  Launch& scratch_inout(int i) { return arg(Operand{Operand::Kind::kScratch, i, true, true}); }
  /// Read as images, see Operand::image; the kernel's parameter is an image1d_buffer_t.
  Launch& src_image(int input, DType type) {
    return arg(Operand{Operand::Kind::kInput, input, false, true, type});
  }
  Launch& scratch_image(int i, DType type) {
    return arg(Operand{Operand::Kind::kScratch, i, false, true, type});
  }
  /// The last argument is read before OPERANDS_READY.
  Launch& early() {
    std::get<Operand>(args.back()).early = true;
    return *this;
  }
  Launch& i32(std::int64_t value) {
    if (value < INT32_MIN || value > INT32_MAX) {
      throw Error("a kernel of " + file + " would need the index or size " + std::to_string(value) +
                  "; kernels have 32-bit integers, up to 2147483647");
    }
    return arg(static_cast<std::int32_t>(value));
  }
  Launch& f32(float value) { return arg(value); }
  Launch& local_memory(std::size_t bytes) { return arg(LocalMemory{bytes}); }
  Launch& arg(Arg a) {
    args.push_back(a);
    return *this;
  }

  /// Lets the launch run only if an element of a buffer is not 0.
  Launch& only_if(Operand buffer, DType storage, int element) {
    predicated = true;
    args.insert(args.begin(), {Arg{buffer}, Arg{std::int32_t{element}}});
    return type("PREDICATE_T", storage);
  }

  /// Elements of the result have another type in memory. Called before convert_input and only_if.
  Launch& convert_result(float scale, std::int32_t zero_point) {
    converts_result = true;
    return first_args(scale, zero_point);
  }
  /// Likewise of an input.
  Launch& convert_input(float scale, std::int32_t zero_point) {
    converts_input = true;
    return first_args(scale, zero_point);
  }
  bool converts() const { return converts_result || converts_input; }

  /// Requested work-items (rounded up to whole work-groups) and work-group size; missing axes are
  /// 1.
  Launch& range(std::vector<std::size_t> items, std::vector<std::size_t> group) {
    for (std::size_t i = 0; i < 3; ++i) {
      local[i] = i < group.size() ? group[i] : 1;
      const std::size_t n = i < items.size() ? items[i] : 1;
      global[i] = (n + local[i] - 1) / local[i] * local[i];
    }
    return *this;
  }

 private:
  Launch& first_args(float scale, std::int32_t zero_point) {
    args.insert(args.begin(), {Arg{scale}, Arg{zero_point}});
    return *this;
  }
};

/// Work-items of a work-group.
inline std::size_t group_items(const Launch& launch) {
  return launch.local[0] * launch.local[1] * launch.local[2];
}

/// Divides the work-groups of a launch until they have at most `items` work-items, and `along[i]`
/// along each axis. The total number of work-items stays the same, so kernels never get more of
/// them.
inline void divide_groups(Launch& launch, std::size_t items, const std::size_t (&along)[3]) {
  const auto divide = [](std::size_t& size) {
    std::size_t factor = 2;
    while (size % factor != 0) ++factor;
    size /= factor;
  };
  for (std::size_t axis = 0; axis < 3; ++axis) {
    while (launch.local[axis] > std::max<std::size_t>(1, along[axis])) divide(launch.local[axis]);
  }
  while (group_items(launch) > std::max<std::size_t>(1, items))
    divide(*std::max_element(launch.local.begin(), launch.local.end()));
}

/// Memory private to a candidate: written by one of its launches, read by a later one. If all its
/// contents derive from constants (for example, transposed weights), the planner runs the writing
/// launch once, at load time, and keeps the result; otherwise it is in the arena.
struct Scratch {
  std::int64_t bytes;
  /// Lives as long as the plan and is initialised to zero: counters, which every launch resets to
  /// zero.
  bool counters = false;
  /// Its contents, if the host knows them; then no launch writes it.
  std::shared_ptr<const std::vector<std::uint8_t>> contents{};
  /// Each inference writes it, even if its contents derive from constants: writing it takes less
  /// than its memory is worth.
  bool transient = false;
  /// Lives as long as the plan and is initialised to zero: what launches have to know of earlier
  /// inferences. Zeros mean that they know nothing; the executor writes them if it cannot tell
  /// whether all launches of an inference have run.
  bool remembers = false;
};

/// Read-only memory with the given numbers: a table that a launch reads as a scratch buffer.
template <class T>
Scratch table(const std::vector<T>& numbers) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
  const auto count = numbers.size() * sizeof(T);
  return {static_cast<std::int64_t>(count), false,
          std::make_shared<const std::vector<std::uint8_t>>(bytes, bytes + count)};
}

/// How simple a candidate is. Tuning builds the simplest one first and compares the others with it.
enum class Form { kTuned, kPlain, kReference };

/// One way to compute a node. Families return a list of candidates, best guess first.
struct Candidate {
  /// "direct", "gemm_64x64", ...: engine and, if there are several, variant; unique within the
  /// family. For people and options; code reads the fields below.
  std::string name;
  std::vector<Launch> launches;
  std::vector<Scratch> scratch;
  std::string refusal{};  ///< why it cannot compute this node; then there are no launches
  /// Inputs that output 0 may overwrite, as they have its size: each of their elements is read only
  /// by the work-item that writes the same element of the output, and before that write.
  std::vector<int> in_place{};
  /// Instead of the only launch where output 0 is in the memory of the first input of `in_place`:
  /// it changes some of the elements and touches no others. Run twice, it leaves the same elements.
  /// It reads no scratch buffer that the other does not read, and each of them once.
  std::optional<Launch> over_input{};
  Form form = Form::kTuned;
  bool adds_halves = false;   ///< intermediate sums are rounded to half; otherwise sums are exact
  bool tensor_cores = false;  ///< they compute the products, with their own peak rate
  bool makes_halves = false;  ///< ... of halves, which launches or kernels make of float inputs
  /// Estimate of its time on the device, with the launch; 0 if the engine has no model of it.
  double microseconds = 0;
};

/// The same candidate, with this form.
inline Candidate of_form(Form form, Candidate candidate) {
  candidate.form = form;
  return candidate;
}

}  // namespace clgpu::kernel
