#include "cl/compile_process.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cl/fork.hpp"

#if !defined(__ANDROID__) && !defined(_WIN32)
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern char** environ;
#endif

namespace clgpu::cl {

bool has_untested_compiler(const DeviceInfo& info) {
  for (const char* tested : {"NVIDIA CUDA", "Portable Computing Language", "Oclgrind"}) {
    if (info.platform == tested) return false;
  }
  return !(info.is_cpu() && info.platform.rfind("Intel(R)", 0) == 0);
}

#if defined(__ANDROID__) || defined(_WIN32)

// Apps of Android may not run programs of their own files.
CompileProcess::Result CompileProcess::build(const Device& /*device*/, const std::string& /*text*/,
                                             const std::string& /*options*/,
                                             const std::string& /*entry*/) {
  return {Outcome::kNoChild, {}, "this system lets an app start no program of its own"};
}

void CompileProcess::end() {}

#else

namespace {

// Of this library or of the target if it is a link, with a slash at its end; empty if the loader
// does not know.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  char* const real = ::realpath(info.dli_fname, nullptr);
  const std::string path = real != nullptr ? real : "";
  std::free(real);
  return path.substr(0, path.rfind('/') + 1);
}

// How the child ends that has waited too long for a program.
const std::string kIdleEnd = "with exit code " + std::to_string(kIdleCode);

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;  // the socket has SO_NOSIGPIPE
#endif

bool send_all(int socket, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, bytes, size, kSendFlags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(socket, bytes, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// Two connected sockets, which no other program that this process starts inherits.
bool make_sockets(int sockets[2]) {
#if defined(SOCK_CLOEXEC)
  return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0;
#else
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return false;
  const int on = 1;
  ::setsockopt(sockets[0], SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
  return ::fcntl(sockets[0], F_SETFD, FD_CLOEXEC) == 0 &&
         ::fcntl(sockets[1], F_SETFD, FD_CLOEXEC) == 0;
#endif
}

// The place of an object in the list that `ask` fills; -1 if it is not there.
template <class Object, class Ask>
int place_of(Object wanted, Ask ask) {
  cl_uint count = 0;
  if (ask(0, nullptr, &count) != CL_SUCCESS) return -1;
  std::vector<Object> all(count);
  if (ask(count, all.data(), nullptr) != CL_SUCCESS) return -1;
  const auto found = std::find(all.begin(), all.end(), wanted);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

}  // namespace

void CompileProcess::start(const Device& device) {
  const Api& api = *device.api;
  const int platform = place_of(device.platform, [&](cl_uint n, cl_platform_id* all, cl_uint* m) {
    return api.clGetPlatformIDs(n, all, m);
  });
  const int place = place_of(device.id, [&](cl_uint n, cl_device_id* all, cl_uint* m) {
    return api.clGetDeviceIDs(device.platform, CL_DEVICE_TYPE_ALL, n, all, m);
  });
  const std::string program = own_folder() + "clgpu_compile";
  std::vector<std::string> texts{program, device.info.library, std::to_string(platform),
                                 std::to_string(place), device.info.name};
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  int sockets[2] = {-1, -1};
  if (!make_sockets(sockets)) {
    none_ = std::string("there is no socket for it: ") + std::strerror(errno);
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  // What drivers print there is not part of a command's output.
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  pid_t child = 0;
  const int code =
      ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(sockets[1]);
  if (code != 0) {
    ::close(sockets[0]);
    none_ = program + " cannot be started: " + std::strerror(code);
    return;
  }
  socket_ = sockets[0];
  child_ = child;
  char ready = 0;
  if (!receive_all(socket_, &ready, 1))
    none_ = program + " does not find the device, and ended " + wait();
}

CompileProcess::Result CompileProcess::build(const Device& device, const std::string& text,
                                             const std::string& options, const std::string& entry) {
  // A child that was forked from this process does not share its child.
  if (is_forked_child()) return {Outcome::kNoChild, {}, "this process was forked"};
  bool is_idle_end = true;
  Result result;
  while (is_idle_end) {
    if (none_.empty() && socket_ < 0) start(device);
    if (!none_.empty()) return {Outcome::kNoChild, {}, none_};
    result = ask(text, options, entry);
    is_idle_end = result.outcome == Outcome::kEnded && result.why == kIdleEnd;
  }
  return result;
}

CompileProcess::Result CompileProcess::ask(const std::string& text, const std::string& options,
                                           const std::string& entry) {
  Result result;
  const std::uint64_t sizes[3] = {options.size(), entry.size(), text.size()};
  std::uint64_t bytes = 0;
  const bool lives =
      send_all(socket_, sizes, sizeof sizes) && send_all(socket_, options.data(), options.size()) &&
      send_all(socket_, entry.data(), entry.size()) &&
      send_all(socket_, text.data(), text.size()) && receive_all(socket_, &bytes, sizeof bytes);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // more is no answer of the child
  if (lives && bytes <= kMost) {
    result.binary.resize(bytes);
    if (receive_all(socket_, result.binary.data(), bytes)) {
      result.outcome = Outcome::kBuilt;
      return result;
    }
  }
  return {Outcome::kEnded, {}, wait()};
}

void CompileProcess::end() {
  none_.clear();
  if (socket_ >= 0 && !is_forked_child()) wait();
}

// The child leaves at the end of its input. A process that was forked from this one may have the
// socket, too, so closing it is not enough. Returns how the child has ended.
std::string CompileProcess::wait() {
  ::shutdown(socket_, SHUT_RDWR);
  ::close(std::exchange(socket_, -1));
  int status = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(child_, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != child_) return "for an unknown reason";  // the application has waited for it
  if (WIFSIGNALED(status)) return "by signal " + std::to_string(WTERMSIG(status));
  return "with exit code " + std::to_string(WEXITSTATUS(status));
}

#endif

}  // namespace clgpu::cl
