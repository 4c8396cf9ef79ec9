// Room of L2_NORMALIZATION, over the last axis.
#include "ops/row_rules.hpp"
#include "ops/sharing.hpp"

namespace clgpu::ops {
namespace {

constexpr int kL2Normalization = 11;

OrRefusal<Imported> import(const tfl::NodeView& node) {
  CLGPU_REFUSE_TYPE(node.input(0), "input", DType::kF32);
  CLGPU_REFUSE_IF(node.input(0).rank() < 1, "a scalar has no axis to normalise over");
  const auto* params = node.params<tfl::ActivationParams>();
  const auto epilogue = fused_activation(params == nullptr ? 0 : params->activation);
  if (!epilogue) return Refusal{epilogue.reason()};
  return Imported{std::make_shared<const ir::Attrs>(), *epilogue};
}

std::vector<kernel::Candidate> candidates(const NodeContext& node, const DeviceInfo& device) {
  const ir::Tensor& src = node.input(0);
  const int cols = src.shape.back(0);
  const std::int64_t rows = src.shape.elements() / cols;
  std::vector<kernel::Candidate> list;
  for (const Sharing& sharing : sharings(rows, cols, /*adjacent=*/true, device)) {
    kernel::Launch launch("l2_normalization/l2_normalization.cl", "l2_normalization_rows");
    launch.type("SRC_T", src.storage).type("DST_T", node.output(0).storage);
    launch.macro("ROWS", static_cast<std::int64_t>(sharing.outputs));
    launch.macro("WG", static_cast<std::int64_t>(sharing.items));
    set_epilogue(launch, node.epilogue());
    launch.src(0).dst(0).i32(rows).i32(cols);
    launch.range({sharing.range(rows)}, {sharing.group()});
    list.push_back({sharing.name, {launch}, {}});
  }
  return list;
}

}  // namespace

extern const Family kL2NormalizationFamily;
const Family kL2NormalizationFamily{{"l2_normalization", /*has_epilogue=*/true, /*is_view=*/false},
                                    {{kL2Normalization, "L2_NORMALIZATION"}},
                                    {},
                                    /*core=*/false,
                                    import,
                                    infer_same_as_input,
                                    candidates,
                                    /*fold=*/nullptr,
                                    /*allows_quantized=*/false,
                                    &kRowwise};

}  // namespace clgpu::ops
