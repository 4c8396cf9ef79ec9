// The report on the model that was prepared last, and the counters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "delegate/tell/report.hpp"
#include "ir/graph.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::delegate {

struct Stats {
  std::uint64_t invokes = 0;
  cl::Counters total;        ///< of all invokes
  cl::Counters last_invoke;  ///< of all partitions of one graph
  cl::Counters load;         ///< of building and planning
};

/// A partition of the report, while its interpreter exists.
struct Live {
  struct Held {
    std::shared_ptr<runtime::Executor> executor;  ///< null if the CPU computes the partition
    std::shared_ptr<const ir::Graph> graph;       ///< as it was planned; null there, too
    std::shared_ptr<const ir::Graph> original;    ///< before any pass
  };
  /// Null if the interpreter no longer exists.
  std::optional<Held> hold() const;

  std::weak_ptr<runtime::Executor> executor;
  std::weak_ptr<const ir::Graph> graph, original;
  std::shared_ptr<runtime::Recorder> recorder;
};

/// Thread-safe: interpreters run in any thread.
class Ledger {
 public:
  /// The current report, without the records of engines, and its partitions.
  struct Shown {
    std::uint64_t number = 0;
    Report report;
    std::vector<Live> partitions;
  };
  Shown shown() const;
  std::vector<Live> partitions() const;

  /// Stores the last failure for the report; none at the start of a Prepare.
  void fail(std::optional<Failure> failure);
  /// Makes this the report to show, and numbers it.
  std::uint64_t set_report(Report report);
  /// The number of the calling thread's last report, of any ledger; 0: none.
  static std::uint64_t last_report();
  /// Completes the report with this number; has no effect after another graph's report has replaced
  /// it.
  void set_partition(std::uint64_t number, int partition, const PartitionReport& report,
                     const Live::Held& held);

  /// Report::totals of the report with this number.
  void set_totals(std::uint64_t number, const std::optional<MemoryTotals>& totals);

  /// Forgets the plans of the partitions after this one, because of `why`: the runtime prepares
  /// them again when it has run.
  void unplan_after(std::uint64_t number, int partition, const std::string& why);
  /// The tensors that nodes on the CPU read and write, by the report with this number.
  std::vector<int> tensors_of_cpu(std::uint64_t number) const;
  /// Gives tensors their present shapes, by their numbers in TFLite, in the report with this
  /// number.
  void set_shapes(std::uint64_t number, const std::map<int, ShapeReport>& shapes);

  Stats stats() const;
  /// Adds the cost of one partition to that of the `inference`, which begins with the graph's first
  /// partition.
  void count_invoke(cl::Counters& inference, bool first, const cl::Counters& cost);
  /// Adds what was computed of the results of the last inference.
  void count_after_invoke(const cl::Counters& cost);
  void count_load(const cl::Counters& cost);

 private:
  void set(int partition, const PartitionReport& report, const Live::Held& held);

  mutable std::mutex mutex_;
  Report report_;
  std::uint64_t number_ = 0;
  std::vector<std::string> reasons_;  // of the report's nodes, before anything is built
  std::vector<Live> live_;            // one per partition of the report
  Stats stats_;
};

}  // namespace clgpu::delegate
