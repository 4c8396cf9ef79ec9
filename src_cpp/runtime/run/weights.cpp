#include "runtime/run/weights.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <variant>

#include "base/index.hpp"
#include "base/sha256.hpp"
#include "kernel/sources.hpp"
#include "plan/arena/peak.hpp"
#include "plan/operands.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {
namespace {

using plan::Buffer;

// Ends of fields.
constexpr std::string_view kEnd{"\0", 1};

// Of a constant in the file: others may be at the same place later. The ends of the bytes tell most
// files apart, too.
std::string key_of(const Buffer& buffer) {
  const ir::Constant& constant = *buffer.upload;
  Sha256 hash;
  if (constant.owner != nullptr) {  // scales, or decoded weights: every byte tells them apart
    hash.update(name_of(buffer.storage)).update(kEnd).update(std::to_string(buffer.bytes));
    hash.update(kEnd).update(name_of(constant.dtype)).update(kEnd);
    hash.update({static_cast<const char*>(constant.data), constant.bytes});
    return hash.digest();
  }
  const auto address = reinterpret_cast<std::uintptr_t>(constant.data);
  hash.update(std::to_string(address)).update(kEnd).update(std::to_string(constant.bytes));
  hash.update(kEnd).update(name_of(constant.dtype)).update(kEnd).update(name_of(buffer.storage));
  hash.update(kEnd).update(std::to_string(constant.bits));
  hash.update(kEnd).update(std::to_string(buffer.bytes)).update(kEnd);
  hash.update_ends({static_cast<const char*>(constant.data), constant.bytes});
  return hash.digest();
}

// Of what a step writes to its operand of this number; empty if what it reads has no key.
std::string key_of(const plan::Step& step, std::size_t number,
                   const std::vector<std::string>& keys) {
  const kernel::Launch& launch = step.launch;
  Sha256 hash;
  hash.update(kernel::source_digest(launch)).update(launch.entry).update(kEnd);
  hash.update(build_options(launch)).update(kEnd).update(std::to_string(number)).update(kEnd);
  for (const auto* range : {&launch.global, &launch.local}) {
    for (const std::size_t n : *range) hash.update(std::to_string(n)).update(kEnd);
  }
  bool known = true;
  std::size_t next = 0;
  for (const kernel::Arg& arg : launch.args) {
    hash.update(std::to_string(arg.index())).update(kEnd);
    if (const auto* number_arg = std::get_if<std::int32_t>(&arg)) {
      hash.update(std::to_string(*number_arg));
    } else if (const auto* real = std::get_if<float>(&arg)) {
      hash.update({reinterpret_cast<const char*>(real), sizeof *real});
    } else if (const auto* operand = std::get_if<kernel::Operand>(&arg)) {
      const std::string& key = keys[uz(step.buffers[next++])];
      // What was written to a part of a buffer before remains.
      hash.update(operand->image ? name_of(*operand->image) : "").update(key);
      known = known && (operand->writes || !key.empty());
    }
    hash.update(kEnd);
  }
  return known ? hash.digest() : std::string();
}

}  // namespace

std::shared_ptr<cl::Memory> Weights::find(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : found->second.lock();
}

void Weights::add(const std::string& key, const std::shared_ptr<cl::Memory>& memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = known_.begin(); entry != known_.end();)
    entry = entry->second.expired() ? known_.erase(entry) : std::next(entry);
  known_[key] = memory;
}

std::vector<std::string> weight_keys(const plan::Plan& plan) {
  std::vector<std::string> keys(plan.buffers.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (plan.buffers[i].upload != nullptr) keys[i] = key_of(plan.buffers[i]);
  }
  std::vector<bool> spoiled(keys.size());  // by contents without a key
  for (const plan::Step& step : plan.load) {
    std::vector<std::string> written(step.buffers.size());
    std::size_t number = 0;
    plan::for_operands(step, [&](int buffer, const kernel::Operand& operand) {
      if (operand.writes) {
        written[number] = key_of(step, number, keys);
        // It reads what it also writes, or writes a part of what another step has spoiled.
        if (written[number].empty() || (operand.reads && keys[uz(buffer)].empty()))
          spoiled[uz(buffer)] = true;
      }
      ++number;
    });
    for (std::size_t i = 0; i < written.size(); ++i) {
      if (!written[i].empty()) keys[uz(step.buffers[i])] = written[i];
    }
    for (const int buffer : step.buffers) {
      if (spoiled[uz(buffer)]) keys[uz(buffer)].clear();
    }
  }
  for (const plan::Step& step : plan.run) {
    plan::for_operands(step, [&](int buffer, const kernel::Operand& operand) {
      if (operand.writes) keys[uz(buffer)].clear();
    });
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (plan.buffers[i].place != Buffer::Place::kWeights) keys[i].clear();
  }
  return keys;
}

std::int64_t bytes_while_loading(const plan::Plan& plan, const std::vector<bool>& there) {
  const std::vector<bool> needed = needed_load_steps(plan, there);
  const std::vector<plan::LoadStep> schedule = plan::load_schedule(plan);
  std::vector<bool> allocated = there;
  std::int64_t now = 0, peak = 0;
  for (std::size_t i = 0; i < plan.load.size(); ++i) {
    if (needed[i]) {
      for (const int buffer : plan.load[i].buffers) {
        if (!allocated[uz(buffer)]) now += plan.buffers[uz(buffer)].bytes;
        allocated[uz(buffer)] = true;
      }
    }
    peak = std::max(peak, now);
    for (const int buffer : schedule[i].free) {
      if (allocated[uz(buffer)]) now -= plan.buffers[uz(buffer)].bytes;
      allocated[uz(buffer)] = false;
    }
  }
  return peak;
}

std::vector<bool> needed_load_steps(const plan::Plan& plan, const std::vector<bool>& there) {
  std::vector<bool> needed(plan.load.size()), wanted(plan.buffers.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = plan.buffers[i].place == Buffer::Place::kWeights && !there[i];
  for (const plan::HostSlot& slot : plan.slots) {
    if (slot.loaded_from >= 0) wanted[uz(slot.loaded_from)] = true;
  }
  for (std::size_t i = plan.load.size(); i-- > 0;) {
    const plan::Step& step = plan.load[i];
    bool any = false;
    plan::for_operands(step, [&](int buffer, const kernel::Operand& operand) {
      any = any || (operand.writes && wanted[uz(buffer)]);
    });
    needed[i] = any;
    for (const int buffer : step.buffers) {
      if (any && !there[uz(buffer)]) wanted[uz(buffer)] = true;
    }
  }
  return needed;
}

}  // namespace clgpu::runtime
