#include "delegate/building/tuning.hpp"

#include <cmath>
#include <cstdlib>

namespace clgpu::delegate {

std::string to_record(const runtime::Contest& contest) {
  std::string record = "{\"winner\":\"" + contest.winner + "\",\"nanoseconds\":{";
  const char* separator = "";
  for (const runtime::Trial& trial : contest.trials) {
    if (!trial.problem.empty()) continue;
    record += separator + ("\"" + trial.candidate + "\":");
    record += std::to_string(std::llround(trial.seconds * 1e9));
    separator = ",";
  }
  return record + "}}";
}

runtime::Contest from_record(const std::string& record) {
  // Reads only what to_record writes; any other text is not a record.
  runtime::Contest contest;
  std::size_t at = 0;
  const auto skip = [&](const char* text) {
    const std::size_t length = std::char_traits<char>::length(text);
    if (record.compare(at, length, text) != 0) return false;
    at += length;
    return true;
  };
  const auto name = [&] {
    const std::size_t end = record.find('"', at);
    if (end == std::string::npos) return std::string();
    std::string found = record.substr(at, end - at);
    at = end + 1;
    return found;
  };
  if (!skip("{\"winner\":\"")) return {};
  contest.winner = name();
  if (!skip(",\"nanoseconds\":{")) return {};
  while (skip("\"")) {
    runtime::Trial trial;
    trial.candidate = name();
    if (!skip(":")) return {};
    char* end = nullptr;
    trial.seconds = static_cast<double>(std::strtoll(record.c_str() + at, &end, 10)) * 1e-9;
    at = static_cast<std::size_t>(end - record.c_str());
    contest.trials.push_back(std::move(trial));
    if (!skip(",")) break;
  }
  return record.substr(at) == "}}" ? contest : runtime::Contest{};
}

}  // namespace clgpu::delegate
