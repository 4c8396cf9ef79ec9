// Room of SOFTMAX and LOG_SOFTMAX, over the last axis.
#include "ops/row_rules.hpp"
#include "ops/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kSoftmax = 25, kLogSoftmax = 50;

struct SoftmaxAttrs : ir::Attrs {
  float beta = 1.0F;
  bool log = false;
};

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_IF(node.input(0).rank() < 1, "a scalar has no axis to normalise over");
  SoftmaxAttrs attrs;
  attrs.log = node.builtin() == kLogSoftmax;
  if (const auto* params = node.params<tfl::SoftmaxParams>(); params != nullptr && !attrs.log) {
    attrs.beta = params->beta;
  }
  return Imported{share(attrs), {}};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const auto& attrs = node.attrs<SoftmaxAttrs>();
  const ir::Tensor& src = node.input(0);
  const int cols = src.shape.back(0);
  const std::int64_t rows = src.shape.elements() / cols;
  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(rows, cols, /*adjacent=*/true, device)) {
    kernel::Launch launch("softmax/softmax.cl", "softmax_rows");
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("ROWS", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WG", static_cast<std::int64_t>(sharing.items)).macro("LOG", attrs.log ? 1 : 0);
    launch.src(0).dst(0).i32(rows).i32(cols).f32(attrs.beta);
    launch.range({sharing.range(rows)}, {sharing.group()});
    list.push_back({sharing.name, {launch}, {}});
    list.back().in_place = {0};  // an item reads and writes the same elements of a row
  }
  return list;
}

}  // namespace

extern const Family kSoftmaxFamily;
const Family kSoftmaxFamily{{"softmax", /*has_epilogue=*/false, /*is_view=*/false},
                            {{kSoftmax, "SOFTMAX"}, {kLogSoftmax, "LOG_SOFTMAX"}},
                            {},
                            /*core=*/false,
                            import,
                            infer_same_as_input,
                            candidates,
                            /*fold=*/nullptr,
                            /*allows_quantized=*/false,
                            &kRowwise};

}  // namespace clgpu::ops
