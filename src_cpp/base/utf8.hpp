// Text of others: what a driver wrote, a build log say, need not be UTF-8; names in models are
// chosen by strangers.
#pragma once

#include <string>
#include <string_view>

namespace clgpu {

/// The text with U+FFFD for what is not UTF-8, in the places where Python's "replace" puts it.
std::string valid_utf8(std::string_view text);

/// The same as one line that is safe to print: control characters, line ends, and characters that
/// are invisible or change the direction of writing become escapes such as \x1b and \u202e. Names
/// in models go through it before they become part of a message.
std::string printable(std::string_view text);

}  // namespace clgpu
