#include "base/page.hpp"

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace clgpu {

std::size_t page_bytes() {
#if defined(_SC_PAGESIZE)
  static const long bytes = sysconf(_SC_PAGESIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return 4096;
}

}  // namespace clgpu
