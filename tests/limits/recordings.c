/* Extensions that record launches.
 *
 * cl_qcom_recordable_queues is emulated where LIMITS_RECORDABLE_MAX says how many launches a
 * recording holds: launches in a recordable queue keep the arguments of their kernels, and later
 * run one by one. As Adreno's driver, it refuses a recording with an argument whose object no
 * longer exists. LIMITS_RECORDING_KEEPS=0: arguments that are replaced are so for one time only.
 *
 * cl_khr_command_buffer is that of the real library. LIMITS_COMMAND_BUFFERS: its capabilities.
 * Where they lack simultaneous use (4), a command buffer under way cannot be enqueued again.
 *
 * LIMITS_FAILING: a function below that fails, from its call LIMITS_FAILING_AFTER (0: the first)
 * on; "record": launches in a recordable queue. LIMITS_DEADLY_CALL: one that ends the process. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum {
  CL_INVALID_COMMAND_QUEUE = -36,
  CL_INVALID_KERNEL_ARGS = -52,
  MOST = 4096,
};
#define CL_QUEUE_RECORDABLE_QCOM ((cl_ulong)1 << 30)
#define SIMULTANEOUS_USE 4

struct Argument {
  cl_uint index;
  size_t size;
  int has_value;
  unsigned char value[64];
  cl_ulong serial; /* of the object that it is */
};

struct Arguments {
  struct Argument* at;
  size_t count;
};

struct Launch {
  void* kernel;
  struct Arguments arguments;
  cl_uint dimensions;
  size_t global[3], local[3];
};

struct Recording {
  void* queue;
  int ended;
  struct Launch* launches;
  size_t count;
};

typedef struct {
  cl_uint launch, argument;
  size_t bytes;
  const void* value;
} Update;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  void* kernel;
  struct Arguments arguments;
} kernels[MOST];
static void* recordable[MOST];                  /* queues */
static struct Recording* open_recordings[MOST]; /* by the place of their queue */
static struct {
  void *buffer, *event;
} under_way[MOST];
static void* platform_asked;
static cl_ulong calls;

static int is_failing(const char* name) {
  const char *failing = fact("FAILING"), *deadly = fact("DEADLY_CALL");
  if (deadly != NULL && strcmp(deadly, name) == 0) raise(SIGKILL);
  if (failing == NULL || strcmp(failing, name) != 0) return 0;
  pthread_mutex_lock(&lock);
  const int fails = calls++ >= limit("FAILING_AFTER", 0);
  pthread_mutex_unlock(&lock);
  return fails;
}

static int emulates_recordings(void) { return limit("RECORDABLE_MAX", 0) > 0; }

/* -1: the queue is not recordable. */
static int place_of(const void* queue) {
  for (int i = 0; i < MOST; ++i)
    if (queue != NULL && recordable[i] == queue) return i;
  return -1;
}

void* clCreateCommandQueue(void* context, void* d, cl_ulong flags, cl_int* error) {
  const int records = emulates_recordings() && (flags & CL_QUEUE_RECORDABLE_QCOM) != 0;
  if (records && (flags != CL_QUEUE_RECORDABLE_QCOM || is_failing("clCreateCommandQueue"))) {
    *error = CL_INVALID_QUEUE_PROPERTIES;
    return NULL;
  }
  void* queue = REAL(void*, clCreateCommandQueue, (void*, void*, cl_ulong, cl_int*))(
      context, d, records ? 0 : flags, error);
  pthread_mutex_lock(&lock);
  for (int i = 0; records && i < MOST; ++i) {
    if (recordable[i] != NULL) continue;
    recordable[i] = queue;
    break;
  }
  pthread_mutex_unlock(&lock);
  return queue;
}

void forget_recordable(void* queue) {
  pthread_mutex_lock(&lock);
  const int place = place_of(queue);
  if (place >= 0) recordable[place] = NULL;
  pthread_mutex_unlock(&lock);
}

static void set(struct Arguments* arguments, cl_uint index, size_t size, const void* value) {
  struct Argument* found = NULL;
  for (size_t i = 0; i < arguments->count; ++i)
    if (arguments->at[i].index == index) found = &arguments->at[i];
  if (found == NULL) {
    arguments->at = realloc(arguments->at, (arguments->count + 1) * sizeof *arguments->at);
    found = &arguments->at[arguments->count++];
  }
  memset(found, 0, sizeof *found);
  found->index = index;
  found->size = size;
  found->has_value = value != NULL;
  if (value != NULL && size <= sizeof found->value) memcpy(found->value, value, size);
  void* object = NULL;
  if (value != NULL && size == sizeof object) memcpy(&object, value, size);
  found->serial = object != NULL ? serial_of(object) : 0;
}

static struct Arguments* arguments_of(void* kernel) {
  int at = -1;
  for (int i = 0; i < MOST; ++i) {
    if (kernels[i].kernel == kernel) return &kernels[i].arguments;
    if (kernels[i].kernel == NULL && at < 0) at = i;
  }
  if (at < 0) abort();
  kernels[at].kernel = kernel;
  return &kernels[at].arguments;
}

static struct Arguments copy_of(const struct Arguments* from) {
  struct Arguments to = {malloc(from->count * sizeof *from->at + 1), from->count};
  memcpy(to.at, from->at, from->count * sizeof *from->at);
  return to;
}

static cl_int give(void* kernel, const struct Argument* a) {
  return REAL(cl_int, clSetKernelArg, (void*, cl_uint, size_t, const void*))(
      kernel, a->index, a->size, a->has_value ? a->value : NULL);
}

cl_int clSetKernelArg(void* kernel, cl_uint index, size_t size, const void* value) {
  cl_int taken = 0;
  if (set_integer(kernel, index, size, value, &taken)) return taken;
  if (asks_address_of_part(kernel, index, size, value)) return CL_INVALID_ARG_VALUE;
  note_argument(kernel, index, size, value);
  const cl_int code = REAL(cl_int, clSetKernelArg, (void*, cl_uint, size_t, const void*))(
      kernel, index, size, value);
  if (code != 0 || !emulates_recordings()) return code;
  pthread_mutex_lock(&lock);
  set(arguments_of(kernel), index, size, value);
  pthread_mutex_unlock(&lock);
  return code;
}

/* Recordings do not have these. */
cl_int clSetKernelArgSVMPointer(void* kernel, cl_uint index, const void* pointer) {
  return REAL(cl_int, clSetKernelArgSVMPointer, (void*, cl_uint, const void*))(kernel, index,
                                                                               pointer);
}

cl_int clReleaseKernel(void* kernel) {
  forget_integers(kernel);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST; ++i) {
    if (kernels[i].kernel != kernel) continue;
    free(kernels[i].arguments.at);
    memset(&kernels[i], 0, sizeof kernels[i]);
  }
  pthread_mutex_unlock(&lock);
  return REAL(cl_int, clReleaseKernel, (void*))(kernel);
}

void* clNewRecordingQCOM(void* queue, cl_int* error) {
  pthread_mutex_lock(&lock);
  const int place = place_of(queue);
  struct Recording* recording = NULL;
  if (place >= 0 && open_recordings[place] == NULL) {
    recording = calloc(1, sizeof *recording);
    recording->queue = queue;
    open_recordings[place] = recording;
  }
  pthread_mutex_unlock(&lock);
  *error = recording != NULL ? 0 : place < 0 ? CL_INVALID_COMMAND_QUEUE : CL_INVALID_OPERATION;
  if (recording != NULL && is_failing("clNewRecordingQCOM")) {
    open_recordings[place] = NULL;
    free(recording);
    *error = CL_OUT_OF_RESOURCES;
    return NULL;
  }
  return recording;
}

/* Whether the queue is recordable: then the launch is recorded, and `code` is set. */
int record(void* queue, void* kernel, cl_uint dimensions, const size_t* global, const size_t* local,
           cl_int* code) {
  if (!emulates_recordings()) return 0;
  pthread_mutex_lock(&lock);
  const int place = place_of(queue);
  struct Recording* recording = place >= 0 ? open_recordings[place] : NULL;
  if (recording != NULL && recording->count < limit("RECORDABLE_MAX", 0)) {
    recording->launches =
        realloc(recording->launches, (recording->count + 1) * sizeof *recording->launches);
    struct Launch* launch = &recording->launches[recording->count++];
    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->arguments = copy_of(arguments_of(kernel));
    launch->dimensions = dimensions;
    memcpy(launch->global, global, dimensions * sizeof *global);
    memcpy(launch->local, local, dimensions * sizeof *local);
    *code = 0;
  } else {
    *code = recording == NULL ? CL_INVALID_OPERATION : CL_OUT_OF_RESOURCES;
  }
  pthread_mutex_unlock(&lock);
  if (place >= 0 && is_failing("record")) *code = CL_OUT_OF_RESOURCES;
  return place >= 0;
}

cl_int clEndRecordingQCOM(void* object) {
  struct Recording* recording = object;
  if (is_failing("clEndRecordingQCOM")) return CL_OUT_OF_RESOURCES;
  pthread_mutex_lock(&lock);
  const int place = place_of(recording->queue);
  const int was_open = place >= 0 && open_recordings[place] == recording;
  if (was_open) open_recordings[place] = NULL;
  recording->ended = 1;
  pthread_mutex_unlock(&lock);
  return was_open ? 0 : CL_INVALID_OPERATION;
}

cl_int clReleaseRecordingQCOM(void* object) {
  struct Recording* recording = object;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST; ++i)
    if (open_recordings[i] == recording) open_recordings[i] = NULL;
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < recording->count; ++i) free(recording->launches[i].arguments.at);
  free(recording->launches);
  free(recording);
  return 0;
}

static cl_int problem_of(const struct Arguments* arguments) {
  for (size_t i = 0; i < arguments->count; ++i) {
    const struct Argument* a = &arguments->at[i];
    void* object = NULL;
    if (!a->has_value && a->size == sizeof object) return CL_INVALID_KERNEL_ARGS;
    if (a->serial == 0) continue;
    memcpy(&object, a->value, sizeof object);
    if (serial_of(object) != a->serial) return CL_INVALID_OPERATION;
  }
  return 0;
}

static cl_int run(void* queue, const struct Launch* launch, const struct Arguments* arguments) {
  for (size_t i = 0; i < arguments->count; ++i) {
    const cl_int code = give(launch->kernel, &arguments->at[i]);
    if (code != 0) return code;
  }
  const cl_int code =
      REAL(cl_int, clEnqueueNDRangeKernel,
           (void*, void*, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint,
            const void*, void*))(queue, launch->kernel, launch->dimensions, NULL, launch->global,
                                 launch->local, 0, NULL, NULL);
  const struct Arguments* usual = arguments_of(launch->kernel);
  for (size_t i = 0; i < usual->count; ++i) give(launch->kernel, &usual->at[i]);
  return code;
}

/* An update of a launch or argument that the recording does not have is an error. */
static cl_int update(struct Recording* recording, struct Arguments* of, size_t count,
                     const Update* updates) {
  for (size_t i = 0; i < count; ++i) {
    const Update* u = &updates[i];
    int found = 0;
    if (u->launch >= recording->count) return CL_INVALID_VALUE;
    for (size_t j = 0; j < of[u->launch].count; ++j) {
      const struct Argument* a = &of[u->launch].at[j];
      found = found || (a->index == u->argument && a->size == u->bytes);
    }
    if (!found) return CL_INVALID_VALUE;
    set(&of[u->launch], u->argument, u->bytes, u->value);
  }
  return 0;
}

cl_int clEnqueueRecordingQCOM(void* queue, void* object, size_t count, const void* updates,
                              size_t offsets, const void* offset, size_t globals,
                              const void* global, size_t locals, const void* local, cl_uint n,
                              const void* wait, void* event) {
  struct Recording* recording = object;
  (void)offset, (void)global, (void)local, (void)wait, (void)event;
  if (is_failing("clEnqueueRecordingQCOM") || !may_launch(queue)) return CL_OUT_OF_RESOURCES;
  if (!recording->ended || offsets + globals + locals + n != 0) return CL_INVALID_OPERATION;
  pthread_mutex_lock(&lock);
  struct Arguments* all = malloc(recording->count * sizeof *all + 1);
  for (size_t i = 0; i < recording->count; ++i) all[i] = copy_of(&recording->launches[i].arguments);
  cl_int code =
      place_of(queue) >= 0 ? CL_INVALID_COMMAND_QUEUE : update(recording, all, count, updates);
  for (size_t i = 0; i < recording->count && code == 0; ++i) code = problem_of(&all[i]);
  for (size_t i = 0; i < recording->count && code == 0; ++i)
    code = run(queue, &recording->launches[i], &all[i]);
  const int keeps = code == 0 && limit("RECORDING_KEEPS", 1) != 0;
  for (size_t i = 0; i < recording->count; ++i) {
    free(keeps ? recording->launches[i].arguments.at : all[i].at);
    if (keeps) recording->launches[i].arguments = all[i];
  }
  free(all);
  pthread_mutex_unlock(&lock);
  return code;
}

/* Found by their address only, as functions of extensions are that a loader does not know. */
static void* real_extension(const char* name) {
  return REAL(void*, clGetExtensionFunctionAddressForPlatform, (void*, const char*))(platform_asked,
                                                                                     name);
}
#define EXTENSION(result, name, parameters) ((result(*) parameters)real_extension(#name))

static void* clCreateCommandBufferKHR(cl_uint n, void* const* queues, const cl_ulong* properties,
                                      cl_int* error) {
  const cl_ulong flags = properties != NULL ? properties[1] : 0;
  *error = CL_INVALID_PROPERTY;
  if (flags != 0 && (limit("COMMAND_BUFFERS", SIMULTANEOUS_USE) & SIMULTANEOUS_USE) == 0)
    return NULL;
  *error = CL_OUT_OF_RESOURCES;
  if (is_failing("clCreateCommandBufferKHR")) return NULL;
  return EXTENSION(void*, clCreateCommandBufferKHR,
                   (cl_uint, void* const*, const cl_ulong*, cl_int*))(n, queues, properties, error);
}

/* Returns the event of the last time that the buffer was enqueued, and keeps another one. */
static void* exchange_event(void* buffer, void* event) {
  int at = -1;
  for (int i = 0; i < MOST; ++i) {
    const int is_free = under_way[i].event == NULL;
    if (is_free ? at < 0 : under_way[i].buffer == buffer) at = i;
    if (!is_free && under_way[i].buffer == buffer) break;
  }
  if (at < 0) abort();
  void* before = under_way[at].buffer == buffer ? under_way[at].event : NULL;
  under_way[at].buffer = buffer;
  under_way[at].event = event;
  return before;
}

static void release_event(void* event) {
  if (event != NULL) REAL(cl_int, clReleaseEvent, (void*))(event);
}

static cl_int clReleaseCommandBufferKHR(void* buffer) {
  pthread_mutex_lock(&lock);
  release_event(exchange_event(buffer, NULL));
  pthread_mutex_unlock(&lock);
  return EXTENSION(cl_int, clReleaseCommandBufferKHR, (void*))(buffer);
}

static cl_int clFinalizeCommandBufferKHR(void* buffer) {
  if (is_failing("clFinalizeCommandBufferKHR")) return CL_OUT_OF_RESOURCES;
  return EXTENSION(cl_int, clFinalizeCommandBufferKHR, (void*))(buffer);
}

static cl_int clCommandNDRangeKernelKHR(void* buffer, void* queue, const cl_ulong* properties,
                                        void* kernel, cl_uint dimensions, const size_t* offset,
                                        const size_t* global, const size_t* local, cl_uint n,
                                        const cl_uint* points, cl_uint* point, void* handle) {
  if (is_failing("clCommandNDRangeKernelKHR")) return CL_OUT_OF_RESOURCES;
  return EXTENSION(cl_int, clCommandNDRangeKernelKHR,
                   (void*, void*, const cl_ulong*, void*, cl_uint, const size_t*, const size_t*,
                    const size_t*, cl_uint, const cl_uint*, cl_uint*, void*))(
      buffer, queue, properties, kernel, dimensions, offset, global, local, n, points, point,
      handle);
}

static cl_int clEnqueueCommandBufferKHR(cl_uint count, void* queues, void* buffer, cl_uint n,
                                        const void* wait, void* event) {
  typedef cl_int (*Enqueue)(cl_uint, void*, void*, cl_uint, const void*, void*);
  const Enqueue enqueue = (Enqueue)real_extension("clEnqueueCommandBufferKHR");
  if (is_failing("clEnqueueCommandBufferKHR")) return CL_OUT_OF_RESOURCES;
  if ((limit("COMMAND_BUFFERS", SIMULTANEOUS_USE) & SIMULTANEOUS_USE) != 0)
    return enqueue(count, queues, buffer, n, wait, event);
  pthread_mutex_lock(&lock);
  void *before = exchange_event(buffer, NULL), *now = NULL;
  const cl_uint execution_status = 0x11D3;
  cl_int status = 0;
  if (before != NULL)
    REAL(cl_int, clGetEventInfo, (void*, cl_uint, size_t, void*, size_t*))(
        before, execution_status, sizeof status, &status, NULL);
  cl_int code = CL_INVALID_OPERATION;
  if (status <= 0) {
    release_event(before);
    before = NULL;
    code = enqueue(count, queues, buffer, n, wait, &now);
  }
  exchange_event(buffer, before != NULL ? before : now);
  pthread_mutex_unlock(&lock);
  return code;
}

void* clGetExtensionFunctionAddressForPlatform(void* platform, const char* name) {
  static const struct {
    const char* name;
    void* address;
    int is_emulated;
  } kOurs[] = {
#define OURS(function, emulated) {#function, (void*)function, emulated}
      OURS(clNewRecordingQCOM, 1),         OURS(clEndRecordingQCOM, 1),
      OURS(clReleaseRecordingQCOM, 1),     OURS(clEnqueueRecordingQCOM, 1),
      OURS(clCreateCommandBufferKHR, 0),   OURS(clReleaseCommandBufferKHR, 0),
      OURS(clFinalizeCommandBufferKHR, 0), OURS(clCommandNDRangeKernelKHR, 0),
      OURS(clEnqueueCommandBufferKHR, 0),
#undef OURS
  };
  platform_asked = platform;
  const char* missing = fact("MISSING");
  if (missing != NULL && strcmp(missing, name) == 0) return NULL;
  if (importing_extension(name) != NULL) return importing_extension(name);
  for (size_t i = 0; i < sizeof kOurs / sizeof *kOurs; ++i) {
    if (strcmp(kOurs[i].name, name) != 0) continue;
    if (kOurs[i].is_emulated) return emulates_recordings() ? kOurs[i].address : NULL;
    return real_extension(name) != NULL ? kOurs[i].address : NULL;
  }
  return real_extension(name);
}
