// The state that all interpreters of one delegate share.
#pragma once

#include <memory>
#include <utility>

#include "delegate/bindings.hpp"
#include "delegate/building/builder.hpp"
#include "delegate/building/carried_sets.hpp"
#include "delegate/building/engine_records.hpp"
#include "delegate/building/holdings.hpp"
#include "delegate/building/layer_tuning.hpp"
#include "delegate/lending.hpp"
#include "delegate/target.hpp"
#include "delegate/tell/ledger.hpp"
#include "delegate/verdicts.hpp"

namespace clgpu::delegate {

class State {
 public:
  /// With `gl`, buffers and textures of that OpenGL context can be bound.
  explicit State(Options chosen, const cl::GlContext* gl = nullptr)
      : target(std::move(chosen), gl) {}

  const Target target;
  const std::shared_ptr<Bindings> bindings =
      std::make_shared<Bindings>(target.context, target.store);
  /// Null if all tensors are TfLiteTensor::data. To be set before the runtime uses the delegate.
  std::shared_ptr<Lender> lender = bindings;
  Verdicts verdicts;  ///< of placement="measured"
  EngineRecords engines{target};
  const Builder builder{target, engines};
  const LayerTuning tuning{target, engines};
  Ledger ledger;
  CarriedSets carried;
  HoldingSets holdings;

  /// Builder::build, with a record of its cost. With tuning="exhaustive", first measures layers
  /// that have no measurements.
  Built build(const ir::Graph& graph, std::int64_t budget,
              const std::shared_ptr<runtime::Pool>& pool, Level level, bool lasts,
              const Carriers* carriers, const std::function<bool()>& make_room = nullptr,
              const Excess& excess = nullptr);

  /// The report of the ledger, with the records of the device and its engines.
  Report report() const;
};

}  // namespace clgpu::delegate
