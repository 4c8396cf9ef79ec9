// Sentences for whoever runs the program: logcat on Android, standard error elsewhere.
#pragma once

#include <string>

namespace clgpu {

enum class LogLevel { kWarning, kError };

/// One line, without a line break of its own.
void log(LogLevel level, const std::string& sentence) noexcept;

}  // namespace clgpu
