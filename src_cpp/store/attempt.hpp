// Calls of drivers that may end the process, and what earlier processes have learned about them.
#pragma once

#include <string>

#include "base/error.hpp"
#include "store/store.hpp"

namespace clgpu::store {

/// A call that may end the process: a build of a program, the first launch of a kernel.
struct Risk {
  std::string key;    ///< letters and digits
  std::string group;  ///< the key of what it has in common with others: a second end concerns all
  std::string what;   ///< "the compilation of FILE with OPTIONS on DEVICE"
};

/// The call has ended an earlier process and is not made again.
class LeftOut : public Error {
  using Error::Error;
};

/// Throws LeftOut if an earlier process has ended during the call, and stores that for later ones.
/// Does nothing if the store is off, or holds only programs.
void refuse_if_ended(Store& store, const Risk& risk);

/// Stores that a child process has ended during the call, in which it was tried before this process
/// makes it: no later process makes it.
void note_ended_child(Store& store, const Risk& risk);

/// While it exists, a file beside the cache tells that this process makes the call. The file is
/// locked, so others know whether that process lives; if the process ends, the file stays.
/// There is no file if the store is off, holds only programs or cannot be written, or if another
/// thread or process makes the call at the same time.
class Attempt {
 public:
  Attempt() = default;
  /// Throws LeftOut as refuse_if_ended() does.
  Attempt(Store& store, const Risk& risk);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  Attempt(Attempt&& other) noexcept;
  Attempt& operator=(Attempt&& other) noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace clgpu::store
