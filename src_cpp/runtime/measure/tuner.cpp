#include "runtime/measure/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/bfloat.hpp"
#include "base/half.hpp"
#include "plan/budget/planner.hpp"
#include "plan/isolate.hpp"
#include "runtime/run/executor.hpp"

namespace clgpu::runtime {
namespace {

constexpr std::size_t kRounds = 5;
constexpr std::size_t kDuelRounds = 9;
constexpr std::size_t kFirstRuns = 3;   // of a candidate that seems hopeless
constexpr int kMostRuns = 1000;         // of one round
constexpr double kRoundSeconds = 4e-3;  // of runs of one candidate, back to back
constexpr double kHopeless = 3.0;       // times the best: dropped after one run
constexpr double kBehind = 1.5;         // times the best: dropped after two rounds
constexpr double kEnough = 0.5;         // seconds of measuring after which two rounds suffice
constexpr double kNoise = 1.05;  // a winner is faster than the default by more; less has no effect
                                 // in a network, where caches hold what other layers have left
constexpr double kWaitSeconds = 20e-6;  // of one clFinish, at most: part of a single run's time
constexpr double kFewNonFinite = 1e-3;  // share of elements that may overflow in one result only
constexpr std::size_t kPeriod = 1'000'003;       // of random inputs, in elements
constexpr std::size_t kCompared = 1U << 22;      // elements of a result, about; evenly distributed
constexpr std::int64_t kPoisonBytes = 64 << 20;  // larger arenas are not filled with NaN
constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;  // of candidates measured in turns

using Bytes = std::vector<std::uint8_t>;

// Reals from -1 to 1, repeated after a prime number of them, so that no two rows of a tensor are
// alike. Integers may be indices or sizes: 0 is always valid.
Bytes random_bytes(DType dtype, std::int64_t host_bytes) {
  Bytes bytes(static_cast<std::size_t>(host_bytes));
  std::uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  };
  const auto fill = [&](auto convert) {
    using T = decltype(convert(0.0F));
    const std::size_t period = std::min(bytes.size(), kPeriod * sizeof(T));
    for (std::size_t at = 0; at + sizeof(T) <= period; at += sizeof(T)) {
      const T value = convert(next());
      std::memcpy(&bytes[at], &value, sizeof value);
    }
    for (std::size_t at = period; at < bytes.size(); at += period)
      std::memcpy(&bytes[at], bytes.data(), std::min(period, bytes.size() - at));
  };
  if (dtype == DType::kF32 || dtype == DType::kC64) fill([](float x) { return x; });
  if (dtype == DType::kF16) fill(float_to_half);
  if (dtype == DType::kBF16) fill(float_to_bfloat);
  return bytes;
}

// The difference between `got` and `want`: the relative L2 norm for reals; for others the share of
// bytes that differ.
double distance(DType dtype, const Bytes& got, const Bytes& want) {
  double error = 0, norm = 0;
  std::size_t count = 0, odd = 0;
  const auto compare = [&](double g, double w) {
    ++count;
    if (g == w || (std::isnan(g) && std::isnan(w))) {
      norm += std::isfinite(w) ? w * w : 0;
    } else if (!std::isfinite(g) || !std::isfinite(w)) {
      ++odd;
    } else {
      error += (g - w) * (g - w);
      norm += w * w;
    }
  };
  // An odd step reaches every column, even if the row length is a power of two.
  const auto step_of = [](std::size_t n) { return n / kCompared + (n / kCompared + 1) % 2; };
  const auto element = [](const Bytes& bytes, std::size_t i, auto x) {
    std::memcpy(&x, &bytes[i * sizeof x], sizeof x);
    return x;
  };
  if (dtype == DType::kF32 || dtype == DType::kC64) {
    const std::size_t n = want.size() / sizeof(float);
    for (std::size_t i = 0; i < n; i += step_of(n))
      compare(static_cast<double>(element(got, i, 0.0F)),
              static_cast<double>(element(want, i, 0.0F)));
  } else if (is_float(dtype)) {
    const std::size_t n = want.size() / sizeof(std::uint16_t);
    for (std::size_t i = 0; i < n; i += step_of(n)) {
      const auto value = [&](const Bytes& bytes) {
        const std::uint16_t bits = element(bytes, i, std::uint16_t{});
        return static_cast<double>(dtype == DType::kF16 ? half_to_float(bits)
                                                        : bfloat_to_float(bits));
      };
      compare(value(got), value(want));
    }
  } else {
    std::size_t differing = 0;
    for (std::size_t i = 0; i < want.size(); ++i) differing += got[i] != want[i] ? 1U : 0U;
    return want.empty() ? 0 : static_cast<double>(differing) / static_cast<double>(want.size());
  }
  if (static_cast<double>(odd) > kFewNonFinite * static_cast<double>(count)) return INFINITY;
  if (error == 0) return 0;
  return std::sqrt(error / std::max(norm, 1e-30));
}

// Only the elements of a slice: here nothing writes the other elements of the whole.
Bytes slice_of(const Bytes& whole, const ir::Tensor& slice) {
  const std::size_t size = size_of(slice.dtype);
  const std::size_t run = static_cast<std::size_t>(slice.shape.back(0)) * size;
  Bytes result(static_cast<std::size_t>(slice.shape.elements()) * size);
  std::size_t from = static_cast<std::size_t>(slice.placement->first) * size;
  for (std::size_t to = 0; to < result.size(); to += run) {
    std::memcpy(&result[to], &whole[from], run);
    from += static_cast<std::size_t>(slice.placement->pitch) * size;
  }
  return result;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.2g", value);
  return digits;
}

// A candidate that is built, with the times of its rounds so far.
struct Entrant {
  Trial* trial;
  std::unique_ptr<Executor> executor;
  int runs = 1;
  std::vector<double> seconds{};

  // Seconds of all rounds.
  double spent() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0) * runs; }
  double least() const { return *std::min_element(seconds.begin(), seconds.end()); }
  // One round; false if a launch fails.
  bool time() {
    try {
      seconds.push_back(executor->device_time(runs, -1));
    } catch (const cl::OpenCLError& error) {
      trial->problem = error.what();
      trial->broken = !error.out_of_memory();
      return false;
    }
    trial->seconds = median(seconds);
    return true;
  }
};

// The state of the contest of one node.
class Arena {
 public:
  Arena(std::shared_ptr<cl::Context> context, std::shared_ptr<store::Store> store,
        const DeviceInfo& device, ir::Graph part, const plan::Choice& choice,
        const plan::Broken& broken, double tolerance)
      : context_(std::move(context)),
        store_(std::move(store)),
        device_(device),
        part_(std::move(part)),
        choice_(choice),
        broken_(broken),
        tolerance_(tolerance) {}

  // Builds a candidate, runs it once and judges its result; null if it is out of the contest.
  std::unique_ptr<Executor> enter(Trial& trial) {
    if (const auto found = broken_.find({choice_.family, trial.candidate});
        found != broken_.end() && found->second.group == 0) {
      trial.problem = found->second.why;
      return nullptr;
    }
    try {
      plan::PlanOptions options;
      // The family may also compute constants of the node.
      options.engines[choice_.family] = trial.candidate + "|auto";
      options.share_memory = false;  // otherwise a run overwrites the inputs of the next
      options.in_place = false;      // all candidates compute on the same inputs, many times
      plan::Plan plan = plan::make_plan(part_, device_, options, broken_);
      if (plan.choices.back().candidate != trial.candidate)
        throw Error("the plan has " + plan.choices.back().candidate + " instead");
      plan.poison = plan.poison && plan.arena_bytes <= kPoisonBytes;
      auto executor = std::make_unique<Executor>(context_, store_, std::move(plan), false);
      judge(*executor, trial);
      if (!trial.problem.empty()) return nullptr;
      return executor;
    } catch (const CandidateFailure& failure) {
      if (failure.allows_smaller_groups() && failure.learn(broken_)) return enter(trial);
      trial.problem = failure.what();
      trial.broken = failure.family() == choice_.family && failure.candidate() == trial.candidate;
    } catch (const cl::OpenCLError& error) {
      trial.problem = error.what();
      trial.broken = !error.out_of_memory();
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      trial.problem = error.what();  // for example, an object is larger than the device allows
    }
    return nullptr;
  }

 private:
  void judge(Executor& executor, Trial& trial) {
    const plan::Plan& plan = executor.plan();
    if (inputs_.empty()) {
      for (const plan::Transfer& t : plan.uploads)
        inputs_.push_back(random_bytes(part_.tensor(t.tensor).dtype, t.host_bytes));
    }
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<Bytes> results;
    for (const Bytes& input : inputs_) inputs.push_back(input.data());
    for (const plan::Transfer& t : plan.downloads)
      results.emplace_back(static_cast<std::size_t>(t.host_bytes));
    for (Bytes& result : results) outputs.push_back(result.data());
    executor.run(inputs, outputs);
    const ir::Tensor& result = part_.tensor(part_.nodes.back().outputs.at(0));
    if (result.placement) results.at(0) = slice_of(results.at(0), result);
    if (reference_.empty()) {
      reference_ = std::move(results);
      reference_name_ = trial.candidate;
      return;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const DType dtype = part_.tensor(plan.downloads[i].tensor).dtype;
      const double error = distance(dtype, results[i], reference_[i]);
      if (error <= tolerance_) continue;
      trial.problem = "computes wrong numbers: off by " + text(error) + " from " + reference_name_ +
                      " for node " + std::to_string(choice_.node) +
                      "; allowed: " + text(tolerance_);
      trial.broken = true;
      return;
    }
  }

  std::shared_ptr<cl::Context> context_;
  std::shared_ptr<store::Store> store_;
  const DeviceInfo& device_;
  ir::Graph part_;
  const plan::Choice& choice_;
  plan::Broken broken_;
  double tolerance_;
  std::vector<Bytes> inputs_, reference_;
  std::string reference_name_;
};

// The order of building: first the simplest candidate, the reference of all others, and then the
// default, so that hopeless candidates are recognised early.
std::vector<Trial*> order_of(std::vector<Trial>& trials, const std::vector<std::string>& plainest) {
  std::vector<Trial*> order;
  for (Trial& trial : trials) order.push_back(&trial);
  const auto rank = [&](const Trial* trial) {
    return std::find(plainest.begin(), plainest.end(), trial->candidate) - plainest.begin();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Trial* a, const Trial* b) { return rank(a) < rank(b); });
  return order;
}

double best_of(const std::vector<Trial>& trials) {
  double best = INFINITY;
  for (const Trial& trial : trials) {
    if (trial.problem.empty() && trial.seconds > 0) best = std::min(best, trial.seconds);
  }
  return best;
}

// Runs rounds of the candidates in turns, and drops those slower than `best` by the factor
// `behind`.
void race(std::vector<Entrant>& entrants, std::size_t rounds, double behind, double best) {
  for (Entrant& entrant : entrants) {
    entrant.runs =
        static_cast<int>(std::clamp(kRoundSeconds / std::max(entrant.trial->seconds, 1e-7), 1.0,
                                    static_cast<double>(kMostRuns)));
    entrant.seconds.clear();
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Entrant& entrant : entrants) {
      if (!entrant.trial->problem.empty()) continue;
      if (round >= 2 && (entrant.least() > behind * best || entrant.spent() > kEnough)) continue;
      if (entrant.time()) best = std::min(best, entrant.trial->seconds);
    }
  }
  entrants.clear();
}

}  // namespace

Contest Tuner::measure(const ir::Graph& graph, std::size_t position, const plan::Choice& choice,
                       const plan::Broken& broken) const {
  Contest contest;
  for (const std::string& name : choice.candidates) contest.trials.push_back({name, 0, {}, false});
  // A candidate that failed while the model was loaded is a result of this contest, too.
  for (const auto& refused : choice.refused) {
    if (broken.count({choice.family, refused.first}) != 0)
      contest.trials.push_back({refused.first, 0, {}, false});
  }
  Arena arena(context_, store_, device_, plan::isolate(graph, position), choice, broken,
              tolerance_);
  const std::uint64_t room = std::min(device_.global_bytes / 4, kMostBytes);
  std::vector<Entrant> entrants;
  std::uint64_t used = 0;
  for (Trial* trial : order_of(contest.trials, choice.plainest)) {
    if (Clock::now() >= deadline_) return contest;
    if (before_trial_) before_trial_(trial->candidate);
    std::unique_ptr<Executor> executor = arena.enter(*trial);
    if (executor == nullptr) continue;
    const double best = best_of(contest.trials);
    Entrant entrant{trial, std::move(executor)};
    // A single run may have been disturbed; several are hardly all disturbed.
    const double hopeless = kHopeless * best + kWaitSeconds;
    while (entrant.time() && entrant.least() > hopeless && entrant.seconds.size() < kFirstRuns) {
    }
    if (!trial->problem.empty() || entrant.least() > hopeless) continue;
    const plan::Plan& plan = entrant.executor->plan();
    used += static_cast<std::uint64_t>(plan.arena_bytes + plan.weights_bytes);
    entrants.push_back(std::move(entrant));
    if (used < room) continue;
    race(entrants, kRounds, kBehind, best_of(contest.trials));
    used = 0;
  }
  race(entrants, kRounds, kBehind, best_of(contest.trials));

  const double best = best_of(contest.trials);
  Trial* standard = nullptr;  // the default: the first candidate without a problem
  Trial* fastest = nullptr;
  for (Trial& trial : contest.trials) {
    if (!trial.problem.empty()) continue;
    if (standard == nullptr) standard = &trial;
    if (trial.seconds == best) fastest = &trial;
  }
  if (fastest == nullptr) return contest;
  if (standard->seconds > kNoise * best) {
    // A disturbance of the default looks like a gain, so the two are measured again, alone.
    for (Trial* trial : {standard, fastest}) entrants.push_back({trial, arena.enter(*trial)});
    if (entrants[0].executor != nullptr && entrants[1].executor != nullptr) {
      race(entrants, kDuelRounds, INFINITY, best);
      if (standard->problem.empty() && standard->seconds <= kNoise * fastest->seconds)
        fastest = standard;
    }
    if (!fastest->problem.empty()) return contest;
  } else {
    fastest = standard;
  }
  contest.winner = fastest->candidate;
  return contest;
}

}  // namespace clgpu::runtime
