// Weights on the device that the executors of an interpreter's graphs share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl/memory.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// By keys that tell the contents. Holds only what an executor holds. Thread-safe.
class Weights {
 public:
  /// Null if nobody has them.
  std::shared_ptr<cl::Memory> find(const std::string& key) const;
  /// When all of the contents are on the device.
  void add(const std::string& key, const std::shared_ptr<cl::Memory>& memory);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<cl::Memory>> known_;
};

/// For each buffer that stays on the device between inferences: a key of its contents after
/// loading. Empty for other buffers, and where inferences write it or the contents do not follow
/// from constants in the model's file. Keys of two plans are comparable while the file is in
/// memory.
std::vector<std::string> weight_keys(const plan::Plan& plan);

/// The most bytes that an executor has while it loads, without those in `there`.
std::int64_t bytes_while_loading(const plan::Plan& plan, const std::vector<bool>& there);

/// Which load steps compute what the device lacks: the buffers in `there` are on it already.
std::vector<bool> needed_load_steps(const plan::Plan& plan, const std::vector<bool>& there);

}  // namespace clgpu::runtime
