// Parsing and formatting of sizes in bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clgpu {

/// "67108864", "64 MiB", "1.5 GB": a number above 0, and one of B, kB, MB, GB, TB (powers of
/// 1000) or KiB, MiB, GiB, TiB (of 1024), in upper or lower case; none if the text has another form
/// or the size is not a positive 63-bit number of bytes.
std::optional<std::int64_t> parse_byte_size(const std::string& text);

/// The values that parse_byte_size() accepts, for messages.
constexpr const char* kByteSizeForm =
    "a number of bytes above 0, or one with a unit: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";

/// "1.41 GiB (1511522304 bytes)".
std::string byte_size(std::int64_t bytes);

}  // namespace clgpu
