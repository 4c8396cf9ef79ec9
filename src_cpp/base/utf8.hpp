// Text from untrusted sources: output of drivers, such as build logs, may not be UTF-8, and names
// in models may contain anything.
#pragma once

#include <string>
#include <string_view>

namespace clgpu {

/// The text with U+FFFD in place of bytes that are not UTF-8, as Python's "replace" does it.
std::string valid_utf8(std::string_view text);

/// The same as one line that is safe to print: control characters, line ends, and characters that
/// are invisible or change the direction of writing become escapes such as \x1b and \u202e. Names
/// in models go through it before they become part of a message.
std::string printable(std::string_view text);

}  // namespace clgpu
