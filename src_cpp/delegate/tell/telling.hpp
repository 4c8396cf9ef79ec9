// What a delegate tells of itself: the one description behind Python's dictionaries and the JSON of
// the C library.
#pragma once

#include <optional>
#include <string>

#include "base/writer.hpp"
#include "delegate/target.hpp"
#include "delegate/tell/ledger.hpp"
#include "delegate/tell/profile.hpp"
#include "delegate/tell/report.hpp"
#include "runtime/measure/peaks.hpp"

namespace clgpu::delegate {

/// What explain() shows.
struct Explanation {
  std::string device, platform;
  const char* precision;
  Report report;
  MemoryTotals totals;
};
Explanation explain(const Target& target, Report report);
void write(Writer& writer, const Explanation& explanation);

/// What profile() shows: of a state without Options::profile, that it is off.
struct RecordedProfile {
  std::string device, platform;
  const char* precision;
  bool enabled = false;
  std::optional<runtime::Peaks> peaks;  ///< none without inferences, or where that has failed
  Profile profile;
};
/// With `with_peaks`, measures the rates of the device at their first use.
RecordedProfile recorded_profile(const Target& target, const Ledger& ledger, bool with_peaks);
void write(Writer& writer, const RecordedProfile& profile);

}  // namespace clgpu::delegate
