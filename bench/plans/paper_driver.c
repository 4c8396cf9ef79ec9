/* An OpenCL library whose devices exist on paper only: it answers what profiles say, and computes
 * nothing. Programs are not compiled, buffers have no memory unless someone maps them, launches end
 * at once. It refuses what the devices would refuse: objects that are too large, memory beyond what
 * there is, work-groups that a kernel does not allow.
 *
 * The environment variable CLGPU_PAPER names a file with a line for each fact, its words separated
 * by tabs; numbers of questions and answers are hexadecimal, answers byte by byte:
 *   profile                                       the facts below are of a new platform and device
 *   platform  QUESTION  ANSWER
 *   device    QUESTION  ANSWER
 *   kernel    NAME  OPTIONS  WORK-GROUP  LOCAL  REFUSED    OPTIONS *: whatever they are
 * A work-group of 0 means that the kernel does not build, REFUSED 1 that it cannot be launched. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <pthread.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;

enum {
  CL_DEVICE_NOT_FOUND = -1,
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_MISALIGNED_SUB_BUFFER_OFFSET = -13,
  CL_INVALID_VALUE = -30,
  CL_INVALID_IMAGE_SIZE = -40,
  CL_INVALID_BINARY = -42,
  CL_INVALID_WORK_GROUP_SIZE = -54,
  CL_INVALID_WORK_ITEM_SIZE = -55,
  CL_INVALID_OPERATION = -59,
  CL_INVALID_BUFFER_SIZE = -61,
  CL_PLATFORM_NOT_FOUND_KHR = -1001,
};
enum {
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_IMAGE_SUPPORT = 0x1016,
  CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
  CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
  CL_DEVICE_IMAGE_MAX_BUFFER_SIZE = 0x1040,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
};
#define CL_MEM_USE_HOST_PTR ((cl_ulong)1 << 3)
#define CL_MEM_ALLOC_HOST_PTR ((cl_ulong)1 << 4)

/* ------------------------------------------------------------------ the profiles */

typedef struct {
  int of_platform;
  cl_uint question;
  unsigned char* bytes;
  size_t size;
} Answer;

typedef struct {
  char *name, *options;
  size_t work_group, local;
  int refused;
} Kernel;

typedef struct {
  Answer* answers;
  size_t answer_count;
  Kernel* kernels; /* sorted by name, then by options */
  size_t kernel_count;
  char* unknown; /* lines of kernels that were asked for and are in no line of the file */
  cl_ulong in_use;
} Device; /* and its platform, and its context and queues */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Device* devices;
static cl_uint device_count;

static void* grown(void* list, size_t count, size_t item) {
  if ((count & (count - 1)) != 0) return list; /* full at powers of two */
  void* larger = realloc(list, (count == 0 ? 1 : 2 * count) * item);
  if (larger == NULL) abort();
  return larger;
}

static char* copy_of(const char* text) {
  char* copy = strdup(text);
  if (copy == NULL) abort();
  return copy;
}

static void add_answer(Device* device, int of_platform, const char* question, const char* hex) {
  Answer answer = {of_platform, (cl_uint)strtoul(question, NULL, 16), NULL, strlen(hex) / 2};
  answer.bytes = calloc(1, answer.size + 1);
  for (size_t i = 0; i < answer.size; ++i) {
    const char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};
    answer.bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  device->answers = grown(device->answers, device->answer_count, sizeof answer);
  device->answers[device->answer_count++] = answer;
}

static void add_kernel(Device* device, char* const* words) {
  const Kernel kernel = {copy_of(words[0]), copy_of(words[1]), strtoull(words[2], NULL, 10),
                         strtoull(words[3], NULL, 10), words[4][0] == '1'};
  device->kernels = grown(device->kernels, device->kernel_count, sizeof kernel);
  device->kernels[device->kernel_count++] = kernel;
}

static int compare(const void* a, const void* b) {
  const Kernel *x = a, *y = b;
  const int names = strcmp(x->name, y->name);
  return names != 0 ? names : strcmp(x->options, y->options);
}

static void read_facts(void) {
  const char* path = getenv("CLGPU_PAPER");
  FILE* file = path != NULL ? fopen(path, "r") : NULL;
  char* line = NULL;
  size_t room = 0;
  while (file != NULL && getline(&line, &room, file) > 0) {
    char* words[6] = {"", "", "", "", "", ""};
    size_t count = 0;
    char* rest = line;
    line[strcspn(line, "\n")] = 0;
    while (count < 6 && rest != NULL) words[count++] = strsep(&rest, "\t");
    if (strcmp(words[0], "profile") == 0) {
      devices = grown(devices, device_count, sizeof *devices);
      memset(&devices[device_count++], 0, sizeof *devices);
      continue;
    }
    if (device_count == 0) continue;
    Device* device = &devices[device_count - 1];
    if (strcmp(words[0], "platform") == 0) add_answer(device, 1, words[1], words[2]);
    if (strcmp(words[0], "device") == 0) add_answer(device, 0, words[1], words[2]);
    if (strcmp(words[0], "kernel") == 0 && count == 6) add_kernel(device, words + 1);
  }
  free(line);
  if (file != NULL) fclose(file);
  for (cl_uint i = 0; i < device_count; ++i)
    qsort(devices[i].kernels, devices[i].kernel_count, sizeof(Kernel), compare);
}

static const Answer* find_answer(const Device* device, int of_platform, cl_uint question) {
  for (size_t i = 0; i < device->answer_count; ++i) {
    const Answer* answer = &device->answers[i];
    if (answer->of_platform == of_platform && answer->question == question) return answer;
  }
  return NULL;
}

/* The `index`-th number of an answer; `otherwise` where there is none. */
static cl_ulong limit(const Device* device, cl_uint question, size_t index, cl_ulong otherwise) {
  const Answer* answer = find_answer(device, 0, question);
  cl_ulong number = 0;
  if (answer == NULL) return otherwise;
  if (answer->size == sizeof(cl_uint)) {
    cl_uint small;
    memcpy(&small, answer->bytes, sizeof small);
    return small;
  }
  if (answer->size < (index + 1) * sizeof number) return otherwise;
  memcpy(&number, answer->bytes + index * sizeof number, sizeof number);
  return number;
}

static cl_int tell(const void* data, size_t bytes, size_t size, void* value, size_t* needed) {
  if (needed != NULL) *needed = bytes;
  if (value == NULL) return 0;
  if (size < bytes) return CL_INVALID_VALUE;
  memcpy(value, data, bytes);
  return 0;
}

static cl_int tell_answer(const Device* device, int of_platform, cl_uint what, size_t size,
                          void* value, size_t* needed) {
  const Answer* answer = find_answer(device, of_platform, what);
  if (answer == NULL) return CL_INVALID_VALUE;
  return tell(answer->bytes, answer->size, size, value, needed);
}

cl_int clGetPlatformIDs(cl_uint count, void** platforms, cl_uint* found) {
  pthread_once(&once, read_facts);
  if (device_count == 0) return CL_PLATFORM_NOT_FOUND_KHR;
  if (found != NULL) *found = device_count;
  for (cl_uint i = 0; platforms != NULL && i < count && i < device_count; ++i)
    platforms[i] = &devices[i];
  return 0;
}

cl_int clGetPlatformInfo(void* platform, cl_uint what, size_t size, void* value, size_t* needed) {
  return tell_answer(platform, 1, what, size, value, needed);
}

cl_int clGetDeviceIDs(void* platform, cl_ulong type, cl_uint count, void** ids, cl_uint* found) {
  if (type == 0) return CL_DEVICE_NOT_FOUND;
  if (found != NULL) *found = 1;
  if (ids != NULL && count > 0) ids[0] = platform;
  return 0;
}

cl_int clGetDeviceInfo(void* device, cl_uint what, size_t size, void* value, size_t* needed) {
  return tell_answer(device, 0, what, size, value, needed);
}

/* ------------------------------------------------------------------ contexts, queues, events */

static void* given(void* object, cl_int* error) {
  if (error != NULL) *error = 0;
  return object;
}

static void* refused(cl_int code, cl_int* error) {
  if (error != NULL) *error = code;
  return NULL;
}

void* clCreateContext(const intptr_t* properties, cl_uint count, void* const* ids, void* notify,
                      void* user, cl_int* error) {
  (void)properties, (void)count, (void)notify, (void)user;
  return given(ids[0], error);
}

cl_int clReleaseContext(void* context) {
  (void)context;
  return 0;
}

void* clCreateCommandQueue(void* context, void* device, cl_ulong flags, cl_int* error) {
  (void)context, (void)flags;
  return given(device, error);
}

cl_int clReleaseCommandQueue(void* queue) {
  (void)queue;
  return 0;
}

static int an_event;

static cl_int done(void** event) {
  if (event != NULL) *event = &an_event;
  return 0;
}

cl_int clReleaseEvent(void* event) {
  (void)event;
  return 0;
}

cl_int clWaitForEvents(cl_uint count, void* const* events) {
  (void)count, (void)events;
  return 0;
}

cl_int clGetEventProfilingInfo(void* event, cl_uint what, size_t size, void* value,
                               size_t* needed) {
  const cl_ulong time = 0;
  (void)event, (void)what;
  return tell(&time, sizeof time, size, value, needed);
}

cl_int clFlush(void* queue) {
  (void)queue;
  return 0;
}

cl_int clFinish(void* queue) {
  (void)queue;
  return 0;
}

/* ------------------------------------------------------------------ memory */

typedef struct Memory {
  Device* device;
  struct Memory* whole; /* of a part, or the buffer of an image */
  size_t bytes, counted, offset;
  char* data; /* only where it is mapped */
  int is_own, references;
} Memory;

static void* keep(Device* device, Memory* whole, size_t bytes, size_t offset, size_t counted,
                  char* host, cl_int* error) {
  Memory* memory = calloc(1, sizeof *memory);
  if (memory == NULL) abort();
  *memory = (Memory){device, whole, bytes, counted, offset, host, 0, 1};
  pthread_mutex_lock(&mutex);
  if (whole != NULL) ++whole->references;
  device->in_use += counted;
  pthread_mutex_unlock(&mutex);
  return given(memory, error);
}

/* What the host has given has its memory there; so has what the device shall reach in the host's
 * memory, where that is not the device's own. */
static size_t counted(const Device* device, cl_ulong flags, size_t bytes) {
  const int is_pinned = (flags & CL_MEM_ALLOC_HOST_PTR) != 0 &&
                        limit(device, CL_DEVICE_HOST_UNIFIED_MEMORY, 0, 0) == 0;
  return (flags & CL_MEM_USE_HOST_PTR) != 0 || is_pinned ? 0 : bytes;
}

void* clCreateBuffer(void* context, cl_ulong flags, size_t bytes, void* host, cl_int* error) {
  Device* device = context;
  if (bytes == 0 || bytes > limit(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0, UINT64_MAX))
    return refused(CL_INVALID_BUFFER_SIZE, error);
  const size_t own = counted(device, flags, bytes);
  pthread_mutex_lock(&mutex);
  const int fits = device->in_use + own <= limit(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0, UINT64_MAX);
  pthread_mutex_unlock(&mutex);
  if (!fits) return refused(CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
  return keep(device, NULL, bytes, 0, own, (flags & CL_MEM_USE_HOST_PTR) != 0 ? host : NULL, error);
}

void* clCreateSubBuffer(void* buffer, cl_ulong flags, cl_uint type, const size_t* region,
                        cl_int* error) {
  Memory* whole = buffer;
  (void)flags, (void)type;
  const cl_ulong align = limit(whole->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0, 8) / 8;
  if (align != 0 && region[0] % align != 0) return refused(CL_MISALIGNED_SUB_BUFFER_OFFSET, error);
  if (region[1] == 0 || region[0] + region[1] > whole->bytes)
    return refused(CL_INVALID_VALUE, error);
  return keep(whole->device, whole, region[1], region[0], 0, NULL, error);
}

/* As cl_image_desc. */
typedef struct {
  cl_uint type;
  size_t width, height, depth, array_size, row_pitch, slice_pitch;
  cl_uint levels, samples;
  void* object;
} ImageDesc;

void* clCreateImage(void* context, cl_ulong flags, const void* format, const ImageDesc* image,
                    void* host, cl_int* error) {
  Device* device = context;
  (void)flags, (void)format, (void)host;
  if (limit(device, CL_DEVICE_IMAGE_SUPPORT, 0, 0) == 0 || image->object == NULL)
    return refused(CL_INVALID_OPERATION, error);
  if (image->width > limit(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 0, 0))
    return refused(CL_INVALID_IMAGE_SIZE, error);
  return keep(device, image->object, 0, 0, 0, NULL, error);
}

cl_int clReleaseMemObject(void* object) {
  Memory* memory = object;
  pthread_mutex_lock(&mutex);
  while (memory != NULL && --memory->references == 0) {
    Memory* whole = memory->whole;
    memory->device->in_use -= memory->counted;
    if (memory->is_own) munmap(memory->data, memory->bytes);
    free(memory);
    memory = whole;
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}

/* Pages that are never touched take no memory. */
static char* data_of(Memory* memory) {
  if (memory->whole != NULL) {
    char* data = data_of(memory->whole);
    return data != NULL ? data + memory->offset : NULL;
  }
  if (memory->data == NULL) {
    void* data = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return NULL;
    memory->data = data;
    memory->is_own = 1;
  }
  return memory->data;
}

void* clEnqueueMapBuffer(void* queue, void* buffer, cl_uint blocking, cl_ulong flags, size_t offset,
                         size_t bytes, cl_uint n, const void* wait, void** event, cl_int* error) {
  (void)queue, (void)blocking, (void)flags, (void)bytes, (void)n, (void)wait;
  pthread_mutex_lock(&mutex);
  char* data = data_of(buffer);
  pthread_mutex_unlock(&mutex);
  if (data == NULL) return refused(CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
  done(event);
  return given(data + offset, error);
}

cl_int clEnqueueUnmapMemObject(void* queue, void* object, void* mapped, cl_uint n, const void* wait,
                               void** event) {
  (void)queue, (void)object, (void)mapped, (void)n, (void)wait;
  return done(event);
}

cl_int clEnqueueReadBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset, size_t bytes,
                           void* target, cl_uint n, const void* wait, void** event) {
  (void)queue, (void)buffer, (void)blocking, (void)offset, (void)bytes, (void)target, (void)n;
  (void)wait;
  return done(event);
}

cl_int clEnqueueWriteBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset,
                            size_t bytes, const void* source, cl_uint n, const void* wait,
                            void** event) {
  (void)queue, (void)buffer, (void)blocking, (void)offset, (void)bytes, (void)source, (void)n;
  (void)wait;
  return done(event);
}

cl_int clEnqueueCopyBuffer(void* queue, void* from, void* to, size_t source, size_t target,
                           size_t bytes, cl_uint n, const void* wait, void** event) {
  (void)queue, (void)from, (void)to, (void)source, (void)target, (void)bytes, (void)n, (void)wait;
  return done(event);
}

cl_int clEnqueueMarkerWithWaitList(void* queue, cl_uint n, const void* wait, void** event) {
  (void)queue, (void)n, (void)wait;
  return done(event);
}

/* ------------------------------------------------------------------ programs and kernels */

typedef struct {
  Device* device;
  char *text, *options;
} Program;

void* clCreateProgramWithSource(void* context, cl_uint count, const char** texts,
                                const size_t* lengths, cl_int* error) {
  Program* program = calloc(1, sizeof *program);
  if (program == NULL || count != 1) abort();
  program->device = context;
  program->text =
      lengths != NULL && lengths[0] != 0 ? strndup(texts[0], lengths[0]) : copy_of(texts[0]);
  program->options = copy_of("");
  return given(program, error);
}

void* clCreateProgramWithBinary(void* context, cl_uint count, const void* ids, const size_t* sizes,
                                const void* binaries, cl_int* status, cl_int* error) {
  (void)context, (void)count, (void)ids, (void)sizes, (void)binaries;
  if (status != NULL) *status = CL_INVALID_BINARY;
  return refused(CL_INVALID_BINARY, error);
}

/* The text of a program is not compiled: it fails where the profile says so of one of its kernels.
 */
cl_int clBuildProgram(void* object, cl_uint count, const void* ids, const char* options,
                      void* notify, void* user) {
  Program* program = object;
  (void)count, (void)ids, (void)notify, (void)user;
  free(program->options);
  program->options = copy_of(options != NULL ? options : "");
  for (size_t i = 0; i < program->device->kernel_count; ++i) {
    const Kernel* kernel = &program->device->kernels[i];
    char head[256];
    if (kernel->work_group != 0 || strcmp(kernel->options, program->options) != 0) continue;
    snprintf(head, sizeof head, " %s(", kernel->name);
    if (strstr(program->text, head) != NULL) return CL_BUILD_PROGRAM_FAILURE;
  }
  return 0;
}

cl_int clGetProgramInfo(void* program, cl_uint what, size_t size, void* value, size_t* needed) {
  const size_t none = 0;
  (void)program;
  if (what != CL_PROGRAM_BINARY_SIZES) return CL_INVALID_VALUE;
  return tell(&none, sizeof none, size, value, needed);
}

cl_int clGetProgramBuildInfo(void* program, void* device, cl_uint what, size_t size, void* value,
                             size_t* needed) {
  static const char kLog[] = "the device profile says that it does not build";
  (void)program, (void)device;
  if (what != CL_PROGRAM_BUILD_LOG) return CL_INVALID_VALUE;
  return tell(kLog, sizeof kLog, size, value, needed);
}

cl_int clReleaseProgram(void* object) {
  Program* program = object;
  free(program->text);
  free(program->options);
  free(program);
  return 0;
}

static const Kernel* find_kernel(const Device* device, const char* name, const char* options) {
  const Kernel wanted = {(char*)name, (char*)options, 0, 0, 0};
  return bsearch(&wanted, device->kernels, device->kernel_count, sizeof wanted, compare);
}

static void remember_unknown(Device* device, const char* name, const char* options) {
  char line[8192];
  snprintf(line, sizeof line, "%s\t%s\n", name, options);
  pthread_mutex_lock(&mutex);
  const size_t used = device->unknown != NULL ? strlen(device->unknown) : 0;
  if (used == 0 || strstr(device->unknown, line) == NULL) {
    device->unknown = realloc(device->unknown, used + strlen(line) + 1);
    if (device->unknown == NULL) abort();
    strcpy(device->unknown + used, line);
  }
  pthread_mutex_unlock(&mutex);
}

typedef struct {
  Device* device;
  Kernel facts;
} Made;

void* clCreateKernel(void* object, const char* name, cl_int* error) {
  const Program* program = object;
  Device* device = program->device;
  const Kernel* known = find_kernel(device, name, program->options);
  if (known == NULL) known = find_kernel(device, name, "*");
  Made* kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) abort();
  kernel->device = device;
  if (known != NULL) {
    kernel->facts = *known;
  } else {
    remember_unknown(device, name, program->options);
    kernel->facts.work_group = limit(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 0, 1);
  }
  return given(kernel, error);
}

cl_int clReleaseKernel(void* kernel) {
  free(kernel);
  return 0;
}

cl_int clSetKernelArg(void* kernel, cl_uint index, size_t size, const void* value) {
  (void)kernel, (void)index, (void)size, (void)value;
  return 0;
}

cl_int clGetKernelWorkGroupInfo(void* object, void* device, cl_uint what, size_t size, void* value,
                                size_t* needed) {
  const Made* kernel = object;
  const cl_ulong local = kernel->facts.local;
  (void)device;
  switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return tell(&kernel->facts.work_group, sizeof(size_t), size, value, needed);
    case CL_KERNEL_LOCAL_MEM_SIZE:
      return tell(&local, sizeof local, size, value, needed);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clEnqueueNDRangeKernel(void* queue, void* object, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint n,
                              const void* wait, void** event) {
  const Made* kernel = object;
  size_t items = 1;
  (void)queue, (void)offset, (void)n, (void)wait;
  for (cl_uint i = 0; i < dimensions; ++i) {
    if (local[i] > limit(kernel->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, i, UINT64_MAX))
      return CL_INVALID_WORK_ITEM_SIZE;
    if (local[i] == 0 || global[i] % local[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
    items *= local[i];
  }
  if (items > kernel->facts.work_group) return CL_INVALID_WORK_GROUP_SIZE;
  if (kernel->facts.refused) return CL_OUT_OF_RESOURCES;
  return done(event);
}

/* ------------------------------------------------------------------ what it has seen */

/* Lines "NAME, a tab, OPTIONS" of the kernels that a device was asked for since the last call and
 * that its profile does not know. The caller does not free them; the next call does. */
const char* paper_unknown_kernels(cl_uint device) {
  static char* told;
  pthread_mutex_lock(&mutex);
  free(told);
  told = device < device_count ? devices[device].unknown : NULL;
  if (device < device_count) devices[device].unknown = NULL;
  pthread_mutex_unlock(&mutex);
  return told != NULL ? told : "";
}

/* Bytes of the buffers of a device that live. */
cl_ulong paper_bytes_in_use(cl_uint device) {
  pthread_mutex_lock(&mutex);
  const cl_ulong bytes = device < device_count ? devices[device].in_use : 0;
  pthread_mutex_unlock(&mutex);
  return bytes;
}
