// What all interpreters that use one delegate share: options, device, reports, counters.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "delegate/build/tuning.hpp"
#include "delegate/claim/placement.hpp"
#include "delegate/options.hpp"
#include "delegate/tell/profile.hpp"
#include "delegate/tell/report.hpp"
#include "ir/graph.hpp"
#include "plan/budget/fit.hpp"
#include "runtime/measure/alone.hpp"
#include "runtime/measure/probe.hpp"
#include "runtime/run/executor.hpp"
#include "runtime/run/programs.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {
class Stream;
}

namespace clgpu::delegate {

struct Stats {
  std::uint64_t invokes = 0;
  cl::Counters total;        ///< of all invokes
  cl::Counters last_invoke;  ///< of all partitions of one graph
  cl::Counters load;         ///< of building and planning
};

/// One graph of one interpreter: what its partitions share.
struct Session {
  std::uint64_t report = 0;             ///< number of its report
  cl::Counters invoke;                  ///< of the inference under way
  runtime::Pace pace;                   ///< with Options::profile
  std::shared_ptr<runtime::Pool> pool;  ///< of their arenas: they never run at the same time
  // By partition, in bytes of device memory.
  std::map<int, std::int64_t> held;   ///< peaks of those that are built
  std::map<int, std::int64_t> share;  ///< parts of the budget, where taking turns did not do
  PlacementReport placement;
  std::string placement_note;
};

/// A partition that is the whole model, with several inferences in flight.
struct Streamed {
  std::shared_ptr<runtime::Stream> stream;
  std::vector<int> inputs, outputs;  ///< TFLite's indices of uploads and of downloads
};

/// A partition as it runs: its graph with the shapes of the moment, rewritten to fit into memory.
struct Built {
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<runtime::Executor> executor;
};

class State {
 public:
  explicit State(Options chosen)
      : options(std::move(chosen)),
        context(cl::Context::of(cl::find_device(options.device))),
        store(store::Store::of_option(options.cache)),
        device_(runtime::probe(*context, *store)) {}

  const Options options;
  const std::shared_ptr<cl::Context> context;
  const std::shared_ptr<store::Store> store;  ///< off where the options or the system say so

  Verdicts verdicts;  ///< of placement="measured"

  /// With the facts that a probe has found.
  const DeviceInfo& device() const { return device_.info; }

  /// Plans and builds a graph with inferred shapes within `budget` bytes of device memory (0: what
  /// there is); candidates that fail on this device are remembered and left out. Where the device
  /// has less memory than it says, plans for less. Throws plan::NoCandidate when a family has no
  /// candidate left, and plan::BudgetError.
  /// Engines that are distrusted are left out, too.
  Built build(const ir::Graph& graph, std::int64_t budget,
              const std::shared_ptr<runtime::Pool>& pool, Level level = Level::kAsAsked);

  /// From now on build() leaves this engine out, here and, by the store, in other processes.
  /// `engine` is plan::engine_signature, `name` is for people.
  void distrust(const std::string& engine, const std::string& name, const std::string& why);
  /// runtime::run_alone as build() would compute the node, by engines that are distrusted, too.
  runtime::Alone run_alone(
      const ir::Graph& graph, std::size_t position, const std::string& candidate, Level level,
      const std::function<const void*(const ir::Tensor&, std::int64_t bytes)>& input) const;
  /// Verdicts of verification, kept for this device.
  std::optional<std::string> kept_verdict(const std::string& signature) const;
  void keep_verdict(const std::string& signature, const std::string& verdict,
                    const std::string& label) const;

  /// The arenas of a graph's partitions are of this pool: a new one, or that of the process.
  std::shared_ptr<runtime::Pool> pool() const;

  /// What a graph with inferred shapes is expected to cost, instead of `cpu_nodes` nodes of the
  /// model with so many threads. Plans, but builds nothing; throws as build().
  plan::Cost expected(const ir::Graph& graph, std::int64_t budget, int cpu_nodes, int threads);

  /// The same of each partition of the report, with what it is made of.
  std::vector<std::pair<plan::Load, plan::Cost>> estimates(int threads) const;

  /// The smallest budget that build() takes for this graph.
  std::int64_t smallest_budget(const ir::Graph& graph) const;

  /// Measures the layers of the partitions of the report, the most expensive first, and keeps the
  /// winners in the store and for interpreters to come. No further candidate is tried after
  /// `budget` seconds. With `again`, layers measured before are, too. Throws Error as device_time
  /// does, and what `progress` throws.
  std::vector<TunedLayer> tune(double budget, bool again, const OnProgress& progress);

  // The following are guarded by one mutex: interpreters run in any thread.
  Report report() const;
  /// Keeps what went wrong for the report; nothing: a model is prepared from the beginning.
  void fail(std::optional<Failure> failure);
  /// Makes this the report to show, and numbers it.
  std::uint64_t set_report(Report report);
  /// The number of the report that the calling thread has made last, of whichever state; 0: none.
  static std::uint64_t last_report();
  /// Completes the report of this number; without effect once another graph's report has replaced
  /// it.
  void set_partition(std::uint64_t number, int partition, const PartitionReport& report,
                     const std::shared_ptr<const ir::Graph>& graph,
                     const std::shared_ptr<runtime::Executor>& executor);
  Stats stats() const;
  /// By partition of the report, as long as its interpreter has it: the roads of its inputs and
  /// outputs.
  std::vector<std::vector<runtime::RoadTaken>> roads() const;
  /// Adds the cost of one partition; the first one of a graph begins an inference.
  void count_invoke(Session& session, bool first, const cl::Counters& cost);
  void count_load(const cl::Counters& cost);

  /// Of the one partition of the report, with at most `lanes` inferences in flight, and fewer where
  /// the memory budget asks for it. `verified`: its first inference was looked at, as the option
  /// wants it. `number`, if it is given, is that of the report that the caller means. Throws Error
  /// where that cannot be, with the reason.
  Streamed stream(int lanes, bool verified, std::optional<std::uint64_t> number) const;

  /// Executor::device_time, summed over the partitions of the report. Like launch_times it throws
  /// Error when none of them exists any more.
  double device_time(int runs, int node) const;
  /// Executor::launch_times of the partitions of the report, in their order.
  std::vector<LaunchTime> launch_times(int rounds) const;
  /// What was recorded of the partitions of the report, by partition; nothing without
  /// Options::profile. Outlives their interpreter.
  Profile profile() const;
  /// Forgets that, and has so many inferences in a row recorded.
  void reset_profile(int in_a_row);
  /// Where the tensors of the partitions of the report lie; none of those that are gone.
  std::vector<PartitionMemory> memory_map() const;
  /// The programs of the partitions of the report; none of those that are gone.
  std::vector<runtime::ProgramUse> programs() const;

 private:
  /// A layer to be measured: the first node of those alike.
  struct Tunable {
    TunedLayer layer;
    std::shared_ptr<const ir::Graph> graph;
    std::size_t position;  ///< of the node in the graph
    plan::Choice choice;
    double cost = 0;  ///< seconds per inference of all nodes alike, before tuning
    bool pending = true;
  };
  /// A partition of the report, as long as its interpreter has it.
  struct Live {
    std::weak_ptr<runtime::Executor> executor;
    std::weak_ptr<const ir::Graph> graph;
    std::shared_ptr<runtime::Recorder> recorder;
  };

  std::vector<std::shared_ptr<runtime::Executor>> live_executors() const;
  std::vector<std::shared_ptr<runtime::Executor>> executors() const;  ///< throws if there are none
  Built plan_and_build(const ir::Graph& graph, std::int64_t budget,
                       const std::shared_ptr<runtime::Pool>& pool, Level level);
  plan::PlanOptions plan_options(std::int64_t budget, Level level = Level::kAsAsked) const;
  plan::Broken broken() const;
  /// Why, from the store as well; empty where it is trusted.
  std::string distrusted(const std::string& family, const kernel::Candidate& candidate) const;
  /// What was measured for a signature, in this process or, through the store, in another.
  runtime::Contest record(const std::string& signature) const;
  std::string key(const std::string& signature) const;
  void drop_records(const plan::Plan& plan);
  void collect(const std::shared_ptr<const ir::Graph>& graph, runtime::Executor& executor,
               bool again, std::vector<Tunable>& tunables) const;
  void measure(std::vector<Tunable>& tunables, double budget, const OnProgress& progress);

  const runtime::ProbedDevice device_;
  mutable std::mutex mutex_;
  Report report_;
  std::uint64_t report_number_ = 0;
  std::optional<Failure> failure_;
  std::vector<std::string> reasons_;  // of the report's nodes, before anything is built
  std::vector<Live> live_;            // one per partition of the report
  Stats stats_;
  plan::Broken broken_;
  plan::Broken failed_;  // while nothing of their family could be built: told, and tried again
  struct Wrong {
    std::string name, why;  // no reason where an engine is trusted
  };
  mutable std::map<std::string, Wrong> engines_;  // verdicts by plan::engine_signature
  std::map<std::string, std::string> records_;    // of contests held here, by signature
  std::set<std::string> notes_;
};

}  // namespace clgpu::delegate
