#include "store/attempt.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/finally.hpp"
#include "store/trust.hpp"

namespace clgpu::store {
namespace {

constexpr const char* kAgain = "again";

bool is_kept_by(const Store& store) { return store.is_on() && !store.is_for_programs(); }

std::string folder_of(const Store& store) { return store.path() + "-attempts"; }

std::string path_of(const Store& store, const Risk& risk) {
  return folder_of(store) + "/" + risk.key;
}

// Names this process. Several calls may be under way when it ends.
std::string this_process() {
  static const auto start = std::chrono::system_clock::now().time_since_epoch().count();
  return std::to_string(::getpid()) + "-" + std::to_string(start);
}

// Opens and locks a file; -1 if that is not possible, or if somebody else has locked it.
int open_locked(const std::string& path, int flags) {
  while (true) {
    const int descriptor =
        ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, S_IRUSR | S_IWUSR);
    if (descriptor < 0) return -1;
    struct stat status{};
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || ::fstat(descriptor, &status) != 0) {
      ::close(descriptor);
      return -1;
    }
    if (status.st_nlink > 0) return descriptor;
    ::close(descriptor);  // its owner has removed it before the lock was ours
  }
}

// Its owner writes to it once it is locked.
bool is_left(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && status.st_size > 0;
}

[[noreturn]] void leave_out(const std::string& what) {
  throw LeftOut("an earlier process ended during " + what +
                "; to try it again, run `clgpu cache clear --kind crash` or delete the cache");
}

// The process that an Attempt has written to its file.
std::string process_of(int descriptor) {
  std::array<char, 64> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string line(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return line.substr(0, line.find('\n'));
}

// The row of the group has the process that ended first, until another one has ended, too.
void put_end(Store& store, const Risk& risk, const std::string& process) {
  const std::string first = store.get(kCrash, risk.group).value_or(process);
  store.put(kCrash, risk.key, process, risk.what);
  store.put(kCrash, risk.group, first == process ? process : kAgain, "all like: " + risk.what);
}

// The file goes only when a row tells the same.
void remember(Store& store, const Risk& risk, const std::string& path, int descriptor) {
  put_end(store, risk, process_of(descriptor));
  if (store.get(kCrash, risk.key)) ::unlink(path.c_str());
  store.warn("an earlier process ended during " + risk.what + "; it is left out from now on");
}

}  // namespace

void refuse_if_ended(Store& store, const Risk& risk) {
  if (!is_kept_by(store)) return;
  if (store.get(kCrash, risk.key)) leave_out(risk.what);
  if (store.get(kCrash, risk.group) == kAgain)
    leave_out(risk.what + ", or that of the same file with other options, twice");
  const std::string path = path_of(store, risk);
  const int descriptor = open_locked(path, 0);
  if (descriptor < 0) return;
  const Finally unlock([descriptor] { ::close(descriptor); });
  if (!is_left(descriptor)) return;
  remember(store, risk, path, descriptor);
  leave_out(risk.what);
}

void note_ended_child(Store& store, const Risk& risk) {
  if (is_kept_by(store)) put_end(store, risk, "child " + risk.key);
  store.warn("a child process ended twice during " + risk.what + "; it is left out from now on");
}

Attempt::Attempt(Store& store, const Risk& risk) {
  refuse_if_ended(store, risk);
  if (!is_kept_by(store)) return;
  std::string path = path_of(store, risk);
  const std::string folder = folder_of(store), line = this_process() + "\n" + risk.what + "\n";
  int descriptor = open_locked(path, O_CREAT);
  if (descriptor < 0 && errno == ENOENT) {
    try {
      make_private_folders(folder);
    } catch (const std::system_error&) {
      return;
    }
    descriptor = open_locked(path, O_CREAT);
  }
  if (descriptor < 0) return;
  if (is_left(descriptor)) {  // by a process that has ended meanwhile
    ::close(descriptor);
    refuse_if_ended(store, risk);
    return;
  }
  path_ = std::move(path);
  descriptor_ = descriptor;
  if (::write(descriptor, line.data(), line.size()) <= 0) *this = Attempt();
}

Attempt::~Attempt() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

Attempt::Attempt(Attempt&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Attempt& Attempt::operator=(Attempt&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace clgpu::store
