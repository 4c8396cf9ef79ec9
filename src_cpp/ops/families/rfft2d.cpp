// Family of RFFT2D: the Fourier transform of real images, or of rows of signals.
#include <algorithm>
#include <cmath>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"
#include "ops/shared/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kRfft2d = 131;
constexpr int kLongest = 1 << 20;

struct TransformAttrs : ir::Attrs {
  int height = 1, width = 2;  ///< powers of two
  CLGPU_FIELDS(height, width)
};

bool is_size(std::int64_t n) { return n > 0 && n <= kLongest && (n & (n - 1)) == 0; }

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_TYPE(node.output(0), "output", DType::kC64);
  CLGPU_REFUSE_RANK(node.input(0), "input", 2);
  const auto lengths = node.input(1).ints();
  CLGPU_REFUSE_IF(!lengths, Why::kRunTime, "the size of the transform");
  CLGPU_REFUSE_IF(lengths->size() != 2, Why::kParameter, "the size of the transform",
                  "is not two numbers");
  const std::int64_t height = lengths->front(), width = lengths->back();
  if (!is_size(height))
    return wrong_value("the height of the transform", height, "a power of two from 1 to 2^20");
  if (!is_size(width) || width == 1)
    return wrong_value("the width of the transform", width, "a power of two from 2 to 2^20");
  TransformAttrs attrs;
  attrs.height = static_cast<int>(height);
  attrs.width = static_cast<int>(width);
  return Imported{share(attrs), {}};
}

ir::Shapes infer(const NodeContext& node) {
  const auto& attrs = node.attrs<TransformAttrs>();
  ir::Shape dst = node.input(0).shape;
  dst[dst.rank() - 2] = attrs.height;
  dst[dst.rank() - 1] = attrs.width / 2 + 1;
  return {dst};
}

int bits_of(int power) {
  int bits = 0;
  while ((1 << bits) < power) ++bits;
  return bits;
}

/// exp(-2 pi i k / period) for k < count.
kernel::Scratch turns(int count, int period) {
  std::vector<float> numbers;
  for (int k = 0; k < count; ++k) {
    const double angle = -2 * 3.14159265358979323846 * k / period;
    // Exactly 0 at multiples of a right angle.
    for (const double value : {std::cos(angle), std::sin(angle)})
      numbers.push_back(std::fabs(value) < 1e-12 ? 0.0F : static_cast<float>(value));
  }
  return kernel::table(numbers);
}

/// The ways to keep a line of `size` complex numbers: in local memory, if it fits there.
struct Line {
  int size;
  std::int64_t bytes;
  bool local;
  std::size_t group;
  Line(int size, bool local, const DeviceInfo& device)
      : size(size),
        bytes(8 * static_cast<std::int64_t>(size)),
        local(local),
        group(group_of(uz(std::clamp(size / 2, 1, device.is_cpu() ? 16 : 256)), device)) {}
};

kernel::Candidate transform(const NodeContext& node, const DeviceInfo& device, bool local) {
  const auto& attrs = node.attrs<TransformAttrs>();
  const ir::Shape &src = node.input(0).shape, &dst = node.output(0).shape;
  const std::int64_t slices = dst.elements() / attrs.height / (attrs.width / 2 + 1);
  const Line row(attrs.width / 2, local, device), column(attrs.height, local, device);
  const std::int64_t rows = slices * attrs.height, columns = slices * (row.size + 1);
  kernel::Candidate candidate{local ? "local_lines" : "spare_lines", {}, {}};
  const auto scratch = [&](kernel::Scratch memory) {
    candidate.scratch.push_back(std::move(memory));
    return static_cast<int>(candidate.scratch.size()) - 1;
  };
  const auto work = [&](kernel::Launch& launch, const Line& line, std::int64_t lines) {
    launch.macro("WG", static_cast<std::int64_t>(line.group)).macro("LOCAL", line.local ? 1 : 0);
    launch.type("SRC_T", node.input(0).storage);
    launch.range({uz(lines) * line.group}, {line.group});
    if (line.local) {
      launch.local_memory(uz(line.bytes));
    } else {
      launch.scratch_out(scratch({lines * line.bytes}));
    }
  };

  kernel::Launch by_row("rfft2d/rfft2d.cl", "rfft2d_rows");
  by_row.src(0).scratch_in(scratch(turns(row.size + 1, attrs.width)));
  const bool several = attrs.height > 1;
  const int lines = several ? scratch({8 * dst.elements()}) : -1;
  if (several) {
    by_row.scratch_out(lines);
  } else {
    by_row.dst(0);
  }
  work(by_row, row, rows);
  by_row.i32(attrs.height).i32(bits_of(row.size)).i32(src.back(1)).i32(src.back(0));
  candidate.launches.push_back(by_row);
  if (!several) return candidate;

  kernel::Launch by_column("rfft2d/rfft2d.cl", "rfft2d_columns");
  by_column.scratch_in(lines).scratch_in(scratch(turns(column.size, column.size))).dst(0);
  work(by_column, column, columns);
  by_column.i32(row.size + 1).i32(bits_of(column.size));
  candidate.launches.push_back(by_column);
  return candidate;
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<TransformAttrs>();
  const std::int64_t longest = std::max(attrs.width / 2, attrs.height);
  std::vector<kernel::Candidate> result;
  if (uz(8 * longest) <= device.local_bytes) result.push_back(transform(node, device, true));
  result.push_back(kernel::of_form(kernel::Form::kReference, transform(node, device, false)));
  return result;
}

double flops(const NodeContext& node) {
  const auto& attrs = node.attrs<TransformAttrs>();
  const auto outputs = static_cast<double>(node.output(0).shape.elements());
  return 5 * outputs * (bits_of(attrs.width) + bits_of(attrs.height));
}

}  // namespace

extern const Family kRfft2dFamily;
const Family kRfft2dFamily = [] {
  Family family;
  family.name = "rfft2d";
  family.attrs = ir::attrs_type<TransformAttrs>();
  family.builtins = {{kRfft2d, "RFFT2D", 2, 0, 1, -1}};
  family.import = import;
  family.infer = infer;
  family.candidates = candidates;
  family.flops = flops;
  return family;
}();

}  // namespace clgpu::ops
