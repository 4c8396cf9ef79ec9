// clgpu_compile: builds programs for a process that does not trust the compiler of a driver
// (cl/compile_process.hpp). Standard input is a socket:
//
//   clgpu_compile LIBRARY PLATFORM DEVICE NAME    the places of platform and device in the lists of
//                                                 the library, and the device's name, to be sure
//   <- one byte                                   the device is there
//   -> three sizes of 64 bits, and as many bytes  build options, the name of a kernel, the source
//   <- one size, and as many bytes                the program's binary; nothing where there is none
//
// If it ends in between, the compiler has ended it. It calls nothing of the C++ library, so that it
// needs none, and takes the declarations of OpenCL only from the delegate.
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cl/api.hpp"

#if defined(__linux__)
#include <sys/syscall.h>
#endif

namespace {

using namespace clgpu::cl;

constexpr cl_uint kMost = 64;                              // platforms, devices
constexpr int kIdleMilliseconds = 10'000, kIdleExit = 10;  // as in cl/compile_process.hpp

[[noreturn]] void stop(int code) { _exit(code); }  // no driver's handlers: some wait for threads

bool move_all(void* data, std::size_t size, bool reads) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t done =
        reads ? ::read(STDIN_FILENO, bytes, size) : ::write(STDIN_FILENO, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

// The bytes with a zero behind them; null at the end of the input.
char* read_text(std::size_t size) {
  auto* text = static_cast<char*>(std::malloc(size + 1));
  if (text == nullptr || !move_all(text, size, true)) return nullptr;
  text[size] = '\0';
  return text;
}

// Waits for input, but not for long: nobody might ever ask again.
void wait_for_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, kIdleMilliseconds) == 0) stop(kIdleExit);
}

// Files that the starter has open are none of ours: what waits for their end should not wait for
// this process.
void close_other_files() {
  constexpr int kFirst = 3, kMostFiles = 1024;
#if defined(SYS_close_range)
  if (::syscall(SYS_close_range, kFirst, ~0U, 0U) == 0) return;
#endif
  for (int file = kFirst; file < kMostFiles; ++file) ::close(file);
}

// The functions of a library that are called here; others stay null.
bool load(Api& api, const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  bool all = true;
#define CLGPU_LOAD(result, name, parameters)                              \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  all = all && api.name != nullptr;
  CLGPU_CL_FUNCTIONS(CLGPU_LOAD)
#undef CLGPU_LOAD
  return all;
}

struct Place {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
};

// Stops if the device is not there.
Place open(const Api& api, const char* platform, const char* device, const char* name) {
  Place place;
  cl_platform_id platforms[kMost];
  cl_device_id devices[kMost];
  cl_uint count = 0;
  const auto first = static_cast<cl_uint>(std::atoi(platform));
  const auto second = static_cast<cl_uint>(std::atoi(device));
  if (api.clGetPlatformIDs(kMost, platforms, &count) != CL_SUCCESS || first >= count ||
      first >= kMost)
    stop(4);
  if (api.clGetDeviceIDs(platforms[first], CL_DEVICE_TYPE_ALL, kMost, devices, &count) !=
          CL_SUCCESS ||
      second >= count || second >= kMost)
    stop(4);
  place.device = devices[second];
  char answer[1024] = "";
  if (api.clGetDeviceInfo(place.device, CL_DEVICE_NAME, sizeof answer - 1, answer, nullptr) !=
          CL_SUCCESS ||
      std::strcmp(answer, name) != 0)
    stop(5);
  const std::intptr_t properties[] = {CL_CONTEXT_PLATFORM,
                                      reinterpret_cast<std::intptr_t>(platforms[first]), 0};
  cl_int code = CL_SUCCESS;
  place.context = api.clCreateContext(properties, 1, &place.device, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) stop(6);
  return place;
}

// Some drivers compile when the kernel is created. Errors are left for the other process to see.
void build(const Api& api, const Place& place, const char* options, const char* entry,
           const char* text, std::size_t length) {
  std::uint64_t size = 0;
  unsigned char* bytes = nullptr;
  cl_int code = CL_SUCCESS;
  const cl_program program = api.clCreateProgramWithSource(place.context, 1, &text, &length, &code);
  if (code == CL_SUCCESS &&
      api.clBuildProgram(program, 1, &place.device, options, nullptr, nullptr) == CL_SUCCESS) {
    const cl_kernel kernel = api.clCreateKernel(program, entry, &code);
    if (code == CL_SUCCESS) api.clReleaseKernel(kernel);
    std::size_t has = 0;
    if (api.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof has, &has, nullptr) ==
            CL_SUCCESS &&
        has > 0) {
      bytes = static_cast<unsigned char*>(std::malloc(has));
      if (bytes != nullptr &&
          api.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes,
                               static_cast<void*>(&bytes), nullptr) == CL_SUCCESS)
        size = has;
    }
  }
  if (program != nullptr) api.clReleaseProgram(program);
  if (!move_all(&size, sizeof size, false) || !move_all(bytes, size, false)) stop(0);
  std::free(bytes);
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kArguments = 5;
  if (count != kArguments) stop(2);
  close_other_files();
  Api api;
  if (!load(api, arguments[1])) stop(3);
  const Place place = open(api, arguments[2], arguments[3], arguments[4]);
  char ready = 1;
  if (!move_all(&ready, 1, false)) stop(0);
  while (true) {
    wait_for_input();
    std::uint64_t sizes[3];
    if (!move_all(sizes, sizeof sizes, true)) stop(0);
    char* const options = read_text(sizes[0]);
    char* const entry = options != nullptr ? read_text(sizes[1]) : nullptr;
    char* const text = entry != nullptr ? read_text(sizes[2]) : nullptr;
    if (text == nullptr) stop(0);
    build(api, place, options, entry, text, sizes[2]);
    std::free(text);
    std::free(entry);
    std::free(options);
  }
}
