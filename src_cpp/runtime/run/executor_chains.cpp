// Launches of an executor that run as stages of chains.
#include <algorithm>
#include <chrono>
#include <set>

#include "base/finally.hpp"
#include "base/index.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {
namespace {

// By ChainVerdict: its name in the store, and the reason against chains.
constexpr const char* kVerdicts[][2] = {
    {"faster", ""},
    {"slower", "the launches are faster"},
    {"waited", "a work-group of a chain waited too long for the others"},
};

constexpr double kGain = 0.97;        // share of the launches' time: less is noise
constexpr double kSlice = 1e-3;       // seconds of a measurement
constexpr double kWorthwhile = 0.02;  // seconds of an inference: above, launches cost nothing
constexpr int kRounds = 5;

}  // namespace

ChainsTaken Executor::chains() const {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  return taken_;
}

void Executor::take_chains(const ChainsTaken& taken) {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  taken_ = taken;
}

void Executor::store_verdict(ChainVerdict verdict) {
  const char* name = kVerdicts[static_cast<int>(verdict)][0];
  store_->put(store::kTuning, chains_key_, name, "chains of launches: " + std::string(name));
}

void Executor::leave_chains(ChainVerdict verdict) {
  chains_.reset();
  take_chains({0, 0, kVerdicts[static_cast<int>(verdict)][1]});
  store_verdict(verdict);
  if (verdict == ChainVerdict::kWaited) clear_counters();
}

// A chain that gives up may leave them at any number.
void Executor::clear_counters() {
  std::set<int> cleared;
  for (const plan::Step& step : plan_.run) {
    std::size_t next = 0;
    for (const kernel::Arg& arg : step.launch.args) {
      const auto* operand = std::get_if<kernel::Operand>(&arg);
      if (operand == nullptr) continue;
      const int buffer = step.buffers[next++];
      const bool lasts = plan_.buffers[uz(buffer)].place == plan::Buffer::Place::kWeights;
      if (!operand->writes || !lasts || !cleared.insert(buffer).second) continue;
      const std::vector<std::uint8_t> zeros(uz(plan_.buffers[uz(buffer)].bytes));
      write(buffer, zeros.data(), zeros.size(), true);
    }
  }
}

// A failure leaves the executor with its launches.
void Executor::make_chains(const Chaining& chaining, bool may_measure) {
  if (mover_ != nullptr) return take_chains({0, 0, "tensors move between device and host"});
  std::vector<std::size_t> local_bytes;
  for (const BoundLaunch& bound : launches_)
    local_bytes.push_back(context_->local_bytes(bound.kernel));
  auto chains = std::make_unique<Chains>(*context_, plan_, local_bytes, chaining.limits);
  if (chains->empty()) return take_chains({0, 0, "no two launches in a row can be its stages"});
  chains_key_ = chains->key();
  const std::string stored = store_->get(store::kTuning, chains_key_).value_or("");
  for (const auto& [name, reason] : kVerdicts) {
    const bool holds = chaining.measured || name == kVerdicts[2][0];
    if (stored == name && reason[0] != '\0' && holds) return take_chains({0, 0, reason});
  }
  const bool measures = chaining.measured && stored.empty();
  if (measures && !may_measure)
    return take_chains({0, 0, "nothing is measured with the option 'warm_up' off"});
  if (!chaining.compiles && stored.empty())
    return take_chains({0, 0, "its shapes change often, and compiling for each takes seconds"});
  try {
    chains->build(*store_, programs_);
    chains_ = std::move(chains);
    stale_ = true;
    if (measures && !chains_are_faster()) {
      return leave_chains(ChainVerdict::kSlower);
    }
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    finish_all();
    chains_.reset();
    clear_counters();
    return take_chains({0, 0, error.what()});
  }
  if (measures) store_verdict(ChainVerdict::kFaster);
  take_chains(chains_->taken());
}

void Executor::launch_chained() {
  for (std::size_t i = 0; i < launches_.size();) {
    const std::size_t next = chains_->launch(i, queue_);
    if (next == i) launch(launches_[i++]);
    i = std::max(i, next);
  }
  chains_->ask(queue_);
}

double Executor::seconds_of(int runs, const std::function<void()>& enqueue) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) enqueue();
  finish("the time of chains");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / runs;
}

// Both in turns, with the contents of the arena. The least time of several is the one without
// disturbance.
bool Executor::chains_are_faster() {
  const auto alone = context_->whole_device();
  const Finally drain([this] {
    finish_all();
    transfers_.forget();
  });
  transfers_.stand_in();
  give_buffers();
  const auto one_by_one = [this] { launch_all(); };
  const auto chained = [this] { launch_chained(); };
  const double once = seconds_of(1, one_by_one);
  if (once > kWorthwhile) return false;
  const int runs = std::clamp(static_cast<int>(kSlice / once), 1, 50);
  double launches = once, chains = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    launches = std::min(launches, seconds_of(runs, one_by_one));
    chains = std::min(chains, seconds_of(runs, chained));
    if (!chains_->finished()) throw Error(kVerdicts[2][1]);
  }
  return chains < kGain * launches;
}

}  // namespace clgpu::runtime
