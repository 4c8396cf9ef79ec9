// Device memory that the graphs of an interpreter hold together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/tell/report.hpp"
#include "plan/plan.hpp"

namespace clgpu::delegate {

/// Bytes of plans that are built one after the other. Weights that plans share, arenas in one pool
/// and carried tensors count once.
class HeldBytes {
 public:
  /// `keys`: as runtime::weight_keys; empty: the plan shares no weights. Plans with the same
  /// `weights` share theirs, plans with the same `pool` take turns in it.
  void add(const plan::Plan& plan, const std::vector<std::string>& keys, const void* weights,
           const void* pool);
  /// The peak counts from now on.
  void forget_peak() { totals_.peak_bytes = 0; }
  const MemoryTotals& totals() const { return totals_; }

 private:
  std::int64_t now() const {
    return totals_.arena_bytes + totals_.weights_bytes + totals_.carried_bytes;
  }

  MemoryTotals totals_;
  std::set<std::pair<const void*, std::string>> shared_;    // weights: owner and key
  std::map<const void*, std::vector<std::int64_t>> slots_;  // by pool
  std::set<std::pair<const void*, int>> carried_;           // owner and number
};

/// A partition, as those of other graphs see it.
class Holder {
 public:
  Holder() = default;
  virtual ~Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// The same for partitions of one graph.
  virtual const void* graph() const = 0;
  /// Adds what it holds on the device, if it is built.
  virtual void add_to(HeldBytes& held) const = 0;
  /// Bytes of the smallest plan for the present shapes.
  virtual std::int64_t least_bytes() const = 0;
  /// The plan for the present shapes within so many bytes.
  virtual plan::Plan plan_within(std::int64_t bytes) const = 0;
  /// Adds what such a plan would hold.
  virtual void add_planned_to(HeldBytes& held, const plan::Plan& plan) const = 0;
  /// Frees what it holds.
  virtual void release() = 0;
  /// Builds such a plan, and reports it.
  virtual void build_again_within(std::int64_t bytes) = 0;
};

/// The partitions of an interpreter that are built. Used by the thread that serves it.
class Holdings {
 public:
  void enter(Holder& holder);
  void leave(const Holder& holder);

  /// Those of all graphs, in the order in which they were built, without one of them.
  std::vector<Holder*> without(const Holder& holder) const;
  /// Whether another graph than that of the partition has any.
  bool has_other_graphs(const Holder& holder) const;

  /// What all of them hold.
  void add_to(HeldBytes& held) const;

  /// Memory that was in use before partitions were planned again for less.
  void remember_peak();
  /// None where the partitions are of one graph that carries nothing.
  std::optional<MemoryTotals> totals() const;

  std::uint64_t report = 0;  ///< number of the main graph's report

 private:
  MemoryTotals sum() const;

  std::vector<Holder*> built_;
  std::int64_t earlier_peak_ = 0;
};

/// Those of the interpreters of a delegate. Thread-safe.
class HoldingSets {
 public:
  /// Of the interpreter whose main graph is `main`.
  std::shared_ptr<Holdings> of(const TfLiteContext* main);

 private:
  std::mutex mutex_;
  std::map<const TfLiteContext*, std::weak_ptr<Holdings>> known_;
};

}  // namespace clgpu::delegate
