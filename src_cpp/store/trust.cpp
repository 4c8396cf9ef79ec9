#include "store/trust.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(__ANDROID__)
#include <grp.h>
#include <pwd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

namespace clgpu::store {
namespace {

namespace fs = std::filesystem;

// Android runs each app as its own user; the folders above the app's belong to the system.
#if defined(__ANDROID__)
constexpr bool kAppIsUser = true;
#else
constexpr bool kAppIsUser = false;
#endif
constexpr int kMostLinks = 40;  // Linux follows at most this many
constexpr const char* kElsewhere =
    "name a file in a folder of your own (option 'cache', variable CLGPU_CACHE)";

bool is_own(const struct stat& status) {
  return status.st_uid == ::geteuid() || status.st_uid == 0;
}

// Whether a group belongs to the user alone: it has the same name and no other member. Systems that
// create such a group for each user let its members write to new files (umask 002).
bool is_private_group(gid_t group) {
#if defined(__ANDROID__)
  static_cast<void>(group);
  return false;
#else
  std::vector<char> names(1 << 14), members(1 << 16);
  struct passwd user{}, *found_user = nullptr;
  struct group entry{}, *found_group = nullptr;
  if (::getpwuid_r(::geteuid(), &user, names.data(), names.size(), &found_user) != 0 ||
      found_user == nullptr || user.pw_gid != group)
    return false;
  if (::getgrgid_r(group, &entry, members.data(), members.size(), &found_group) != 0 ||
      found_group == nullptr || std::strcmp(entry.gr_name, user.pw_name) != 0)
    return false;
  for (char** member = entry.gr_mem; *member != nullptr; ++member)
    if (std::strcmp(*member, user.pw_name) != 0) return false;
  return true;
#endif
}

bool others_can_write(const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) return true;
  // An app's cache folder has a group that the system uses to count its bytes; no app is a member.
  if (kAppIsUser && S_ISDIR(status.st_mode)) return false;
  return (status.st_mode & S_IWGRP) != 0 && !is_private_group(status.st_gid);
}

std::string octal(mode_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3)
    digits += static_cast<char>('0' + ((mode >> shift) & 7));
  return digits;
}

std::string owner(const struct stat& status) {
  return "belongs to another user (uid " + std::to_string(status.st_uid) + ")";
}

std::string why_file(const fs::path& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return {};  // SQLite reports the error
  if (!S_ISREG(status.st_mode)) return path.string() + " is not a regular file; " + kElsewhere;
  if (!is_own(status))
    return path.string() + " " + owner(status) + ", and programs of a cache run as machine code; " +
           kElsewhere;
  if (!others_can_write(status)) return {};
  return "other users can write to " + path.string() + " (mode " + octal(status.st_mode) +
         "), and programs of a cache run as machine code; remove it or, if nobody else has "
         "written to it, run chmod go-w '" +
         path.string() + "'";
}

// `is_last`: the file itself is in this folder. A sticky bit prevents others from replacing the
// file, but not from adding the files that SQLite looks for beside it.
std::string why_folder(const fs::path& path, const struct stat& status, bool is_last) {
  if (!is_own(status))
    return "the folder " + path.string() + " " + owner(status) + ", who could replace it; " +
           kElsewhere;
  const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
  if (!others_can_write(status) || (is_sticky && !is_last)) return {};
  // A sticky folder such as /tmp is shared by all users, and must stay so.
  const bool is_mine = status.st_uid == ::geteuid() && !is_sticky;
  return "other users can write to the folder " + path.string() + " (mode " +
         octal(status.st_mode) + ") and could replace it; " +
         (is_mine ? "run chmod go-w '" + path.string() + "', or " : "") + kElsewhere;
}

// Whether `folder` is above `inner`; both are canonical.
bool is_above(const fs::path& folder, const fs::path& inner) {
  if (inner.empty() || folder == inner) return false;
  return std::mismatch(folder.begin(), folder.end(), inner.begin(), inner.end()).first ==
         folder.end();
}

fs::path home() {
  const char* named = std::getenv("HOME");
  if (named == nullptr || *named != '/') return {};
  std::error_code error;
  fs::path path = fs::canonical(named, error);
  return error ? fs::path() : path;
}

std::string cannot_examine(const fs::path& path) {
  return path.string() + " cannot be examined: " + std::generic_category().message(errno);
}

// The files that SQLite looks for beside a database.
std::string why_companions(const fs::path& path) {
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    const fs::path companion = path.string() + suffix;
    struct stat status{};
    if (::lstat(companion.c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) continue;
    if (std::string why = why_file(companion, status); !why.empty()) return why;
  }
  return {};
}

void push(std::vector<std::string>& parts, const fs::path& path) {
  const std::size_t first = parts.size();
  for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
  std::reverse(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end());
}

}  // namespace

bool is_own_file(const struct stat& status) { return is_own(status) && !others_can_write(status); }

std::string why_untrusted(const std::string& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error);
  if (error) return "its folder cannot be found: " + error.message();
  const fs::path own = home();
  fs::path folder = "/";
  std::vector<std::string> parts;  // still to visit, the next one last
  push(parts, full);
  for (int links = 0; !parts.empty();) {
    const std::string part = parts.back();
    parts.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      folder = folder.parent_path();
      continue;
    }
    const bool is_last = parts.empty();
    struct stat status{};
    if (kAppIsUser ? is_last : !is_above(folder, own)) {
      if (::stat(folder.c_str(), &status) != 0) return cannot_examine(folder);
      if (std::string why = why_folder(folder, status, is_last); !why.empty()) return why;
    }
    const fs::path next = folder / part;
    if (::lstat(next.c_str(), &status) != 0) {
      if (errno != ENOENT) return cannot_examine(next);
      return is_last ? why_companions(next) : std::string();  // we create the rest ourselves
    }
    if (S_ISLNK(status.st_mode)) {
      if (!is_own(status))
        return "the link " + next.string() + " " + owner(status) + "; " + kElsewhere;
      const fs::path target = fs::read_symlink(next, error);
      if (++links > kMostLinks) errno = ELOOP;
      if (error || links > kMostLinks) return cannot_examine(next);
      if (target.is_absolute()) folder = "/";
      push(parts, target);
    } else if (is_last) {
      std::string why = why_file(next, status);
      return why.empty() ? why_companions(next) : why;
    } else if (S_ISDIR(status.st_mode)) {
      folder = next;
    } else {
      return {};  // a file where a folder is needed: creating the file reports the error
    }
  }
  return {};
}

void make_private_folders(const std::string& path) {
  const fs::path folder(path);
  if (folder.empty() || fs::is_directory(folder)) return;
  if (folder.has_parent_path() && folder.parent_path() != folder)
    make_private_folders(folder.parent_path().string());
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw std::system_error(errno, std::generic_category(), "cannot make the folder " + path);
}

void make_private_file(const std::string& path) {
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, S_IRUSR | S_IWUSR);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace clgpu::store
