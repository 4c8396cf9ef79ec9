// The description of a delegate, from which Python's dictionaries and the JSON of the C library are
// made.
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

/// The data of explain().
struct Explanation {
  std::string device, platform;
  const char* precision;
  Report report;
  MemoryTotals totals;
};
Explanation explain(const Target& target, Report report);
void write(Writer& writer, const Explanation& explanation);

/// The data of profile(); without Options::profile, only that it is off.
struct RecordedProfile {
  std::string device, platform;
  const char* precision;
  bool enabled = false;
  std::optional<runtime::Peaks> peaks;  ///< none without inferences, or if the measurement failed
  Profile profile;
};
/// With `with_peaks`, measures the rates of the device at their first use.
RecordedProfile recorded_profile(const Target& target, const Ledger& ledger, bool with_peaks);
void write(Writer& writer, const RecordedProfile& profile);

}  // namespace clgpu::delegate
