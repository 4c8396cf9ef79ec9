// SHA-256 (FIPS 180-4), for the keys of programs and the checksums of stored rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace clgpu {

class Sha256 {
 public:
  Sha256& update(std::string_view bytes);
  /// Of long data, such as weights: only the first and the last 4 KiB.
  Sha256& update_ends(std::string_view bytes);
  /// The digest, 32 bytes. The object cannot be used afterwards.
  std::string digest();

 private:
  void block(const unsigned char* bytes);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::uint64_t size_ = 0;  // of all bytes so far
};

/// Lower-case hexadecimal digits of bytes.
std::string hex(std::string_view bytes);

/// Hexadecimal SHA-256 of bytes.
std::string sha256_hex(std::string_view bytes);

}  // namespace clgpu
