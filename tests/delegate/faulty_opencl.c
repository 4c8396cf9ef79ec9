/* A real OpenCL library (REAL, a path) with calls that fail when told to: for tests of what a
 * device that runs out of memory or crashes leads to. It is linked with the real library, so that
 * all functions it lacks are found there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;

static char armed[64];
static cl_int code;
static int skip, times;
static uint64_t device_types[8]; /* told instead of the real ones, by order of asking */
static void* devices[8];
static char device_name[64]; /* told instead of each real one */
static int events;           /* asked for with launches and copies */
static struct {
  cl_uint what;
  uint64_t bits;
} told[32];
static int tellings;

/* From now on `call` fails with `error`, `count` times, but not at once: after `after` more calls.
 */
void fault(const char* call, cl_int error, int after, int count) {
  strncpy(armed, call, sizeof armed - 1);
  code = error;
  skip = after;
  times = count;
}

/* What clGetDeviceInfo says of the type of the `index`-th device it is asked about. */
void pretend(int index, uint64_t type) { device_types[index] = type; }

/* What clGetDeviceInfo says of the name of any device. */
void rename_devices(const char* name) { strncpy(device_name, name, sizeof device_name - 1); }

/* What clGetDeviceInfo says of a number of any device. */
void tell(cl_uint what, uint64_t bits) {
  told[tellings].what = what;
  told[tellings++].bits = bits;
}

int events_asked_for(void) { return events; }

static int fails(const char* call) {
  if (strcmp(armed, call) != 0 || times == 0 || skip-- > 0) return 0;
  skip = 0;
  --times;
  return 1;
}

static void* real(const char* call) { return dlsym(dlopen(REAL, RTLD_NOW), call); }

#define CALL(parameters, arguments) \
  if (fails(__func__)) return code; \
  return ((cl_int(*) parameters)real(__func__))arguments;

cl_int clEnqueueNDRangeKernel(void* queue, void* kernel, cl_uint dim, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint n,
                              const void* wait, void* event) {
  events += event != NULL;
  CALL((void*, void*, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint, const void*,
        void*),
       (queue, kernel, dim, offset, global, local, n, wait, event))
}

cl_int clEnqueueReadBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset, size_t bytes,
                           void* target, cl_uint n, const void* wait, void* event) {
  events += event != NULL;
  CALL((void*, void*, cl_uint, size_t, size_t, void*, cl_uint, const void*, void*),
       (queue, buffer, blocking, offset, bytes, target, n, wait, event))
}

cl_int clEnqueueWriteBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset,
                            size_t bytes, const void* source, cl_uint n, const void* wait,
                            void* event) {
  events += event != NULL;
  CALL((void*, void*, cl_uint, size_t, size_t, const void*, cl_uint, const void*, void*),
       (queue, buffer, blocking, offset, bytes, source, n, wait, event))
}

cl_int clGetEventProfilingInfo(void* event, cl_uint what, size_t size, void* value, size_t* needed){
    CALL((void*, cl_uint, size_t, void*, size_t*), (event, what, size, value, needed))}

cl_int clEnqueueMarkerWithWaitList(void* queue, cl_uint n, const void* wait, void* event) {
  CALL((void*, cl_uint, const void*, void*), (queue, n, wait, event))
}

void* clEnqueueMapBuffer(void* queue, void* buffer, cl_uint blocking, uint64_t flags, size_t offset,
                         size_t bytes, cl_uint n, const void* wait, void* event, cl_int* error) {
  if (fails(__func__)) {
    *error = code;
    return NULL;
  }
  return ((void* (*)(void*, void*, cl_uint, uint64_t, size_t, size_t, cl_uint, const void*, void*,
                     cl_int*))real(__func__))(queue, buffer, blocking, flags, offset, bytes, n,
                                              wait, event, error);
}

void* clCreateBuffer(void* context, uint64_t flags, size_t bytes, void* host, cl_int* error) {
  const uint64_t use_host_ptr = 1 << 3;
  if (fails(__func__) || ((flags & use_host_ptr) != 0 && fails("CL_MEM_USE_HOST_PTR"))) {
    *error = code;
    return NULL;
  }
  return ((void* (*)(void*, uint64_t, size_t, void*, cl_int*))real(__func__))(context, flags, bytes,
                                                                              host, error);
}

cl_int clGetDeviceInfo(void* device, cl_uint what, size_t size, void* value, size_t* needed) {
  if (fails(__func__)) return code;
  const cl_int result = ((cl_int (*)(void*, cl_uint, size_t, void*, size_t*))real(__func__))(
      device, what, size, value, needed);
  const cl_uint type = 0x1000, name = 0x102B;
  if (what == name && device_name[0] != 0) {
    if (needed != NULL) *needed = sizeof device_name;
    if (value != NULL) memcpy(value, device_name, size);
    return 0;
  }
  for (int i = 0; result == 0 && value != NULL && i < tellings; ++i) {
    for (size_t at = 0; what == told[i].what && at < size; at += sizeof told[i].bits)
      memcpy((char*)value + at, &told[i].bits, size - at < 8 ? size - at : 8);
  }
  for (int i = 0; result == 0 && what == type && value != NULL && i < 8; ++i) {
    if (devices[i] == NULL) devices[i] = device;
    if (devices[i] != device) continue;
    if (device_types[i] != 0) memcpy(value, &device_types[i], sizeof device_types[i]);
    break;
  }
  return result;
}
