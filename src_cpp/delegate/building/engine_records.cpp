#include "delegate/building/engine_records.hpp"

#include <algorithm>

#include "plan/signature.hpp"

namespace clgpu::delegate {

plan::Broken EngineRecords::broken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return broken_;
}

void EngineRecords::learn(const std::string& family, const std::string& candidate,
                          const plan::Fault& fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  plan::learn(broken_, family, candidate, fault);
}

void EngineRecords::add_built(const plan::Plan& plan, const plan::Broken& learned,
                              const std::string& note) {
  drop_contests(plan);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!note.empty()) notes_.insert(note);
  for (const plan::Choice& choice : plan.choices) {
    for (const std::string& candidate : choice.candidates)
      failed_.erase({choice.family, candidate});
  }
  for (const auto& [engine, fault] : learned) {
    // Another thread may have done it first.
    plan::learn(broken_, engine.first, engine.second, fault);
  }
}

void EngineRecords::add_failed(const plan::Broken& learned) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [engine, fault] : learned) failed_.insert_or_assign(engine, fault);
}

void EngineRecords::distrust(const std::string& engine, const std::string& name,
                             const std::string& why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Wrong& known = engines_[engine];
    if (!known.why.empty()) return;
    known = {name, why};
  }
  target_.store->put(store::kVerification, target_.key("engine " + engine), why, name);
}

std::string EngineRecords::distrusted(const std::string& family,
                                      const kernel::Candidate& candidate) const {
  if (!candidate.refusal.empty()) return {};
  const std::string engine = plan::engine_signature(family, candidate);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto known = engines_.find(engine); known != engines_.end()) return known->second.why;
  }
  const auto kept = target_.store->get(store::kVerification, target_.key("engine " + engine));
  const std::lock_guard<std::mutex> lock(mutex_);
  return engines_.try_emplace(engine, Wrong{family + "/" + candidate.name, kept.value_or("")})
      .first->second.why;
}

runtime::Contest EngineRecords::contest(const std::string& signature) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = contests_.find(signature); found != contests_.end())
      return from_record(found->second);
  }
  return from_record(target_.store->get(store::kTuning, target_.key(signature)).value_or(""));
}

void EngineRecords::keep(const std::string& signature, const runtime::Contest& contest,
                         const std::string& label) {
  const std::string record = to_record(contest);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    contests_[signature] = record;
  }
  target_.store->put(store::kTuning, target_.key(signature), record, label);
}

bool EngineRecords::slower_together(const plan::Plan& plan) const {
  const bool tuned = std::any_of(
      plan.choices.begin(), plan.choices.end(),
      [](const plan::Choice& choice) { return choice.origin == plan::Choice::Origin::kTuned; });
  if (!tuned) return false;
  const std::string key = target_.key("together " + plan::combination(plan));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (slower_.count(key) != 0) return true;
  }
  return target_.store->get(store::kTuning, key).has_value();
}

void EngineRecords::keep_slower(const plan::Plan& plan) {
  const std::string key = target_.key("together " + plan::combination(plan));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    slower_.insert(key);
  }
  target_.store->put(store::kTuning, key, "slower", "tuned kernels that are slower together");
}

void EngineRecords::drop_contests(const plan::Plan& plan) {
  for (const plan::Choice& choice : plan.choices) {
    if (choice.dropped.empty()) continue;
    target_.store->erase(store::kTuning, target_.key(choice.signature));
    const std::lock_guard<std::mutex> lock(mutex_);
    contests_.erase(choice.signature);
    notes_.insert("the kernel " + choice.family + "/" + choice.dropped + ", tuned for node " +
                  std::to_string(choice.node) + ", no longer works; its measurement is deleted");
  }
}

void EngineRecords::tell_failing(Report& report) const {
  plan::Broken all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = failed_;
    for (const auto& [engine, fault] : broken_) all.insert_or_assign(engine, fault);
  }
  for (const auto& [engine, fault] : all) {
    const std::string kernel = engine.first + "/" + engine.second;
    const bool fails = fault.group == 0;
    report.faults.push_back({kernel, fails ? "fails" : "group", fault.why});
    report.notes.push_back("kernel " + kernel +
                           (fails ? " does not work on this device: "
                                  : " is made for smaller work-groups or left out: ") +
                           fault.why);
  }
}

void EngineRecords::tell_distrusted(Report& report) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [engine, wrong] : engines_) {
    if (wrong.why.empty()) continue;
    report.faults.push_back({wrong.name, "numbers", wrong.why});
    report.notes.push_back("kernel " + wrong.name + " is left out: it " + wrong.why);
  }
}

void EngineRecords::tell_notes(Report& report) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  report.notes.insert(report.notes.end(), notes_.begin(), notes_.end());
}

}  // namespace clgpu::delegate
