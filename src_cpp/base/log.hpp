// The log: logcat on Android, standard error elsewhere.
#pragma once

#include <string>

namespace clgpu {

enum class LogLevel { kWarning, kError };

/// Logs one line; `text` has no line break.
void log(LogLevel level, const std::string& sentence) noexcept;

}  // namespace clgpu
