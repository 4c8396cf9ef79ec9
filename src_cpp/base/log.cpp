#include "base/log.hpp"

#include <cstdio>

#if defined(__ANDROID__)
// From <android/log.h>, unchanged since API level 1; declared here so that no NDK header is needed.
extern "C" int __android_log_write(int priority, const char* tag, const char* text);
#endif

namespace clgpu {

void log(LogLevel level, const std::string& sentence) noexcept {
#if defined(__ANDROID__)
  constexpr int kAndroidWarn = 5, kAndroidError = 6;
  __android_log_write(level == LogLevel::kError ? kAndroidError : kAndroidWarn, "clgpu_delegate",
                      sentence.c_str());
#else
  static_cast<void>(level);
  std::fprintf(stderr, "clgpu_delegate: %s\n", sentence.c_str());
#endif
}

}  // namespace clgpu
