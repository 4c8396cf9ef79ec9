// Loaded before libclgpu_jni.so, it refuses blocks of a MB or more: for Use.java's "memory".
#include <cstdlib>
#include <new>

void* operator new(std::size_t size) {
  void* memory = size < 1'000'000 ? std::malloc(size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
