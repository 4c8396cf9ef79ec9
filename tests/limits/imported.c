/* Memory of other interfaces: AHardwareBuffers, by ARM's and by Qualcomm's extension, and OpenGL's
 * objects. LIMITS_EMULATED lists the extensions; the objects are the real library's, over the
 * memory of the AHardwareBuffer, or over what the test has registered as an OpenGL object. It
 * refuses what drivers refuse: buffers without the usage that they need, descriptions that do not
 * fit, OpenGL's objects in other contexts, and uses of them that are not acquired. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "opencl.h"

enum {
  CL_INVALID_CONTEXT = -34,
  CL_INVALID_MIP_LEVEL = -62,
  CL_INVALID_IMAGE_DESCRIPTOR = -65,
  CL_INVALID_GL_SHAREGROUP = -1000,
};

static void* refuse(cl_int* error, cl_int code) {
  if (error != NULL) *error = code;
  return NULL;
}

int emulates(const char* extension) {
  const char* list = fact("EMULATED");
  const size_t length = strlen(extension);
  for (const char* at = list; at != NULL && (at = strstr(at, extension)) != NULL; at += length) {
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return 1;
  }
  return 0;
}

/* AHardwareBuffer_Desc of the NDK. */
typedef struct {
  uint32_t width, height, layers, format;
  uint64_t usage;
  uint32_t stride, reserved0;
  uint64_t reserved1;
} Desc;
enum { kBlob = 0x21 };
#define USAGE_SAMPLED_IMAGE ((uint64_t)1 << 8)
#define USAGE_DATA_BUFFER ((uint64_t)1 << 24)

/* The memory of an AHardwareBuffer that the device may use, and its description; NULL if it may
 * not. */
static void* memory_of(void* buffer, Desc* desc) {
  void* library = dlopen("libnativewindow.so", RTLD_NOW | RTLD_LOCAL);
  void* memory = NULL;
  if (library == NULL || buffer == NULL) return NULL;
  ((void (*)(const void*, Desc*))dlsym(library, "AHardwareBuffer_describe"))(buffer, desc);
  const uint64_t needed = desc->format == kBlob ? USAGE_DATA_BUFFER : USAGE_SAMPLED_IMAGE;
  if ((desc->usage & needed) == 0) return NULL;
  const int code = ((int (*)(void*, uint64_t, int, const void*, void**))dlsym(
      library, "AHardwareBuffer_lock"))(buffer, 3, -1, NULL, &memory);
  ((int (*)(void*, int*))dlsym(library, "AHardwareBuffer_unlock"))(buffer, NULL);
  return code == 0 ? memory : NULL;
}

enum { kMost = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* imported[kMost]; /* objects that live */

static void* note(void* object) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; object != NULL && i < kMost; ++i) {
    if (imported[i] != NULL) continue;
    imported[i] = object;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return keep(object, 0, NULL);
}

/* For tests: the imported objects that live. */
cl_uint limits_imported(void) {
  cl_uint count = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost; ++i) count += imported[i] != NULL;
  pthread_mutex_unlock(&mutex);
  return count;
}

static void* buffer_over(void* context, void* memory, size_t bytes, cl_int* error) {
  void* made = REAL(void*, clCreateBuffer, (void*, cl_ulong, size_t, void*, cl_int*))(
      context, 1 | CL_MEM_USE_HOST_PTR, bytes, memory, error);
  return note(made);
}

static void* image_over(void* context, void* memory, size_t width, size_t height, size_t pitch,
                        cl_uint type, cl_int* error) {
  const cl_uint format[2] = {0x10B5 /* CL_RGBA */, type};
  cl_image_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.type = CL_MEM_OBJECT_IMAGE2D;
  desc.width = width;
  desc.height = height;
  desc.row_pitch = pitch;
  void* made = REAL(void*, clCreateImage,
                    (void*, cl_ulong, const void*, const cl_image_desc*, void*, cl_int*))(
      context, 1 | CL_MEM_USE_HOST_PTR, format, &desc, memory, error);
  return note(made);
}

enum { kUnormInt8 = 0x10D2, kFloat = 0x10DE };

static void* import_arm(void* context, cl_ulong flags, const intptr_t* properties, void* buffer,
                        size_t size, cl_int* error) {
  Desc desc;
  if (!emulates("cl_arm_import_memory_android_hardware_buffer"))
    return refuse(error, CL_INVALID_OPERATION);
  if (properties == NULL || properties[0] != 0x40B2 || properties[1] != 0x41E2 ||
      properties[2] != 0)
    return refuse(error, CL_INVALID_PROPERTY);
  if (flags != 1 || size != SIZE_MAX) return refuse(error, CL_INVALID_VALUE);
  void* memory = memory_of(buffer, &desc);
  if (memory == NULL) return refuse(error, CL_INVALID_OPERATION);
  return desc.format == kBlob ? buffer_over(context, memory, desc.width, error)
                              : image_over(context, memory, desc.width, desc.height,
                                           (size_t)4 * desc.stride, kUnormInt8, error);
}

typedef struct {
  cl_uint allocation_type, host_cache_policy;
  void* buffer;
} QualcommPointer;

/* With `image`, an image of this description. */
void* import_qualcomm(void* context, cl_ulong flags, size_t bytes, const cl_image_desc* image,
                      const void* host, cl_int* error) {
  const QualcommPointer* pointer = host;
  Desc desc;
  if (!emulates("cl_qcom_android_ahardwarebuffer_host_ptr") || (flags & CL_MEM_USE_HOST_PTR) == 0 ||
      pointer == NULL || pointer->allocation_type != 0x4119 ||
      (pointer->host_cache_policy != 0x40A5 && pointer->host_cache_policy != 0x40A9))
    return refuse(error, CL_INVALID_VALUE);
  if (pointer->host_cache_policy == 0x40A9 && !emulates("cl_qcom_ext_host_ptr_iocoherent"))
    return refuse(error, CL_INVALID_VALUE);
  void* memory = memory_of(pointer->buffer, &desc);
  if (memory == NULL) return refuse(error, CL_INVALID_OPERATION);
  if (image == NULL) {
    if (desc.format != kBlob || bytes > desc.width) return refuse(error, CL_INVALID_BUFFER_SIZE);
    return buffer_over(context, memory, bytes, error);
  }
  if (desc.format == kBlob || image->type != CL_MEM_OBJECT_IMAGE2D || image->width != desc.width ||
      image->height != desc.height || image->row_pitch != (size_t)4 * desc.stride)
    return refuse(error, CL_INVALID_IMAGE_DESCRIPTOR);
  return image_over(context, memory, desc.width, desc.height, image->row_pitch, kUnormInt8, error);
}

/* OpenGL. */

enum { kTexture2d = 0x0DE1 };

static void* contexts[kMost]; /* that share with the emulated OpenGL context */
static struct {
  cl_uint name;
  size_t width, height, bytes; /* height 0: a buffer */
  cl_uint type;                /* of channels */
  void* memory;
} names[kMost];
static struct {
  void* object;
  int acquired;
} shared[kMost];
static struct {
  void *kernel, *object;
  cl_uint index;
} arguments[kMost];
static cl_uint acquires, releases;

/* For tests: the "OpenGL" objects, over memory of the test. `is_float`: of another format. */
void limits_gl_texture(cl_uint name, size_t width, size_t height, int is_float, void* memory) {
  for (int i = 0; i < kMost; ++i) {
    if (names[i].name != 0 && names[i].name != name) continue;
    names[i].name = name;
    names[i].width = width;
    names[i].height = height;
    names[i].type = is_float ? kFloat : kUnormInt8;
    names[i].memory = memory;
    return;
  }
}

void limits_gl_buffer(cl_uint name, size_t bytes, void* memory) {
  limits_gl_texture(name, 0, 0, 0, memory);
  for (int i = 0; i < kMost; ++i) {
    if (names[i].name == name) names[i].bytes = bytes;
  }
}

cl_uint limits_gl_acquires(void) { return acquires; }
cl_uint limits_gl_releases(void) { return releases; }
/* Those that are acquired at the moment. */
cl_uint limits_gl_in_use(void) {
  cl_uint count = 0;
  for (int i = 0; i < kMost; ++i) count += shared[i].acquired != 0;
  return count;
}

void* clCreateContext(const intptr_t* properties, cl_uint n, const void* devices, void* notify,
                      void* user, cl_int* error) {
  intptr_t rest[16];
  int shares = 0, displays = 0, count = 0;
  for (int i = 0; properties != NULL && properties[i] != 0 && count < 12; i += 2) {
    const int is_context = properties[i] == 0x2008;
    const int is_display = properties[i] == 0x2009 || properties[i] == 0x200A;
    if (is_context && properties[i + 1] != 0x617) return refuse(error, CL_INVALID_GL_SHAREGROUP);
    shares += is_context;
    displays += is_display;
    if (is_context || is_display) continue;
    rest[count++] = properties[i];
    rest[count++] = properties[i + 1];
  }
  rest[count] = 0;
  if (shares != displays) return refuse(error, CL_INVALID_PROPERTY);
  if (shares != 0 && !emulates("cl_khr_gl_sharing")) return refuse(error, CL_INVALID_PROPERTY);
  void* made = create_context(count > 0 ? rest : NULL, n, devices, notify, user, error);
  if (made == NULL || shares == 0) return made;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost; ++i) {
    if (contexts[i] != NULL) continue;
    contexts[i] = made;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return made;
}

static void* share(void* object) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; object != NULL && i < kMost; ++i) {
    if (shared[i].object != NULL) continue;
    shared[i].object = object;
    shared[i].acquired = 0;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return object;
}

static void* create(void* context, cl_uint name, int is_texture, cl_int* error) {
  int in_context = 0;
  for (int i = 0; i < kMost; ++i) in_context |= contexts[i] == context;
  if (!in_context) return refuse(error, CL_INVALID_CONTEXT);
  for (int i = 0; i < kMost; ++i) {
    if (name == 0 || names[i].name != name || (names[i].height != 0) != is_texture) continue;
    const size_t pitch = names[i].width * (names[i].type == kFloat ? 16 : 4);
    return share(is_texture ? image_over(context, names[i].memory, names[i].width, names[i].height,
                                         pitch, names[i].type, error)
                            : buffer_over(context, names[i].memory, names[i].bytes, error));
  }
  return refuse(error, CL_INVALID_GL_OBJECT);
}

void* clCreateFromGLBuffer(void* context, cl_ulong flags, cl_uint name, cl_int* error) {
  (void)flags;
  return create(context, name, 0, error);
}

void* clCreateFromGLTexture(void* context, cl_ulong flags, cl_uint target, cl_int level,
                            cl_uint name, cl_int* error) {
  (void)flags;
  if (target != kTexture2d) return refuse(error, CL_INVALID_VALUE);
  if (level != 0) return refuse(error, CL_INVALID_MIP_LEVEL);
  return create(context, name, 1, error);
}

static cl_int change(cl_uint n, void* const* objects, int acquired) {
  for (cl_uint k = 0; k < n; ++k) {
    int known = 0;
    for (int i = 0; i < kMost; ++i) {
      if (objects[k] == NULL || shared[i].object != objects[k]) continue;
      if (shared[i].acquired == acquired) return CL_INVALID_OPERATION;
      shared[i].acquired = acquired;
      known = 1;
    }
    if (!known) return CL_INVALID_GL_OBJECT;
    ++*(acquired ? &acquires : &releases);
  }
  return 0;
}

static cl_int enqueue_change(void* queue, cl_uint n, void* const* objects, int acquired,
                             cl_uint waits, const void* wait, void* event) {
  pthread_mutex_lock(&mutex);
  const cl_int code = change(n, objects, acquired);
  pthread_mutex_unlock(&mutex);
  if (code != 0) return code;
  return REAL(cl_int, clEnqueueMarkerWithWaitList, (void*, cl_uint, const void*, void*))(
      queue, waits, wait, event);
}

cl_int clEnqueueAcquireGLObjects(void* queue, cl_uint n, void* const* objects, cl_uint waits,
                                 const void* wait, void* event) {
  return enqueue_change(queue, n, objects, 1, waits, wait, event);
}

cl_int clEnqueueReleaseGLObjects(void* queue, cl_uint n, void* const* objects, cl_uint waits,
                                 const void* wait, void* event) {
  return enqueue_change(queue, n, objects, 0, waits, wait, event);
}

/* Under the lock. */
static int usable(void* object) {
  for (int i = 0; i < kMost; ++i) {
    if (object != NULL && shared[i].object == object) return shared[i].acquired;
  }
  return 1;
}

int may_use(void* object) {
  pthread_mutex_lock(&mutex);
  const int may = usable(object);
  pthread_mutex_unlock(&mutex);
  return may;
}

int may_use_arguments(void* kernel) {
  int may = 1;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost; ++i)
    may = may && (arguments[i].kernel != kernel || usable(arguments[i].object));
  pthread_mutex_unlock(&mutex);
  return may;
}

void forget_shared(void* object) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMost; ++i) {
    if (shared[i].object != object) continue;
    shared[i].object = NULL;
    shared[i].acquired = 0;
  }
  for (int i = 0; i < kMost; ++i) {
    if (imported[i] == object) imported[i] = NULL;
    if (arguments[i].object == object) arguments[i].kernel = arguments[i].object = NULL;
  }
  pthread_mutex_unlock(&mutex);
}

void note_argument(void* kernel, cl_uint index, size_t size, const void* value) {
  void* object = NULL;
  if (size == sizeof object && value != NULL) memcpy(&object, value, sizeof object);
  pthread_mutex_lock(&mutex);
  int known = 0;
  for (int i = 0; object != NULL && i < kMost; ++i) known |= shared[i].object == object;
  for (int i = 0; i < kMost; ++i) {
    if (arguments[i].kernel == kernel && arguments[i].index == index)
      arguments[i].kernel = arguments[i].object = NULL;
  }
  for (int i = 0; known && i < kMost; ++i) {
    if (arguments[i].kernel != NULL) continue;
    arguments[i].kernel = kernel;
    arguments[i].object = object;
    arguments[i].index = index;
    known = 0;
  }
  pthread_mutex_unlock(&mutex);
}

/* clImportMemoryARM is found in this way only. */
void* importing_extension(const char* name) {
  void* address = NULL;
  if (strcmp(name, "clImportMemoryARM") != 0) return address;
  void* (*import)(void*, cl_ulong, const intptr_t*, void*, size_t, cl_int*) = import_arm;
  memcpy(&address, &import, sizeof address);
  return address;
}
