// Records of engines on this device: failures, wrong numbers, and the fastest engines of tuned
// layers.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "delegate/building/tuning.hpp"
#include "delegate/target.hpp"
#include "delegate/tell/report.hpp"
#include "plan/plan.hpp"

namespace clgpu::delegate {

/// Thread-safe. Failures of a device or a driver are recorded for this delegate only; measurements
/// and wrong numbers are also stored for other processes.
class EngineRecords {
 public:
  explicit EngineRecords(const Target& target) : target_(target) {}

  /// Candidates that fail on this device.
  plan::Broken broken() const;
  void learn(const std::string& family, const std::string& candidate, const plan::Fault& fault);
  /// Records that a plan was built without `learned`. `note` is for people, or empty.
  void add_built(const plan::Plan& plan, const plan::Broken& learned, const std::string& note);
  /// Records that no candidate of a family could be built. They are reported, but tried again,
  /// because all may work later.
  void add_failed(const plan::Broken& learned);

  /// From now on plans leave this engine out, here and, by the store, in other processes.
  /// `engine` is plan::engine_signature, `name` is for people.
  void distrust(const std::string& engine, const std::string& name, const std::string& why);
  /// Why an engine is distrusted, from the store as well; empty if it is trusted.
  std::string distrusted(const std::string& family, const kernel::Candidate& candidate) const;

  /// The measurements for a signature, of this process or, from the store, of another.
  runtime::Contest contest(const std::string& signature) const;
  /// Stores measurements with a winner, and the failed candidates. `label` is for people.
  void keep(const std::string& signature, const runtime::Contest& contest,
            const std::string& label);

  /// Whether the tuned engines of a plan were found to be slower together than those without
  /// tuning, here or, by the store, in another process.
  bool slower_together(const plan::Plan& plan) const;
  void keep_slower(const plan::Plan& plan);

  // Parts of a report.
  void tell_failing(Report& report) const;
  void tell_distrusted(Report& report) const;
  void tell_notes(Report& report) const;

 private:
  struct Wrong {
    std::string name, why;  // no reason if an engine is trusted
  };

  void drop_contests(const plan::Plan& plan);

  const Target& target_;
  mutable std::mutex mutex_;
  plan::Broken broken_;
  plan::Broken failed_;                           // while nothing of their family could be built
  mutable std::map<std::string, Wrong> engines_;  // verdicts by plan::engine_signature
  std::map<std::string, std::string> contests_;   // records of those held here, by signature
  std::set<std::string> slower_;                  // keys of the store, see slower_together
  std::set<std::string> notes_;
};

}  // namespace clgpu::delegate
