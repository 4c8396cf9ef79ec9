// Text that may hold what a driver wrote, a build log say: they do not promise UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace clgpu {

/// The text with U+FFFD for what is not UTF-8, in the places where Python's "replace" puts it.
std::string valid_utf8(std::string_view text);

}  // namespace clgpu
