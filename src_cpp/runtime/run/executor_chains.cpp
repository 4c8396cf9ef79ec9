// Launches of an executor that run as stages of chains.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <sstream>

#include "base/finally.hpp"
#include "base/index.hpp"
#include "base/sha256.hpp"
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

// Share of the launches' time above which chains are slower. Those that take as long save the host
// its launches, and gain more where inferences are waited for or attention has few keys yet: a
// token of 3 billion parameters in int8 took 0.99 of it in this measurement, and 0.9 when generated
// (H200).
constexpr double kShare = 1.01;

/// A work-group has given up while chains were tried.
class Waited : public Error {
 public:
  Waited() : Error(kWaitedReason) {}
};

constexpr const char* kLabel = "chains of launches";  // in the store

// Of the rows on chains whose launches are faster.
constexpr const char* kNone = "none";
constexpr const char* kOnce = "once";
constexpr const char* kTwice = "twice";

// Rounds of dividing chains by measured times, and measuring again. A chain that still takes too
// long after the last one runs as launches.
constexpr int kDivisions = 3;
constexpr int kTimings = 3;  // of chains that seem to take too long; the least counts

// For how long a load measures chains one by one; those that it does not reach stay.
constexpr std::chrono::milliseconds kJudging{300};

// Numbers and ranges of numbers, such as "4 9-14".
std::string text_of(const std::set<int>& numbers) {
  std::string text;
  for (auto i = numbers.begin(); i != numbers.end();) {
    const int first = *i;
    int last = first;
    while (++i != numbers.end() && *i == last + 1) ++last;
    text += (text.empty() ? "" : " ") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

// None if the text is not as the other function writes it, for run steps below `end`.
std::optional<std::set<int>> numbers_of(const std::string& text, int end) {
  std::set<int> numbers;
  std::istringstream in(text);
  int first = 0;
  while (in >> first) {
    int last = first;
    if (in.peek() == '-' && !(in.ignore() >> last)) return std::nullopt;
    if (first < 0 || last < first || last >= end) return std::nullopt;
    for (int i = first; i <= last; ++i) numbers.insert(i);
  }
  if (!in.eof() || numbers.empty()) return std::nullopt;
  return numbers;
}

}  // namespace

ChainsTaken Executor::chains() const {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  return taken_;
}

void Executor::take_chains(const ChainsTaken& taken) {
  const std::lock_guard<std::mutex> lock(taken_mutex_);
  taken_ = taken;
}

void Executor::leave_chains_out(std::string reason, bool is_noted) {
  std::string note = is_noted ? "launches run one by one: " + reason : "";
  take_chains({0, 0, 0, 0, 0, std::move(reason), std::move(note)});
}

void Executor::leave_chains(ChainVerdict verdict) {
  const bool waited = verdict == ChainVerdict::kWaited;
  chains_.reset();
  leave_chains_out(waited ? kWaitedReason : kSlowerReason, waited);
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

std::unique_ptr<Chains> Executor::chains_with(const Chaining& chaining,
                                              const std::set<int>& cuts) const {
  return std::make_unique<Chains>(*context_, *addresses_, plan_, local_bytes(), chaining.limits,
                                  cuts);
}

// A failure leaves the executor with its launches.
void Executor::make_chains(const Chaining& chaining, bool may_run) {
  if (chaining.limits.groups == 0)
    return leave_chains_out("work-groups that wait for each other do not all run in a probe", true);
  if (mover_ != nullptr) return leave_chains_out("tensors move between device and host");
  if (!runners_.empty()) return leave_chains_out("the host decides what a node runs");
  std::unique_ptr<Chains> chains = chains_with(chaining, {});
  if (chains->empty()) return leave_chains_out("no two launches in a row can be its stages");
  chains_key_ = chains->key();
  const std::string stored = store_->get(store::kTuning, chains_key_).value_or("");
  if (stored == name_of(ChainVerdict::kWaited)) return leave_chains_out(kWaitedReason, true);
  if (chaining.measured && stored == name_of(ChainVerdict::kSlower))
    return leave_chains_out(kSlowerReason);
  const bool measures = chaining.measured && stored != name_of(ChainVerdict::kFaster);
  if (measures && !may_run)
    return leave_chains_out("nothing is measured with the option 'warm_up' off");
  if (!chaining.compiles && stored.empty())
    return leave_chains_out("compiling takes seconds, and its plan often changes");
  bool launched = false;
  try {
    const std::optional<std::set<int>> known = known_cuts();
    std::set<int> cuts = known.value_or(std::set<int>{});
    const std::optional<Slower> told = chaining.measured ? known_slower() : std::nullopt;
    const bool judges = chaining.measured && may_run && !(told && told->is_final);
    const std::set<int> slower = told && !judges ? told->launches : std::set<int>{};
    const auto chains_between = [&](const std::set<int>& others) {
      std::set<int> all = cuts;
      all.insert(others.begin(), others.end());
      return chains_with(chaining, all);
    };
    int left_out = told && !judges ? told->chains : 0;
    if (may_run && (measures || !known)) {
      const StandIn standing(*this);
      const double usual = launches_seconds();
      if (measures && usual > kWorthwhile)
        return leave_chains_out("an inference takes so long that launches cost nothing");
      if (!known && usual > longest_chain())
        cuts = plan::cuts_by_time(chains->spans(), each_seconds(), longest_chain());
    }
    if (!cuts.empty() || !slower.empty()) chains = chains_between(slower);
    for (int round = 0; !chains->empty(); ++round) {
      chains->build(*store_, programs_);
      chains_ = std::move(chains);
      stale_ = true;
      if (!may_run) break;
      const StandIn standing(*this);
      launched = true;
      const std::set<int> more = try_chains(round < kDivisions);
      if (more.empty()) break;
      cuts.insert(more.begin(), more.end());
      chains_.reset();
      chains = chains_between(slower);
    }
    if (may_run && known != cuts) keep_cuts(cuts);
    if (chains_ == nullptr)
      return leave_chains_out("each chain would take more than " + longest_chain_text(), true);
    untimed_ = may_run || known ? 0 : 2;
    if (judges && chains_->spans().size() > 1) {
      Slower found = find_slower(told);
      std::string reason;
      const std::size_t remain = chains_->spans().size() - uz(found.chains);
      if (remain == 0) return leave_chains(ChainVerdict::kSlower);
      if (found.chains > 0) {
        std::unique_ptr<Chains> fewer = chains_between(found.launches);
        // Without a chain that updates carried tensors, those before it cannot be chains.
        if (fewer->spans().size() == remain) {
          fewer->build(*store_, programs_);
          chains_ = std::move(fewer);
          stale_ = true;
          const StandIn standing(*this);
          try_chains(false);
        } else {
          found = {};
          reason = "all stay, because others need those whose launches are faster";
        }
      }
      left_out = found.chains;
      keep_slower(found, told.has_value(), reason);
    }
    if (measures) {
      const StandIn standing(*this);
      const std::optional<ChainVerdict> verdict = measure_chains();
      if (!verdict) {
        chains_.reset();
        return leave_chains_out("an inference takes so long that launches cost nothing");
      }
      if (*verdict == ChainVerdict::kSlower) return leave_chains(*verdict);
      store_verdict(chains_key_, kLabel, name_of(*verdict), false);
    }
    ChainsTaken taken = chains_->taken();
    taken.divided = static_cast<int>(cuts.size());
    taken.slower = left_out;
    if (!cuts.empty())
      taken.note = "chains are divided before launches " + text_of(cuts) +
                   ", because none may take more than " + longest_chain_text();
    take_chains(taken);
  } catch (const InternalError&) {
    throw;
  } catch (const Waited&) {
    finish_all();
    leave_chains(ChainVerdict::kWaited);
  } catch (const Error& error) {
    finish_all();
    chains_.reset();
    leave_chains_out(error.what());
    if (launched) clear_counters();
  }
}

Executor::StandIn::StandIn(Executor& executor)
    : executor_(executor), alone_(executor.context_->whole_device()) {
  try {
    executor.transfers_.stand_in();
    executor.give_buffers();
  } catch (...) {
    executor.transfers_.forget();
    throw;
  }
}

Executor::StandIn::~StandIn() {
  executor_.finish_all();
  executor_.transfers_.forget();
}

std::string Executor::cuts_key() const {
  return sha256_hex(chains_key_ + "\ncuts\n" + longest_chain_text());
}

std::optional<std::set<int>> Executor::known_cuts() const {
  const auto row = store_->get(store::kTuning, cuts_key());
  if (row == kNone) return std::set<int>{};
  return row ? numbers_of(*row, static_cast<int>(launches_.size())) : std::nullopt;
}

void Executor::keep_cuts(const std::set<int>& cuts) {
  const std::string row = cuts.empty() ? kNone : text_of(cuts);
  std::string label = std::string(kLabel) + ": none takes more than " + longest_chain_text();
  if (!cuts.empty()) label += ", they end before launch " + row;
  store_->put(store::kTuning, cuts_key(), row, label);
}

std::string Executor::slower_key() const {
  return sha256_hex(chains_key_ + "\nslower\n" + text_of(known_cuts().value_or(std::set<int>{})));
}

// As keep_slower() writes it.
std::optional<Executor::Slower> Executor::known_slower() const {
  const std::string row = store_->get(store::kTuning, slower_key()).value_or("");
  if (row == kNone) return Slower{{}, 0, true};
  std::istringstream in(row);
  Slower slower;
  std::string word, numbers;
  if (!(in >> slower.chains >> word) || slower.chains < 1 || (word != kOnce && word != kTwice))
    return std::nullopt;
  std::getline(in, numbers);
  const auto launches = numbers_of(numbers, static_cast<int>(launches_.size()));
  if (!launches) return std::nullopt;
  slower.launches = *launches;
  slower.is_final = word == kTwice;
  return slower;
}

// Another process may have been on the device once: what was slower is measured `again`.
void Executor::keep_slower(const Slower& slower, bool again, const std::string& reason) {
  std::string row = kNone, label = std::string(kLabel) + ": ";
  label += reason.empty() ? "the launches of none are faster" : reason;
  if (slower.chains > 0) {
    const std::string numbers = text_of(slower.launches);
    const char* const word = again ? kTwice : kOnce;
    row = std::to_string(slower.chains) + " " + word + " " + numbers;
    label = std::string(kLabel) + ": launches " + numbers + " are faster, measured " + word;
  }
  store_->put(store::kTuning, slower_key(), row, label);
}

// Times whole inferences, each chain with and without: what launches read must be as earlier ones
// have left it.
Executor::Slower Executor::find_slower(const std::optional<Slower>& among) {
  const Finally all([this] { as_launches_.clear(); });
  const std::optional<std::set<int>> pretended = chain_judgement().slower;
  const auto start = std::chrono::steady_clock::now();
  // The first launch after a chain that was slower is among them, too, and may begin another one.
  const auto is_among = [&](const plan::Span& span) {
    return among->launches.count(span.first) > 0 && among->launches.count(span.first + 1) > 0;
  };
  Slower slower;
  for (const plan::Span& span : chains_->spans()) {
    if (std::chrono::steady_clock::now() - start > kJudging) break;
    if (among && !is_among(span)) continue;
    const StandIn standing(*this);  // others may use the device between two chains
    if (pretended ? pretended->count(span.first) == 0 : !is_slower_with(span.first)) continue;
    as_launches_.insert(span.first);
    ++slower.chains;
    for (int i = span.first; i <= span.end; ++i) slower.launches.insert(i);
  }
  if (!chains_->finished()) throw Waited();
  slower.launches.erase(static_cast<int>(launches_.size()));
  return slower;
}

// Seconds of each launch of an inference.
std::vector<double> Executor::each_seconds() {
  std::vector<double> seconds;
  remind();
  for (const BoundLaunch& bound : launches_) {
    const double measured = seconds_of(1, [&] { launch(bound); });
    const double pretended = pretended_seconds().launch;
    seconds.push_back(pretended > 0 ? pretended : measured);
  }
  return seconds;
}

// Seconds of the chain that begins at each run step; 0 where none does.
std::vector<double> Executor::chain_seconds() {
  std::vector<double> seconds(launches_.size());
  const auto measure = [this](std::vector<double>& each) {
    finish("the time of chains");
    launch_chained(&each);
    finish("the time of chains");
    if (!chains_->finished()) throw Waited();
  };
  measure(seconds);
  // Another process may be on the device for a moment; where chains end is kept.
  for (int i = 1; i < kTimings; ++i) {
    if (*std::max_element(seconds.begin(), seconds.end()) <= longest_chain()) break;
    std::vector<double> again(launches_.size());
    measure(again);
    for (std::size_t n = 0; n < seconds.size(); ++n) seconds[n] = std::min(seconds[n], again[n]);
  }
  return seconds;
}

// The first launch of a kernel may fail, or compile it. Returns where chains must end, too, since
// one of them takes too long: at all of its stages unless it `divides`.
std::set<int> Executor::try_chains(bool divides) {
  const double first = seconds_of(1, [this] { launch_chained(); });
  if (!chains_->finished()) throw Waited();
  const std::vector<plan::Span> spans = chains_->spans();
  if (first <= longest_chain() && pretended_seconds().stage == 0) return {};
  const std::vector<double> seconds = chain_seconds();
  std::vector<plan::Span> long_ones;
  for (const plan::Span& span : spans) {
    if (seconds[uz(span.first)] > longest_chain()) long_ones.push_back(span);
  }
  std::set<int> cuts;
  if (long_ones.empty()) return cuts;
  if (!divides) {
    for (const plan::Span& span : long_ones) {
      for (int i = span.first; i <= span.end; ++i) cuts.insert(i);
    }
    cuts.erase(static_cast<int>(launches_.size()));
    return cuts;
  }
  // As stages, launches share the device with fewer work-groups and may take longer.
  std::vector<double> each = each_seconds();
  for (const plan::Span& span : long_ones) {
    const auto begin = each.begin() + span.first, end = each.begin() + span.end;
    const double factor =
        seconds[uz(span.first)] / std::max(std::accumulate(begin, end, 0.0), 1e-9);
    std::for_each(begin, end, [factor](double& value) { value *= factor; });
  }
  return plan::cuts_by_time(long_ones, each, longest_chain());
}

// With `seconds`, waits for each chain.
void Executor::launch_chained(std::vector<double>* seconds) {
  remind();
  for (std::size_t i = 0; i < launches_.size();) {
    const bool chained = as_launches_.count(static_cast<int>(i)) == 0;
    if (seconds != nullptr && i == chains_->next(i)) finish("the launches before a chain");
    const auto start = std::chrono::steady_clock::now();
    const std::size_t next = chained ? chains_->launch(i, queue_) : i;
    if (next > i) flusher_.launched(queue_);
    if (next > i && seconds != nullptr) {
      finish("a chain");
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      const double pretended = pretended_seconds().stage * static_cast<double>(next - i);
      (*seconds)[i] = pretended > 0 ? pretended : elapsed.count();
    }
    // A chain must begin where it was planned: what it leaves out when one before it has given up
    // must not run as launches.
    i = next > i ? next : launch_bundle(i, chains_->next(chained ? i : i + 1));
  }
  chains_->ask(queue_);
}

// Of an inference in which they did not give up.
void Executor::leave_long_chains(const std::vector<double>& seconds) {
  if (*std::max_element(seconds.begin(), seconds.end()) <= longest_chain()) return;
  chains_.reset();
  leave_chains_out("a chain takes more than " + longest_chain_text() +
                       ", and with the option 'warm_up' off none is divided",
                   true);
}

std::optional<ChainVerdict> Executor::measure_chains() {
  if (chain_judgement().slower) return ChainVerdict::kFaster;
  const std::optional<bool> faster = is_faster(
      kShare, [this] { launch_all(); }, [this] { launch_chained(); },
      [this] {
        if (!chains_->finished()) throw Waited();
      });
  if (!faster) return std::nullopt;
  return *faster ? ChainVerdict::kFaster : ChainVerdict::kSlower;
}

}  // namespace clgpu::runtime
