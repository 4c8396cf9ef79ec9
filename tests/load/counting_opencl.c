/* The OpenCL library COUNTING_LIBRARY, with the objects counted that were made and not released:
 * for tests of what stays behind. It poses as the hidden driver of a Pixel phone, whose functions
 * are asked for by name; so functions that make no objects are the library's own. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;

static _Atomic long alive;

/* Objects that were made and not released; contexts, which live as long as a process, are not
 * counted. */
long objects_alive(void) { return alive; }

static void* real(const char* name) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("COUNTING_LIBRARY"), RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "counting_opencl: %s\n", dlerror());
    exit(1);
  }
  return dlsym(library, name);
}

/* COUNTING_KEEPS names a function that releases nothing: a leak, for the test of the counting. */
static int is_kept(const char* name) {
  const char* kept = getenv("COUNTING_KEEPS");
  return kept != NULL && strcmp(kept, name) == 0;
}

#define MAKES(name, parameters, arguments)                   \
  static void* name parameters {                             \
    void* made = ((void*(*)parameters)real(#name))arguments; \
    if (made != NULL) ++alive;                               \
    return made;                                             \
  }
#define RELEASES(name)                               \
  static cl_int name(void* object) {                 \
    if (is_kept(#name)) return 0;                    \
    --alive;                                         \
    return ((cl_int (*)(void*))real(#name))(object); \
  }
/* The last parameter is where an event goes. */
#define ENQUEUES(name, parameters, arguments)                         \
  static cl_int name parameters {                                     \
    const cl_int code = ((cl_int(*) parameters)real(#name))arguments; \
    if (code == 0 && event != NULL) ++alive;                          \
    return code;                                                      \
  }

MAKES(clCreateCommandQueue, (void* c, void* d, cl_ulong flags, cl_int* code), (c, d, flags, code))
MAKES(clCreateBuffer, (void* c, cl_ulong flags, size_t n, void* host, cl_int* code),
      (c, flags, n, host, code))
MAKES(clCreateSubBuffer, (void* b, cl_ulong flags, cl_uint type, const void* region, cl_int* code),
      (b, flags, type, region, code))
MAKES(clCreateImage,
      (void* c, cl_ulong flags, const void* format, const void* what, void* host, cl_int* code),
      (c, flags, format, what, host, code))
MAKES(clCreateProgramWithSource,
      (void* c, cl_uint n, const char** texts, const size_t* sizes, cl_int* code),
      (c, n, texts, sizes, code))
MAKES(clCreateProgramWithBinary,
      (void* c, cl_uint n, const void* d, const size_t* sizes, const unsigned char** binaries,
       cl_int* each, cl_int* code),
      (c, n, d, sizes, binaries, each, code))
MAKES(clCreateKernel, (void* program, const char* name, cl_int* code), (program, name, code))

RELEASES(clReleaseCommandQueue)
RELEASES(clReleaseMemObject)
RELEASES(clReleaseProgram)
RELEASES(clReleaseKernel)
RELEASES(clReleaseEvent)

ENQUEUES(clEnqueueNDRangeKernel,
         (void* q, void* kernel, cl_uint axes, const size_t* offset, const size_t* global,
          const size_t* local, cl_uint n, const void* wait, void* event),
         (q, kernel, axes, offset, global, local, n, wait, event))
ENQUEUES(clEnqueueReadBuffer,
         (void* q, void* b, cl_uint blocks, size_t offset, size_t bytes, void* host, cl_uint n,
          const void* wait, void* event),
         (q, b, blocks, offset, bytes, host, n, wait, event))
ENQUEUES(clEnqueueWriteBuffer,
         (void* q, void* b, cl_uint blocks, size_t offset, size_t bytes, const void* host,
          cl_uint n, const void* wait, void* event),
         (q, b, blocks, offset, bytes, host, n, wait, event))
ENQUEUES(clEnqueueCopyBuffer,
         (void* q, void* from, void* to, size_t a, size_t b, size_t bytes, cl_uint n,
          const void* wait, void* event),
         (q, from, to, a, b, bytes, n, wait, event))
ENQUEUES(clEnqueueUnmapMemObject,
         (void* q, void* b, void* host, cl_uint n, const void* wait, void* event),
         (q, b, host, n, wait, event))
ENQUEUES(clEnqueueMarkerWithWaitList, (void* q, cl_uint n, const void* wait, void* event),
         (q, n, wait, event))

static void* clEnqueueMapBuffer(void* q, void* b, cl_uint blocks, cl_ulong flags, size_t offset,
                                size_t bytes, cl_uint n, const void* wait, void* event,
                                cl_int* code) {
  void* mapped = ((void* (*)(void*, void*, cl_uint, cl_ulong, size_t, size_t, cl_uint, const void*,
                             void*, cl_int*))real(__func__))(q, b, blocks, flags, offset, bytes, n,
                                                             wait, event, code);
  if (mapped != NULL && event != NULL) ++alive;
  return mapped;
}

void enableOpenCL(void) {}

void* loadOpenCLPointer(const char* name) {
#define OURS(function) \
  if (strcmp(name, #function) == 0) return (void*)function;
  OURS(clCreateCommandQueue)
  OURS(clCreateBuffer)
  OURS(clCreateSubBuffer)
  OURS(clCreateImage)
  OURS(clCreateProgramWithSource)
  OURS(clCreateProgramWithBinary)
  OURS(clCreateKernel)
  OURS(clReleaseCommandQueue)
  OURS(clReleaseMemObject)
  OURS(clReleaseProgram)
  OURS(clReleaseKernel)
  OURS(clReleaseEvent)
  OURS(clEnqueueNDRangeKernel)
  OURS(clEnqueueReadBuffer)
  OURS(clEnqueueWriteBuffer)
  OURS(clEnqueueCopyBuffer)
  OURS(clEnqueueUnmapMemObject)
  OURS(clEnqueueMarkerWithWaitList)
  OURS(clEnqueueMapBuffer)
  return real(name);
}
