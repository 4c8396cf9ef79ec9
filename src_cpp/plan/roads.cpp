#include "plan/roads.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "base/index.hpp"
#include "base/page.hpp"

namespace clgpu::plan {
namespace {

// CPU devices share the host's caches, so only the kernels' vectors (float16) need alignment. Other
// drivers give a device whole pages, and write back whole cache lines.
constexpr std::uintptr_t kVectorBytes = 64;
constexpr std::int64_t kLineBytes = 64;

// Of fewer, an upload takes as long from other memory, and the host copies results that are in a
// pinned block.
constexpr std::int64_t kPinnedBytes = 64 << 10;

constexpr const char* kStays = "it shares the memory of a tensor that stays on the device";

// Empty if the runtime's tensor may be the buffer.
std::string reason_against(const Transfer& t, const PlanOptions& options, bool is_static,
                           bool is_alone) {
  if (t.bytes != t.host_bytes) return "the host converts between float and half";
  if (!options.share_memory) return "the option 'share_memory' is off";
  if (is_static) return "a constant";
  if (!is_alone) return "it shares the memory of another input or output";
  return {};
}

// How many inputs and outputs each buffer holds.
std::map<int, int> uses_of(const Plan& plan) {
  std::map<int, int> uses;
  for (const auto* transfers : {&plan.uploads, &plan.downloads}) {
    for (const Transfer& t : *transfers) ++uses[t.buffer];
  }
  return uses;
}

// Buffers that launches of an inference write.
std::set<int> written_by(const Plan& plan) {
  std::set<int> written;
  for (const Step& step : plan.run) {
    std::size_t next = 0;
    for (const kernel::Arg& arg : step.launch.args) {
      const auto* operand = std::get_if<kernel::Operand>(&arg);
      if (operand == nullptr) continue;
      const int buffer = step.buffers[next++];
      if (operand->writes) written.insert(buffer);
    }
  }
  return written;
}

}  // namespace

const char* name_of(Road road) {
  switch (road) {
    case Road::kHostPointer:
      return "host_pointer";
    case Road::kMapped:
      return "mapped";
    case Road::kCopy:
      break;
  }
  return "copy";
}

Road second_best(const DeviceInfo& device) { return device.is_cpu() ? Road::kCopy : Road::kMapped; }

void choose_roads(Plan& plan, const DeviceInfo& device, const PlanOptions& options,
                  const std::vector<bool>& is_static) {
  std::map<int, int> uses = uses_of(plan);
  for (auto* transfers : {&plan.uploads, &plan.downloads}) {
    for (Transfer& t : *transfers) {
      t.road = Road::kCopy;
      t.pinned = options.pin_tensors && t.bytes == t.host_bytes && t.bytes >= kPinnedBytes;
      t.by_block = !device.unified_memory && transfers == &plan.downloads && t.bytes < kPinnedBytes;
      if (!options.zero_copy) {
        t.reason = "the option 'zero_copy' is off";
        continue;
      }
      if (!device.unified_memory) {
        t.reason = "the device has its own memory";
        continue;
      }
      const auto buffer = static_cast<std::size_t>(t.buffer);
      const bool stays =
          plan.buffers[buffer].carried >= 0 || plan.buffers[buffer].place == Buffer::Place::kKept;
      t.reason =
          stays ? kStays : reason_against(t, options, is_static[buffer], uses[t.buffer] == 1);
      if (t.reason.empty()) {
        t.road = Road::kHostPointer;
        if (device.is_cpu()) plan.buffers[buffer].place = Buffer::Place::kHost;
      } else {
        // Converting directly into the object saves a copy even on a CPU.
        t.road = t.bytes != t.host_bytes ? Road::kMapped : second_best(device);
      }
    }
  }
}

void settle_roads(Plan& plan, const DeviceInfo& device) {
  std::map<int, int> uses = uses_of(plan);
  const std::set<int> written = written_by(plan);
  const auto settle = [&](Transfer& t, bool is_input) {
    if (t.road != Road::kHostPointer) return;
    const Buffer::Place place = plan.buffers[uz(t.buffer)].place;
    const bool stays = place == Buffer::Place::kCarried || place == Buffer::Place::kKept;
    if (!stays && uses[t.buffer] == 1 && !(is_input && written.count(t.buffer) > 0)) return;
    CLGPU_CHECK(stays || place == Buffer::Place::kArena);
    t.road = second_best(device);
    t.reason = stays ? kStays : "a result is written over it";
  };
  for (Transfer& t : plan.uploads) settle(t, true);
  for (Transfer& t : plan.downloads) settle(t, false);
}

std::vector<bool> bindable(const Plan& plan) {
  std::map<int, int> uses = uses_of(plan);
  const std::set<int> written = written_by(plan);
  std::set<int> moved;
  for (const Move& move : plan.moves) moved.insert(move.buffer);
  std::vector<bool> may;
  const auto add = [&](const Transfer& t, bool is_input) {
    const Buffer::Place place = plan.buffers[uz(t.buffer)].place;
    // An input is the application's: no result may be written over it. An output must be written.
    const bool fits = is_input != (written.count(t.buffer) > 0);
    may.push_back(fits && t.bytes == t.host_bytes && uses[t.buffer] == 1 &&
                  moved.count(t.buffer) == 0 &&
                  (place == Buffer::Place::kArena || place == Buffer::Place::kHost));
  };
  for (const Transfer& t : plan.uploads) add(t, true);
  for (const Transfer& t : plan.downloads) add(t, false);
  return may;
}

std::int64_t whole_lines(std::int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::string host_pointer_problem(const DeviceInfo& device, const void* data, std::int64_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t alignment =
      device.is_cpu() ? kVectorBytes
                      : std::max<std::uintptr_t>(device.base_align_bytes, page_bytes());
  if (address % alignment != 0) {
    return "the runtime's memory is not aligned to " + std::to_string(alignment) + " bytes";
  }
  if (!device.is_cpu() && bytes % kLineBytes != 0) {
    return "its " + std::to_string(bytes) + " bytes are not a multiple of the cache line size, " +
           std::to_string(kLineBytes);
  }
  return {};
}

}  // namespace clgpu::plan
