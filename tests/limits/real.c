/* What the layer leaves to the real library (LIMITS_LIBRARY, a path or a name), of which it shows
 * one platform with one device, a CPU unless LIMITS_ANY_DEVICE is set. It is opened, not linked:
 * calls inside of it stay inside. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library, *platform, *device;

static void choose(void) {
  const char* name = getenv("LIMITS_LIBRARY");
  void* platforms[16];
  cl_uint count = 0;
  library = dlopen(name != NULL ? name : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
  REAL(cl_int, clGetPlatformIDs, (cl_uint, void**, cl_uint*))(16, platforms, &count);
  for (cl_uint i = 0; i < count && i < 16 && device == NULL; ++i) {
    platform = platforms[i];
    if (REAL(cl_int, clGetDeviceIDs, (void*, cl_ulong, cl_uint, void**, cl_uint*))(
            platform, getenv("LIMITS_ANY_DEVICE") != NULL ? CL_DEVICE_TYPE_ALL : CL_DEVICE_TYPE_CPU,
            1, &device, NULL) != 0)
      device = NULL;
  }
}

/* Within `choose`, too, when the library is open. */
void* real(const char* name) {
  if (library == NULL) pthread_once(&once, choose);
  return dlsym(library, name);
}

void* real_device(void) {
  pthread_once(&once, choose);
  return device;
}

const char* fact(const char* key) {
  char name[64];
  snprintf(name, sizeof name, "LIMITS_%s", key);
  return getenv(name);
}

cl_ulong limit(const char* key, cl_ulong otherwise) {
  const char* text = fact(key);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

cl_int clGetPlatformIDs(cl_uint count, void** platforms, cl_uint* found) {
  const cl_int not_found = -1001;
  if (real_device() == NULL) return not_found;
  if (found != NULL) *found = 1;
  if (platforms != NULL && count > 0) platforms[0] = platform;
  return 0;
}

cl_int clGetDeviceIDs(void* of, cl_ulong type, cl_uint count, void** devices, cl_uint* found) {
  const cl_int not_found = -1;
  const cl_ulong by_default = 1;
  (void)of;
  if ((type & (limit("TYPE", CL_DEVICE_TYPE_GPU) | by_default)) == 0 || real_device() == NULL)
    return not_found;
  if (found != NULL) *found = 1;
  if (devices != NULL && count > 0) devices[0] = device;
  return 0;
}

#define FORWARD(result, name, parameters, arguments) \
  result name parameters { return ((result(*) parameters)real(#name))arguments; }

#define WAITS cl_uint n, const void *wait, void *event

FORWARD(cl_int, clReleaseContext, (void* context), (context))
FORWARD(cl_int, clGetMemObjectInfo,
        (void* object, cl_uint what, size_t size, void* value, size_t* needed),
        (object, what, size, value, needed))
FORWARD(cl_int, clGetSupportedImageFormats,
        (void* context, cl_ulong flags, cl_uint type, cl_uint n, void* formats, cl_uint* found),
        (context, flags, type, n, formats, found))
FORWARD(cl_int, clGetImageInfo,
        (void* image, cl_uint what, size_t size, void* value, size_t* needed),
        (image, what, size, value, needed))
FORWARD(cl_int, clGetProgramBuildInfo,
        (void* program, void* d, cl_uint what, size_t size, void* value, size_t* needed),
        (program, d, what, size, value, needed))
FORWARD(cl_int, clGetKernelInfo,
        (void* kernel, cl_uint what, size_t size, void* value, size_t* needed),
        (kernel, what, size, value, needed))
FORWARD(cl_int, clEnqueueFillBuffer,
        (void* queue, void* buffer, const void* pattern, size_t size, size_t offset, size_t bytes,
         WAITS),
        (queue, buffer, pattern, size, offset, bytes, n, wait, event))
FORWARD(cl_int, clEnqueueUnmapMemObject, (void* queue, void* object, void* mapped, WAITS),
        (queue, object, mapped, n, wait, event))
FORWARD(cl_int, clRetainContext, (void* context), (context))
FORWARD(cl_int, clEnqueueMarkerWithWaitList, (void* queue, WAITS), (queue, n, wait, event))
FORWARD(cl_int, clEnqueueBarrierWithWaitList, (void* queue, WAITS), (queue, n, wait, event))
FORWARD(cl_int, clGetEventInfo,
        (void* event, cl_uint what, size_t size, void* value, size_t* needed),
        (event, what, size, value, needed))
FORWARD(cl_int, clGetEventProfilingInfo,
        (void* event, cl_uint what, size_t size, void* value, size_t* needed),
        (event, what, size, value, needed))
FORWARD(cl_int, clWaitForEvents, (cl_uint n, const void* events), (n, events))
FORWARD(cl_int, clReleaseEvent, (void* event), (event))
