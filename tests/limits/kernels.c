/* Programs and launches: without what the profile's compiler lacks, and within its limits. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static const char* const kDoubles[] = {"double",  "double2", "double3",
                                       "double4", "double8", "double16"};
static const char* const kImages[] = {
    "image1d_t",       "image1d_buffer_t", "image1d_array_t", "image2d_t",
    "image2d_array_t", "image3d_t",        "sampler_t",
};

/* Compilers that end the process: at programs whose source contains the text DEADLY_PROGRAM, built
 * with options that contain DEADLY_OPTIONS; and at launches of the kernel DEADLY_KERNEL. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void* deadly[256];
static size_t deadly_count;

static void note_deadly(void* program, const char* source) {
  const char* part = fact("DEADLY_PROGRAM");
  if (part == NULL || *part == 0 || program == NULL || strstr(source, part) == NULL) return;
  pthread_mutex_lock(&mutex);
  if (deadly_count < sizeof deadly / sizeof *deadly) deadly[deadly_count++] = program;
  pthread_mutex_unlock(&mutex);
}

static int is_deadly(void* program, const char* options) {
  const char* part = fact("DEADLY_OPTIONS");
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < deadly_count; ++i) found = found || deadly[i] == program;
  pthread_mutex_unlock(&mutex);
  return found && (part == NULL || strstr(options, part) != NULL);
}

cl_int clBuildProgram(void* program, cl_uint n, const void* devices, const char* options,
                      void* notify, void* user) {
  if (is_deadly(program, options != NULL ? options : "")) raise(SIGKILL);
  if (!takes_text(program)) return CL_BUILD_PROGRAM_FAILURE;
  char more[8192]; /* what the text of its binary tells */
  snprintf(more, sizeof more, "%s%s", options != NULL ? options : "",
           fact("PTX") != NULL ? " -cl-kernel-arg-info" : "");
  return REAL(cl_int, clBuildProgram, (void*, cl_uint, const void*, const char*, void*, void*))(
      program, n, devices, more, notify, user);
}

/* Another program may get the handle. */
cl_int clReleaseProgram(void* program) {
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < deadly_count; ++i)
    if (deadly[i] == program) deadly[i] = NULL;
  pthread_mutex_unlock(&mutex);
  forget_text(program);
  return REAL(cl_int, clReleaseProgram, (void*))(program);
}

/* What stands in front of each source: macros of extensions that the profile lacks are gone, and
 * words that need them mean nothing. The caller frees it. */
static char* prologue(void) {
  const size_t room = 32768;
  char *text = calloc(1, room), *end = text, *rest = NULL;
  char real_ones[8192] = "", listed[4096] = " ";
  REAL(cl_int, clGetDeviceInfo, (void*, cl_uint, size_t, void*, size_t*))(
      real_device(), CL_DEVICE_EXTENSIONS, sizeof real_ones, real_ones, NULL);
  snprintf(listed, sizeof listed, " %s ", fact("EXTENSIONS") != NULL ? fact("EXTENSIONS") : "");
#define ADD(...) end += snprintf(end, room - (size_t)(end - text), __VA_ARGS__)
  for (char* name = strtok_r(real_ones, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
    char word[256];
    snprintf(word, sizeof word, " %s ", name);
    if (strstr(listed, word) == NULL) ADD("#undef %s\n", name);
  }
  ADD("#undef __opencl_c_fp64\n");
  for (size_t i = 0; i < sizeof kDoubles / sizeof *kDoubles; ++i) {
    if (strstr(listed, " cl_khr_fp64 ") == NULL)
      ADD("#define %s this device has no double\n", kDoubles[i]);
  }
  if (limit("IMAGES", 1) == 0) {
    ADD("#undef __IMAGE_SUPPORT__\n#undef __opencl_c_images\n");
    for (size_t i = 0; i < sizeof kImages / sizeof *kImages; ++i)
      ADD("#define %s this device has no images\n", kImages[i]);
  }
  if (strstr(listed, " cl_khr_fp16 ") == NULL)
    ADD("#pragma OPENCL EXTENSION cl_khr_fp16 : disable\n"); /* some have it enabled */
  ADD("#line 1\n");
#undef ADD
  return text;
}

/* An extension that the profile lacks cannot be enabled: half would be there without its macro. */
static void disable_half(char* source) {
  static const char kEnable[] = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable";
  const char* listed = fact("EXTENSIONS");
  if (listed != NULL && strstr(listed, "cl_khr_fp16") != NULL) return;
  for (char* at = source; (at = strstr(at, kEnable)) != NULL; ++at)
    memset(at, ' ', sizeof kEnable - 1);
}

void* clCreateProgramWithSource(void* context, cl_uint count, const char** texts,
                                const size_t* lengths, cl_int* error) {
  char* first = prologue();
  size_t bytes = strlen(first) + 1;
  for (cl_uint i = 0; i < count; ++i)
    bytes += lengths != NULL && lengths[i] != 0 ? lengths[i] : strlen(texts[i]);
  char* source = realloc(first, bytes);
  for (cl_uint i = 0; i < count; ++i)
    strncat(source, texts[i], lengths != NULL && lengths[i] != 0 ? lengths[i] : strlen(texts[i]));
  disable_half(source);
  const char* whole = source;
  void* program =
      REAL(void*, clCreateProgramWithSource,
           (void*, cl_uint, const char**, const size_t*, cl_int*))(context, 1, &whole, NULL, error);
  note_deadly(program, source);
  free(source);
  return program;
}

static void name_of(void* kernel, char name[256]) {
  REAL(cl_int, clGetKernelInfo, (void*, cl_uint, size_t, void*, size_t*))(
      kernel, CL_KERNEL_FUNCTION_NAME, 256, name, NULL);
}

/* The largest work-group that this kernel can have. Compilers of mobile GPUs allow less than the
 * device does where a kernel needs many registers; which kernels these are is up to the hash of
 * their names, so that it is the same everywhere. KERNEL_WORK_GROUPS lists the sizes to draw. */
static size_t largest_group(void* kernel) {
  char name[256] = "", list[256];
  size_t sizes[16], count = 0;
  char* rest = NULL;
  if (fact("KERNEL_WORK_GROUPS") == NULL) return (size_t)limit("WORK_GROUP", UINT32_MAX);
  snprintf(list, sizeof list, "%s", fact("KERNEL_WORK_GROUPS"));
  for (char* word = strtok_r(list, " ", &rest); word && count < 16;
       word = strtok_r(NULL, " ", &rest))
    sizes[count++] = strtoull(word, NULL, 10);
  name_of(kernel, name);
  uint32_t hash = 2166136261U; /* FNV-1a */
  for (const char* c = name; *c != 0; ++c) hash = (hash ^ (unsigned char)*c) * 16777619U;
  return sizes[(hash >> 8) % count];
}

typedef cl_int (*KernelInfo)(void*, void*, cl_uint, size_t, void*, size_t*);

cl_int clGetKernelWorkGroupInfo(void* kernel, void* device, cl_uint what, size_t size, void* value,
                                size_t* needed) {
  const cl_int result =
      ((KernelInfo)real("clGetKernelWorkGroupInfo"))(kernel, device, what, size, value, needed);
  if (result != 0 || value == NULL) return result;
  size_t* number = value;
  if (what == CL_KERNEL_WORK_GROUP_SIZE && *number > largest_group(kernel))
    *number = largest_group(kernel);
  if (what == CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE) *number = limit("LANES", *number);
  return result;
}

cl_int clEnqueueNDRangeKernel(void* queue, void* kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint n,
                              const void* wait, void* event) {
  cl_ulong bytes = 0;
  ((KernelInfo)real("clGetKernelWorkGroupInfo"))(kernel, real_device(), CL_KERNEL_LOCAL_MEM_SIZE,
                                                 sizeof bytes, &bytes, NULL);
  if (bytes > limit("LOCAL", UINT64_MAX)) return CL_OUT_OF_RESOURCES;
  size_t items = 1;
  for (cl_uint i = 0; local != NULL && global != NULL && i < dimensions && i < 3; ++i) {
    if (local[i] > limit("WORK_ITEMS", UINT64_MAX)) return CL_INVALID_WORK_ITEM_SIZE;
    if (local[i] == 0 || global[i] % local[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
    items *= local[i];
  }
  if (items > largest_group(kernel)) return CL_INVALID_WORK_GROUP_SIZE;
  if (!may_use_arguments(kernel)) return CL_INVALID_GL_OBJECT;
  cl_int code = 0;
  if (record(queue, kernel, dimensions, global, local, &code)) return code;
  if (!may_launch(queue)) return CL_OUT_OF_RESOURCES;
  if (fact("DEADLY_KERNEL") != NULL) {
    char name[256] = "";
    name_of(kernel, name);
    if (strcmp(name, fact("DEADLY_KERNEL")) == 0) raise(SIGKILL);
  }
  return REAL(cl_int, clEnqueueNDRangeKernel,
              (void*, void*, cl_uint, const size_t*, const size_t*, const size_t*, cl_uint,
               const void*, void*))(queue, kernel, dimensions, offset, global, local, n, wait,
                                    event);
}
