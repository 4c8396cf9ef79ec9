#include "delegate/building/state.hpp"

#include "delegate/tell/inspection.hpp"

namespace clgpu::delegate {

Built State::build(const ir::Graph& graph, std::int64_t budget,
                   const std::shared_ptr<runtime::Pool>& pool, Level level, bool lasts,
                   const Carriers* carriers, const std::function<bool()>& make_room,
                   const Excess& excess) {
  const cl::Counters before = cl::counters();
  Built built = builder.build(graph, budget, pool, level, lasts, carriers, /*records=*/true,
                              make_room, excess);
  if (target.options.tuning == Tuning::kExhaustive && tuning.measure_new(built))
    built = builder.build(graph, budget, pool, level, lasts, carriers, /*records=*/true, make_room,
                          excess);
  built.executor->save_programs();
  ledger.count_load(cl::counters() - before);
  return built;
}

Report State::report() const {
  Report report = ledger.shown().report;
  for (const std::string& note : target.context->notes()) report.notes.push_back(note);
  for (const std::string& note : target.probed.notes) report.notes.push_back(note);
  if (target.options.precision == passes::Precision::kTf32 && !target.device().mma_tf32)
    report.notes.push_back("precision tf32 is fp32 here: the device has no TF32 products");
  if (target.options.half_sums) {
    using passes::Precision;
    const Precision precision = target.options.precision;
    const bool halves = precision == Precision::kFp16 || precision == Precision::kMixed;
    if (!halves) {
      report.notes.push_back(
          std::string("sums are float: sums half has no effect with precision ") +
          passes::name_of(precision) + "; use fp16, mixed or a plan");
    } else if (!target.device().half_arithmetic) {
      report.notes.push_back(
          "sums half are float here: the device has no half arithmetic (cl_khr_fp16)");
    }
  }
  engines.tell_failing(report);
  const bool rounds_borders = target.options.half_io && report.mixed && report.mixed->plan;
  for (std::size_t i = 0; rounds_borders && i < report.partitions.size(); ++i) {
    const auto& found = report.partitions[i].verification;
    if (!found || found->level == Level::kAsAsked) continue;
    report.notes.push_back(
        "partition " + std::to_string(i) + " does not follow the plan: option 'half_io' rounds " +
        "inputs and outputs beside it, and verification found too large an error; tune with " +
        "half_io, or load without it");
  }
  for (std::size_t i = 0; i < report.partitions.size(); ++i) {
    if (const std::string& why = report.partitions[i].on_cpu; !why.empty())
      report.notes.push_back("partition " + std::to_string(i) +
                             " is computed by the CPU's kernels for now: " + why);
  }
  std::size_t partition = 0;
  for (const runtime::ChainsTaken& taken : chains(ledger)) {
    if (!taken.note.empty())
      report.notes.push_back("partition " + std::to_string(partition) + ": " + taken.note);
    ++partition;
  }
  engines.tell_distrusted(report);
  for (const std::string& note : target.store->notes()) report.notes.push_back(note);
  engines.tell_notes(report);
  return report;
}

}  // namespace clgpu::delegate
