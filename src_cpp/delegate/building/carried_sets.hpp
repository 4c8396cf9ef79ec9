// The carried tensors of the interpreters of a delegate.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/target.hpp"
#include "runtime/run/carried.hpp"
#include "runtime/run/executor.hpp"
#include "runtime/run/pool.hpp"
#include "runtime/run/weights.hpp"

namespace clgpu::delegate {

class Holdings;

/// Of each row of a carried tensor, along the last axis.
struct Largest {
  std::vector<float> values;          ///< in descending order; or the sums of the rows
  std::vector<std::int32_t> indices;  ///< of the elements
};

/// Those of one interpreter. Graphs tell what has become of them there.
class Carriers {
 public:
  explicit Carriers(const Target& target);
  /// Of a node whose graphs hand on values: tensors with these names.
  Carriers(const Target& target, std::vector<std::string> names);

  const std::shared_ptr<runtime::CarriedSet>& set() const { return set_; }
  /// The arenas of all graphs that hand on values take turns in the pool that the first one made.
  std::shared_ptr<runtime::Pool> pool(const std::function<std::shared_ptr<runtime::Pool>()>& make);
  /// Graphs that hand on values are those of one model, with the same weights.
  const std::shared_ptr<runtime::Weights>& weights() const { return weights_; }

  /// What finds the largest elements of a tensor, by its number and how many; made once.
  using Finder = std::shared_ptr<runtime::Executor>;
  Finder finder(std::pair<int, int> what, const std::function<Finder()>& make);

  // The largest elements of a carried tensor that inferences find (ir::Tensor::largest_of). Only
  // the inference uses the memory until tell_found().

  /// Those of the last inference are not true any more. -1: of none.
  void forget_found(int number);
  /// Where an inference writes the values, which are float32, or the indices, int32.
  void* place_for_found(int number, DType type, std::size_t bytes);
  /// They are there, and true if nothing was forgotten since place_for_found().
  void tell_found(int number);
  /// With the count of the option; none if the last use of the tensor has not found them.
  std::optional<Largest> found(int number, int count) const;

  /// What the graphs hold on the device; null for those of a node.
  std::shared_ptr<const Holdings> holdings;

  /// What a graph does with a carried tensor. Thread-safe.
  void tell(int number, int graph, std::string reason);
  /// By graph: why the tensor is an ordinary input and output there; empty if it is carried.
  std::map<int, std::string> told(int number) const;
  /// Why a graph copies the next value on the device; empty where it is written in place.
  void tell_copied(int number, int graph, std::string reason);
  std::map<int, std::string> copied(int number) const;

 private:
  const std::shared_ptr<runtime::CarriedSet> set_;
  const std::shared_ptr<runtime::Weights> weights_ = std::make_shared<runtime::Weights>();
  std::mutex making_;  // of finders_
  mutable std::mutex mutex_;
  std::shared_ptr<runtime::Pool> pool_;
  std::map<std::pair<int, int>, Finder> finders_;
  std::vector<std::map<int, std::string>> told_, copied_;  // by number
  struct Found {
    Largest largest;
    bool is_true = false;
    std::uint64_t forgotten = 0, before = 0;  ///< how often; the same when an inference began
  };
  std::map<int, Found> found_;  // by number
  std::vector<int> counts_;     // by number: CarriedTensor::largest
};

/// Thread-safe.
class CarriedSets {
 public:
  /// Those of the interpreter whose main graph is `main`; null if the options name none.
  std::shared_ptr<Carriers> of(const TfLiteContext* main, const Target& target);
  /// Those of the interpreter that was served last; null if there is none.
  std::shared_ptr<Carriers> last() const;

 private:
  mutable std::mutex mutex_;
  std::map<const TfLiteContext*, std::weak_ptr<Carriers>> known_;
  std::weak_ptr<Carriers> last_;
};

}  // namespace clgpu::delegate
