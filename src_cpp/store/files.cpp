#include "store/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/sha256.hpp"
#include "store/trust.hpp"

namespace clgpu::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "CLGPROW1";
constexpr const char* kEnding = ".row";
constexpr const char* kUnfinished = ".tmp";
constexpr std::size_t kChecksum = 32, kSize = 8, kParts = 4;
constexpr std::int64_t kMostNames = 1 << 20;  // bytes of a file beside its value
constexpr std::size_t kHead = kMagic.size() + kChecksum + kParts * kSize;

std::string reason() { return std::generic_category().message(errno); }

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// The folder is the user's; a link in it would lead out of it.
File open_file(const std::string& path, int flags, const char* mode) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  File file(descriptor < 0 ? nullptr : ::fdopen(descriptor, mode), &std::fclose);
  if (descriptor >= 0 && file == nullptr) ::close(descriptor);
  return file;
}

std::string as_bytes(std::size_t number) {
  std::string bytes;
  for (std::size_t i = 0; i < kSize; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xFF);
  return bytes;
}

std::size_t as_number(std::string_view bytes) {
  std::size_t number = 0;
  for (std::size_t i = kSize; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::string text_of(const std::string& kind, const std::string& key, const std::string& value,
                    const std::string& label) {
  std::string text(kMagic);
  text += checksum(kind, key, value);
  for (const std::string* part : {&kind, &key, &label, &value}) text += as_bytes(part->size());
  return text + kind + key + label + value;
}

// The value in a file's text; none if the text is not as text_of() writes it for this row.
std::optional<std::string> value_of(std::string_view text, const std::string& kind,
                                    const std::string& key) {
  if (text.size() < kHead || text.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  std::array<std::string_view, kParts> parts;
  std::size_t at = kHead;
  for (std::size_t i = 0; i < kParts; ++i) {
    const std::size_t size = as_number(text.substr(kMagic.size() + kChecksum + i * kSize, kSize));
    if (size > text.size() - at) return std::nullopt;
    parts[i] = text.substr(at, size);
    at += size;
  }
  const auto& [its_kind, its_key, label, value] = parts;
  if (at != text.size() || its_kind != kind || its_key != key ||
      text.substr(kMagic.size(), kChecksum) != checksum(kind, key, value))
    return std::nullopt;
  return std::string(value);
}

}  // namespace

Files::Files(const std::string& asked, Setting file)
    : Store({file.path + ".rows", file.limit, std::move(file.only)}) {
  try {
    // The rule of a file, for one in the folder. The path that was given may be a link.
    for (const std::string& base : {asked + ".rows", path()}) {
      if (const std::string why = why_untrusted(base + "/row"); !why.empty()) {
        turn_off(why);
        return;
      }
    }
    make_private_folders(path());
    if (::access(path().c_str(), R_OK | X_OK) != 0) turn_off(reason());
  } catch (const std::exception& error) {
    turn_off(error.what());
  }
}

std::string Files::file_of(const std::string& kind, const std::string& key) const {
  return path() + "/" + sha256_hex(kind + '\0' + key) + kEnding;
}

std::optional<std::string> Files::read(const std::string& kind, const std::string& key) {
  const std::string path = file_of(kind, key);
  const File file = open_file(path, O_RDONLY, "rb");
  struct stat status{};
  if (file == nullptr || ::fstat(::fileno(file.get()), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  std::optional<std::string> value;
  if (is_own_file(status) && status.st_size <= limit_ + kMostNames) {
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    value = value_of(text, kind, key);
  }
  if (!writable_) return value;
  if (value) {  // what cannot be marked is deleted earlier
    if (now() - status.st_mtime > kDay) ::futimens(::fileno(file.get()), nullptr);
  } else if (::unlink(path.c_str()) == 0) {
    note_damaged(kind);
  } else if (errno != ENOENT) {  // unless another process was first
    only_read("dropped", reason());
  }
  return value;
}

void Files::write(const std::string& kind, const std::string& key, const std::string& value,
                  const std::string& label) {
  const std::string path = file_of(kind, key), text = text_of(kind, key, value, label);
  if (static_cast<std::int64_t>(text.size()) > limit_) return;
  std::string unfinished;
  File file(nullptr, &std::fclose);
  // The name may be that of a process that was killed, or has the same number in another container.
  do {
    unfinished =
        path + "." + std::to_string(::getpid()) + "-" + std::to_string(++written_) + kUnfinished;
    file = open_file(unfinished, O_WRONLY | O_CREAT | O_EXCL, "wb");
  } while (file == nullptr && errno == EEXIST);
  if (file == nullptr) return only_read("written", reason());
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const bool is_closed = std::fclose(file.release()) == 0;
  if (!is_written || !is_closed || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(unfinished.c_str());
    return only_read("written", why);
  }
  if (is_limit_due(static_cast<std::int64_t>(text.size()))) evict();
}

void Files::remove(const std::string& kind, const std::string& key) {
  if (::unlink(file_of(kind, key).c_str()) != 0 && errno != ENOENT) only_read("erased", reason());
}

// Other processes may delete the same files.
void Files::evict() {
  struct Row {
    fs::file_time_type used;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<Row> rows;
  std::int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(path(), error), end; !error && it != end; it.increment(error)) {
    const fs::path& file = it->path();
    std::error_code gone;
    const Row row{it->last_write_time(gone), static_cast<std::int64_t>(it->file_size(gone)), file};
    if (gone) continue;
    if (file.extension() == kUnfinished) {  // of a process that was killed, if it is old
      const auto age = fs::file_time_type::clock::now() - row.used;
      if (age > std::chrono::seconds(kDay)) fs::remove(file, gone);
    } else if (file.extension() == kEnding) {
      rows.push_back(row);
      total += row.bytes;
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.used < b.used; });
  for (const Row& row : rows) {
    if (total <= limit_) return;
    std::error_code failure;
    fs::remove(row.path, failure);  // false if another process was first
    if (!failure) total -= row.bytes;
  }
}

}  // namespace clgpu::store
