// Launches of an executor that run as stages of chains.
#include <algorithm>
#include <set>

#include "base/finally.hpp"
#include "base/index.hpp"
#include "plan/operands.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {
namespace {

// In the store.
const char* name_of(ChainVerdict verdict) {
  switch (verdict) {
    case ChainVerdict::kFaster:
      return "faster";
    case ChainVerdict::kSlower:
      return "slower";
    default:
      return "waited";
  }
}

// Against chains.
constexpr const char* kSlowerReason = "the launches are faster";
constexpr const char* kWaitedReason = "a work-group of a chain waited too long for the others";

constexpr const char* kLabel = "chains of launches";  // in the store

}  // namespace

ChainsTaken Executor::chains() const {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  return taken_;
}

void Executor::take_chains(const ChainsTaken& taken) {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  taken_ = taken;
}

void Executor::leave_chains_out(std::string reason) { take_chains({0, 0, 0, std::move(reason)}); }

void Executor::leave_chains(ChainVerdict verdict) {
  const bool waited = verdict == ChainVerdict::kWaited;
  chains_.reset();
  leave_chains_out(waited ? kWaitedReason : kSlowerReason);
  store_verdict(chains_key_, kLabel, name_of(verdict), true);
  if (waited) clear_counters();
}

// Whether an output is in the memory of an input.
bool Executor::overlap(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                       const Lent& lent) const {
  const auto address = [](const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::uintptr_t from = address(inputs[i]);
    const auto bytes = static_cast<std::uintptr_t>(plan_.uploads[i].host_bytes);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      const std::uintptr_t to = address(outputs[j]);
      const auto size = static_cast<std::uintptr_t>(plan_.downloads[j].host_bytes);
      if (from != 0 && to != 0 && from < to + size && to < from + bytes) return true;
      const std::size_t other = inputs.size() + j;
      if (other < lent.buffers.size() && lent.buffers[i] != nullptr &&
          lent.buffers[i] == lent.buffers[other])
        return true;
    }
  }
  return false;
}

// A chain that gives up may leave them at any number.
void Executor::clear_counters() {
  std::set<int> cleared;
  for (const plan::Step& step : plan_.run) {
    plan::for_operands(step, [&](int buffer, const kernel::Operand& operand) {
      const bool lasts = plan_.buffers[uz(buffer)].place == plan::Buffer::Place::kWeights;
      if (!operand.writes || !lasts || !cleared.insert(buffer).second) return;
      const std::vector<std::uint8_t> zeros(uz(plan_.buffers[uz(buffer)].bytes));
      write(buffer, zeros.data(), zeros.size(), true);
    });
  }
}

std::vector<std::size_t> Executor::local_bytes() const {
  std::vector<std::size_t> bytes;
  for (const BoundLaunch& bound : launches_)
    bytes.push_back(bound.runs_graphs() ? 0 : context_->local_bytes(bound.kernel));
  return bytes;
}

BundlesTaken Executor::bundles() const {
  if (bundles_ != nullptr) return bundles_->taken();
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  return {0, 0, bundles_error_};
}

// A failure leaves the executor with its launches.
void Executor::make_bundles(bool may_run) {
  try {
    auto bundles = std::make_unique<Bundles>(*context_, *addresses_, plan_, local_bytes());
    if (bundles->empty()) return;
    bundles->build(*store_, programs_);
    bundles_ = std::move(bundles);
    stale_ = true;
    if (!may_run) return;
    const Finally drain([this] {
      finish_all();
      transfers_.forget();
    });
    transfers_.stand_in();
    give_buffers();
    bundles_->try_all(*store_, queue_);
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    finish_all();
    bundles_.reset();
    const std::lock_guard<std::mutex> lock(taken_mutex_);
    bundles_error_ = error.what();
  }
}

// A failure leaves the executor with its launches.
void Executor::make_chains(const Chaining& chaining, bool may_run) {
  if (chaining.limits.groups == 0)
    return leave_chains_out("work-groups that wait for each other do not all run in a probe");
  if (mover_ != nullptr) return leave_chains_out("tensors move between device and host");
  if (!runners_.empty()) return leave_chains_out("the host decides what a node runs");
  auto chains =
      std::make_unique<Chains>(*context_, *addresses_, plan_, local_bytes(), chaining.limits);
  if (chains->empty()) return leave_chains_out("no two launches in a row can be its stages");
  chains_key_ = chains->key();
  const std::string stored = store_->get(store::kTuning, chains_key_).value_or("");
  if (stored == name_of(ChainVerdict::kWaited)) return leave_chains_out(kWaitedReason);
  if (chaining.measured && stored == name_of(ChainVerdict::kSlower))
    return leave_chains_out(kSlowerReason);
  const bool measures = chaining.measured && stored != name_of(ChainVerdict::kFaster);
  if (measures && !may_run)
    return leave_chains_out("nothing is measured with the option 'warm_up' off");
  if (!chaining.compiles && stored.empty())
    return leave_chains_out("compiling takes seconds, and its plan often changes");
  bool launched = false;
  try {
    chains->build(*store_, programs_);
    chains_ = std::move(chains);
    stale_ = true;
    if (may_run) {
      const auto alone = context_->whole_device();
      const Finally drain([this] {
        finish_all();
        transfers_.forget();
      });
      transfers_.stand_in();
      give_buffers();
      launched = true;
      try_chains();
      if (measures) {
        const std::optional<ChainVerdict> verdict = measure_chains();
        if (!verdict) {
          chains_.reset();
          return leave_chains_out("an inference takes so long that launches cost nothing");
        }
        if (*verdict == ChainVerdict::kSlower) return leave_chains(*verdict);
        store_verdict(chains_key_, kLabel, name_of(*verdict), false);
      }
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    finish_all();
    chains_.reset();
    leave_chains_out(error.what());
    if (launched) clear_counters();
    return;
  }
  take_chains(chains_->taken());
}

// The first launch of a kernel may fail, or compile it.
void Executor::try_chains() {
  launch_chained();
  finish("the first run of chains");
  if (!chains_->finished()) throw Error(kWaitedReason);
}

void Executor::launch_chained() {
  remind();
  for (std::size_t i = 0; i < launches_.size();) {
    const std::size_t next = chains_->launch(i, queue_);
    if (next > i) flusher_.launched(queue_);
    // A chain must begin where it was planned: what it leaves out when one before it has given up
    // must not run as launches.
    i = next > i ? next : launch_bundle(i, chains_->next(i));
  }
  chains_->ask(queue_);
}

std::optional<ChainVerdict> Executor::measure_chains() {
  const std::optional<bool> faster =
      is_faster([this] { launch_all(); }, [this] { launch_chained(); },
                [this] {
                  if (!chains_->finished()) throw Error(kWaitedReason);
                });
  if (!faster) return std::nullopt;
  return *faster ? ChainVerdict::kFaster : ChainVerdict::kSlower;
}

}  // namespace clgpu::runtime
