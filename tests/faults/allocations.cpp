// To be preloaded: `operator new` that throws std::bad_alloc on demand, for calls from one library
// (FAULTS_CALLER, part of its path) alone.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<std::uintptr_t> first{0}, last{0};  // the library's code
std::atomic<long> skip{-1};                     // calls before the one that throws; -1: none
std::atomic<long> seen{0}, thrown{0};
std::atomic<bool> counts{false};

int look(dl_phdr_info* info, std::size_t, void* name) {
  if (std::strstr(info->dlpi_name, static_cast<const char*>(name)) == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (first == 0 || begin < first) first = begin;
    last = std::max<std::uintptr_t>(last, begin + part.p_memsz);
  }
  return 1;
}

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  if (counts && at >= first && at < last) {
    const long number = seen++;
    if (number == skip) {
      ++thrown;
      throw std::bad_alloc();
    }
  }
  if (bytes == 0) bytes = 1;
  void* memory = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    memory = std::malloc(bytes);
  } else if (posix_memalign(&memory, alignment, bytes) != 0) {
    memory = nullptr;
  }
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

extern "C" {

// From now on calls are counted, and the one after `after` others throws; -1: none does. False: the
// library is not loaded.
bool allocations_watch(long after) {
  if (first == 0) {
    const char* name = std::getenv("FAULTS_CALLER");
    if (name != nullptr) dl_iterate_phdr(look, const_cast<char*>(name));
  }
  seen = thrown = 0;
  skip = after;
  counts = true;
  return first != 0;
}
void allocations_rest() { counts = false; }
long allocations_seen() { return seen; }
long allocations_thrown() { return thrown; }

}  // extern "C"

void* operator new(std::size_t bytes) { return allocate(bytes, 0, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 0, __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
