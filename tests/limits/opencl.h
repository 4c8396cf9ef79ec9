/* The part of the OpenCL C API that the layer forwards or answers, and the real library behind it.
 * Declared here: no package of headers is needed. Values follow the OpenCL specification. */
#ifndef OPENCL_H
#define OPENCL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;

enum {
  CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
  CL_OUT_OF_RESOURCES = -5,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_MISALIGNED_SUB_BUFFER_OFFSET = -13,
  CL_INVALID_VALUE = -30,
  CL_INVALID_QUEUE_PROPERTIES = -35,
  CL_INVALID_MEM_OBJECT = -38,
  CL_INVALID_IMAGE_SIZE = -40,
  CL_INVALID_BINARY = -42,
  CL_INVALID_ARG_VALUE = -50,
  CL_INVALID_ARG_SIZE = -51,
  CL_INVALID_WORK_GROUP_SIZE = -54,
  CL_INVALID_WORK_ITEM_SIZE = -55,
  CL_INVALID_OPERATION = -59,
  CL_INVALID_GL_OBJECT = -60,
  CL_INVALID_BUFFER_SIZE = -61,
  CL_INVALID_PROPERTY = -64,
};

enum {
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_IMAGE_SUPPORT = 0x1016,
  CL_DEVICE_EXTENSIONS = 0x1030,
  CL_MEM_SIZE = 0x1102,
  CL_MEM_OBJECT_IMAGE2D = 0x10F1,
  CL_MEM_OBJECT_IMAGE1D_BUFFER = 0x10F6,
  CL_PROGRAM_BINARY_SIZES = 0x1165,
  CL_PROGRAM_BINARIES = 0x1166,
  CL_PROGRAM_KERNEL_NAMES = 0x1168,
  CL_KERNEL_FUNCTION_NAME = 0x1190,
  CL_KERNEL_NUM_ARGS = 0x1191,
  CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
  CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B,
  CL_KERNEL_ARG_ADDRESS_LOCAL = 0x119C,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
  CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2,
  CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE = 0x11B3,
};
#define CL_DEVICE_TYPE_CPU ((cl_ulong)1 << 1)
#define CL_DEVICE_TYPE_GPU ((cl_ulong)1 << 2)
#define CL_DEVICE_TYPE_ALL ((cl_ulong)0xFFFFFFFF)
#define CL_MEM_USE_HOST_PTR ((cl_ulong)1 << 3)
#define CL_MEM_EXT_HOST_PTR_QCOM ((cl_ulong)1 << 29)

typedef struct {
  cl_uint type;
  size_t width, height, depth, array_size, row_pitch, slice_pitch;
  cl_uint levels, samples;
  void* object; /* a buffer that holds the image */
} cl_image_desc;

typedef struct {
  size_t origin, size;
} cl_buffer_region;

/* Function of the real library. */
void* real(const char* name);
#define REAL(result, name, parameters) ((result(*) parameters)real(#name))

/* A number of the profile, which the environment holds as LIMITS_`key`; `otherwise` where the
 * profile leaves it to the real device. */
cl_ulong limit(const char* key, cl_ulong otherwise);
/* A text of the profile; NULL where it leaves it to the real device. */
const char* fact(const char* key);

/* Programs whose binaries are texts (ptx.c). */
int takes_text(void* program);
void forget_text(void* program);
void forget_integers(void* kernel);
int set_integer(void* kernel, cl_uint index, size_t size, const void* value, cl_int* code);
int asks_address_of_part(void* kernel, cl_uint index, size_t size, const void* value);

/* Counts a launch; 0 if the queue has as many as it keeps without a flush. */
int may_launch(void* queue);

/* Whether a buffer is a sub-buffer. */
int is_part(void* object);

/* Notes an object, which uses as much of the device's memory; `bytes` have been reserved. */
void* keep(void* object, size_t bytes, void* whole);

/* As clCreateContext, with what the hints permit (hints.c). */
void* create_context(const void* properties, cl_uint n, const void* devices, void* notify,
                     void* user, cl_int* error);

/* Whether the profile's driver has an extension that the real one lacks. */
int emulates(const char* extension);
void* import_qualcomm(void* context, cl_ulong flags, size_t bytes, const cl_image_desc* image,
                      const void* host, cl_int* error);
/* Whether it is not OpenGL's, or acquired. */
int may_use(void* object);
int may_use_arguments(void* kernel);
void note_argument(void* kernel, cl_uint index, size_t size, const void* value);
/* Null for other names. */
void* importing_extension(const char* name);
void forget_shared(void* object);

/* A number that no other object has had; 0 if the program has released the object. */
cl_ulong serial_of(void* object);

/* Of recordable queues (recordings.c). */
int record(void* queue, void* kernel, cl_uint dimensions, const size_t* global, const size_t* local,
           cl_int* code);
void forget_recordable(void* queue);

/* The device that poses as the profile's. */
void* real_device(void);

#endif
