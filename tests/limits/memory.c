/* Buffers and images: as large as the profile allows, one by one and together. */
#include <pthread.h>
#include <stdlib.h>

#include "opencl.h"

/* An object that lives; parts keep what they are parts of alive. */
struct Object {
  void* object;
  struct Object* whole;
  size_t bytes;   /* of its own */
  int held;       /* references of the program */
  int references; /* these and parts */
  cl_ulong serial;
  struct Object* next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct Object* objects;
static cl_ulong in_use, serials;

static struct Object** find(void* object) {
  struct Object** at = &objects;
  while (*at != NULL && (*at)->object != object) at = &(*at)->next;
  return at;
}

/* Room for another object. */
static int reserve(size_t bytes) {
  pthread_mutex_lock(&mutex);
  const int fits = in_use + bytes <= limit("GLOBAL", UINT64_MAX);
  if (fits) in_use += bytes;
  pthread_mutex_unlock(&mutex);
  return fits;
}

static void give_back(size_t bytes) {
  pthread_mutex_lock(&mutex);
  in_use -= bytes;
  pthread_mutex_unlock(&mutex);
}

/* `bytes` have been reserved; without an object they are given back. */
void* keep(void* object, size_t bytes, void* whole) {
  struct Object* kept = object != NULL ? calloc(1, sizeof *kept) : NULL;
  if (kept == NULL) {
    give_back(bytes);
    return object;
  }
  pthread_mutex_lock(&mutex);
  kept->object = object;
  kept->bytes = bytes;
  kept->held = kept->references = 1;
  kept->serial = ++serials;
  kept->whole = whole != NULL ? *find(whole) : NULL;
  if (kept->whole != NULL) ++kept->whole->references;
  kept->next = objects;
  objects = kept;
  pthread_mutex_unlock(&mutex);
  return object;
}

static void drop(struct Object* object) {
  while (object != NULL && --object->references == 0) {
    forget_shared(object->object);
    struct Object* whole = object->whole;
    in_use -= object->bytes;
    *find(object->object) = object->next;
    free(object);
    object = whole;
  }
}

static void* refuse(cl_int* error, cl_int code) {
  if (error != NULL) *error = code;
  return NULL;
}

void* clCreateBuffer(void* context, cl_ulong flags, size_t bytes, void* host, cl_int* error) {
  if ((flags & CL_MEM_EXT_HOST_PTR_QCOM) != 0)
    return import_qualcomm(context, flags, bytes, NULL, host, error);
  /* Of memory that the host has there is no second copy where both share it. */
  const size_t own = (flags & CL_MEM_USE_HOST_PTR) != 0 && limit("UNIFIED_MEMORY", 0) ? 0 : bytes;
  if (bytes > limit("OBJECT", UINT64_MAX)) return refuse(error, CL_INVALID_BUFFER_SIZE);
  if (!reserve(own)) return refuse(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  return keep(REAL(void*, clCreateBuffer, (void*, cl_ulong, size_t, void*, cl_int*))(
                  context, flags, bytes, host, error),
              own, NULL);
}

void* clCreateSubBuffer(void* buffer, cl_ulong flags, cl_uint type, const void* region,
                        cl_int* error) {
  const size_t align = (size_t)limit("BASE_ALIGN_BITS", 8) / 8;
  if (region != NULL && ((const cl_buffer_region*)region)->origin % align != 0)
    return refuse(error, CL_MISALIGNED_SUB_BUFFER_OFFSET);
  return keep(REAL(void*, clCreateSubBuffer, (void*, cl_ulong, cl_uint, const void*, cl_int*))(
                  buffer, flags, type, region, error),
              0, buffer);
}

static int too_large(const cl_image_desc* image) {
  if (image->type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
    return image->width > limit("IMAGE_TEXELS", UINT64_MAX);
  return image->width > limit("IMAGE_WIDTH", UINT64_MAX) ||
         image->height > limit("IMAGE_HEIGHT", UINT64_MAX);
}

int is_part(void* object) {
  pthread_mutex_lock(&mutex);
  const struct Object* kept = object != NULL ? *find(object) : NULL;
  const int part = kept != NULL && kept->whole != NULL;
  pthread_mutex_unlock(&mutex);
  return part;
}

void* clCreateImage(void* context, cl_ulong flags, const void* format, const cl_image_desc* image,
                    void* host, cl_int* error) {
  if (limit("IMAGES", 1) == 0) return refuse(error, CL_INVALID_OPERATION);
  if (image != NULL && too_large(image)) return refuse(error, CL_INVALID_IMAGE_SIZE);
  if (image != NULL && (flags & CL_MEM_EXT_HOST_PTR_QCOM) != 0)
    return import_qualcomm(context, flags, 0, image, host, error);
  if (image != NULL && limit("SUB_BUFFER_IMAGES", 1) == 0 && is_part(image->object))
    return refuse(error, CL_INVALID_MEM_OBJECT);
  void* object = REAL(void*, clCreateImage,
                      (void*, cl_ulong, const void*, const cl_image_desc*, void*, cl_int*))(
      context, flags, format, image, host, error);
  if (object == NULL || image->object != NULL) return keep(object, 0, image->object);
  size_t bytes = 0;
  REAL(cl_int, clGetMemObjectInfo, (void*, cl_uint, size_t, void*, size_t*))(
      object, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
  const int large = bytes > limit("OBJECT", UINT64_MAX);
  if (!large && reserve(bytes)) return keep(object, bytes, NULL);
  REAL(cl_int, clReleaseMemObject, (void*))(object);
  return refuse(error, large ? CL_INVALID_IMAGE_SIZE : CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

cl_int clRetainMemObject(void* object) {
  pthread_mutex_lock(&mutex);
  struct Object* kept = *find(object);
  if (kept != NULL) ++kept->held, ++kept->references;
  pthread_mutex_unlock(&mutex);
  return REAL(cl_int, clRetainMemObject, (void*))(object);
}

cl_int clReleaseMemObject(void* object) {
  pthread_mutex_lock(&mutex);
  struct Object* kept = *find(object);
  if (kept != NULL) --kept->held;
  drop(kept);
  pthread_mutex_unlock(&mutex);
  return REAL(cl_int, clReleaseMemObject, (void*))(object);
}

cl_ulong serial_of(void* object) {
  pthread_mutex_lock(&mutex);
  const struct Object* kept = *find(object);
  const cl_ulong serial = kept != NULL && kept->held > 0 ? kept->serial : 0;
  pthread_mutex_unlock(&mutex);
  return serial;
}

/* Objects that the program has released, but not all parts of them and images over them: their
 * memory is still in use. For tests. */
cl_uint limits_kept_by_parts(void) {
  cl_uint count = 0;
  pthread_mutex_lock(&mutex);
  for (const struct Object* object = objects; object != NULL; object = object->next)
    count += object->held == 0;
  pthread_mutex_unlock(&mutex);
  return count;
}
