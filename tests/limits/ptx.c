/* Programs as NVIDIA's driver has them, where LIMITS_PTX is set: a binary is a text with the
 * parameters of each kernel, and the real binary behind it. Parameters that are pointers have a
 * mark. In a program that is made of a text without a mark, the parameter is an integer: an address
 * in memory. Programs in which the kernel LIMITS_REFUSED_PTX has such a parameter do not build, and
 * those of LIMITS_DEADLY_PTX end the process. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { MOST = 4096, MOST_ARGUMENTS = 128 };

static const char kEnd[] = "\n//BINARY\n";

struct Text {
  void* program;
  char* bytes; /* of the whole binary */
  size_t size;
};

struct Integers {
  void* kernel;
  char are[MOST_ARGUMENTS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Text texts[MOST];
static struct Integers kernels[MOST];

static struct Text* text_of(void* program) {
  for (int i = 0; i < MOST; ++i) {
    if (texts[i].program == program) return &texts[i];
  }
  return NULL;
}

static struct Integers* integers_of(void* kernel) {
  for (int i = 0; i < MOST; ++i) {
    if (kernels[i].kernel == kernel) return &kernels[i];
  }
  return NULL;
}

/* Which parameters of a kernel are integers in this text, by their numbers; returns whether any. */
static int find_integers(const char* text, const char* name, char are[MOST_ARGUMENTS]) {
  char head[512];
  int any = 0;
  snprintf(head, sizeof head, ".entry %s(", name);
  const char* at = strstr(text, head);
  memset(are, 0, MOST_ARGUMENTS);
  if (at == NULL) return 0;
  at += strlen(head);
  for (int i = 0; i < MOST_ARGUMENTS; ++i) {
    const size_t length = strcspn(at, ",)");
    char parameter[512];
    snprintf(parameter, sizeof parameter, "%.*s", (int)length, at);
    are[i] = strstr(parameter, ".u64 ") != NULL && strstr(parameter, ".ptr ") == NULL;
    any = any || are[i];
    if (at[length] != ',') break;
    at += length + 1;
  }
  return any;
}

static void* create_kernel(void* program, const char* name, cl_int* error) {
  return REAL(void*, clCreateKernel, (void*, const char*, cl_int*))(program, name, error);
}

static cl_int release_kernel(void* kernel) {
  return REAL(cl_int, clReleaseKernel, (void*))(kernel);
}

static cl_int ask_program(void* program, cl_uint what, size_t size, void* value, size_t* needed) {
  return REAL(cl_int, clGetProgramInfo, (void*, cl_uint, size_t, void*, size_t*))(
      program, what, size, value, needed);
}

/* The parameters of a kernel of a program that was built of a source. */
static size_t describe(void* program, const char* name, char* to, size_t room) {
  size_t used = (size_t)snprintf(to, room, ".entry %s(\n", name);
  void* kernel = create_kernel(program, name, NULL);
  cl_uint count = 0;
  REAL(cl_int, clGetKernelInfo, (void*, cl_uint, size_t, void*, size_t*))(
      kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
  for (cl_uint i = 0; i < count && used < room; ++i) {
    cl_uint where = 0;
    REAL(cl_int, clGetKernelArgInfo, (void*, cl_uint, cl_uint, size_t, void*, size_t*))(
        kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, NULL);
    const char* type = where == CL_KERNEL_ARG_ADDRESS_GLOBAL  ? "u64 .ptr .global .align 4"
                       : where == CL_KERNEL_ARG_ADDRESS_LOCAL ? "u64 .ptr .shared .align 4"
                                                              : "b32";
    used += (size_t)snprintf(to + used, room - used, "\t.param .%s %s_param_%u%s\n", type, name, i,
                             i + 1 < count ? "," : "");
  }
  release_kernel(kernel);
  return used + (size_t)snprintf(to + used, room - used, ")\n{}\n");
}

/* The caller frees it. */
static char* write_text(void* program, size_t* size) {
  const size_t room = 1 << 20;
  char names[65536] = "", *rest = NULL;
  size_t bytes = 0;
  ask_program(program, CL_PROGRAM_KERNEL_NAMES, sizeof names, names, NULL);
  ask_program(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL);
  char* text = malloc(room + bytes);
  size_t used = (size_t)snprintf(text, room, ".version 8.0\n.target sm_80\n.address_size 64\n");
  for (char* name = strtok_r(names, ";", &rest); name; name = strtok_r(NULL, ";", &rest))
    used += describe(program, name, text + used, room - used);
  used += (size_t)snprintf(text + used, room - used, "%s", kEnd);
  char* binary = text + used;
  ask_program(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL);
  *size = used + bytes;
  return text;
}

cl_int clGetProgramInfo(void* program, cl_uint what, size_t size, void* value, size_t* needed) {
  const int is_text = what == CL_PROGRAM_BINARY_SIZES || what == CL_PROGRAM_BINARIES;
  if (fact("PTX") == NULL || !is_text) return ask_program(program, what, size, value, needed);
  pthread_mutex_lock(&lock);
  const struct Text* known = text_of(program);
  size_t bytes = 0;
  char* text = known != NULL ? known->bytes : write_text(program, &bytes);
  if (known != NULL) bytes = known->size;
  if (what == CL_PROGRAM_BINARY_SIZES) {
    *(size_t*)value = bytes;
  } else {
    memcpy(*(char**)value, text, bytes);
  }
  if (known == NULL) free(text);
  pthread_mutex_unlock(&lock);
  return 0;
}

void* clCreateProgramWithBinary(void* context, cl_uint n, const void* devices, const size_t* sizes,
                                const unsigned char** binaries, cl_int* status, cl_int* error) {
  size_t size = sizes[0], from = 0;
  const size_t end = sizeof kEnd - 1;
  if (fact("PTX") != NULL) {
    while (from + end <= size && memcmp(binaries[0] + from, kEnd, end) != 0) ++from;
    if (from + end > size) {
      *error = *status = CL_INVALID_BINARY;
      return NULL;
    }
    from += end;
  }
  const unsigned char* binary = binaries[0] + from;
  size -= from;
  void* program = REAL(void*, clCreateProgramWithBinary,
                       (void*, cl_uint, const void*, const size_t*, const unsigned char**, cl_int*,
                        cl_int*))(context, n, devices, &size, &binary, status, error);
  if (fact("PTX") == NULL || program == NULL) return program;
  pthread_mutex_lock(&lock);
  struct Text* text = text_of(NULL);
  if (text == NULL) abort();
  text->program = program;
  text->size = sizes[0];
  text->bytes = memcpy(malloc(sizes[0] + 1), binaries[0], sizes[0]);
  text->bytes[sizes[0]] = 0;
  pthread_mutex_unlock(&lock);
  return program;
}

void forget_text(void* program) {
  pthread_mutex_lock(&lock);
  struct Text* text = program != NULL ? text_of(program) : NULL;
  if (text != NULL) {
    free(text->bytes);
    memset(text, 0, sizeof *text);
  }
  pthread_mutex_unlock(&lock);
}

static int has_integers(void* program, const char* name) {
  char are[MOST_ARGUMENTS];
  if (name == NULL || *name == 0) return 0;
  pthread_mutex_lock(&lock);
  const struct Text* text = text_of(program);
  const int found = text != NULL && find_integers(text->bytes, name, are);
  pthread_mutex_unlock(&lock);
  return found;
}

/* Whether a program builds. */
int takes_text(void* program) {
  if (has_integers(program, fact("DEADLY_PTX"))) raise(SIGKILL);
  return !has_integers(program, fact("REFUSED_PTX"));
}

void* clCreateKernel(void* program, const char* name, cl_int* error) {
  void* kernel = create_kernel(program, name, error);
  char are[MOST_ARGUMENTS];
  if (kernel == NULL || fact("PTX") == NULL) return kernel;
  pthread_mutex_lock(&lock);
  const struct Text* text = text_of(program);
  if (text != NULL && find_integers(text->bytes, name, are)) {
    struct Integers* integers = integers_of(NULL);
    if (integers == NULL) abort();
    integers->kernel = kernel;
    memcpy(integers->are, are, sizeof are);
  }
  pthread_mutex_unlock(&lock);
  return kernel;
}

void forget_integers(void* kernel) {
  pthread_mutex_lock(&lock);
  struct Integers* integers = kernel != NULL ? integers_of(kernel) : NULL;
  if (integers != NULL) memset(integers, 0, sizeof *integers);
  pthread_mutex_unlock(&lock);
}

/* Sets an argument that is an integer; 0 if it is none. */
int set_integer(void* kernel, cl_uint index, size_t size, const void* value, cl_int* code) {
  pthread_mutex_lock(&lock);
  const struct Integers* integers = integers_of(kernel);
  const int is_integer = integers != NULL && index < MOST_ARGUMENTS && integers->are[index];
  pthread_mutex_unlock(&lock);
  if (!is_integer) return 0;
  *code = size != sizeof(void*)
              ? CL_INVALID_ARG_SIZE
              : REAL(cl_int, clSetKernelArgSVMPointer, (void*, cl_uint, const void*))(
                    kernel, index, *(void* const*)value);
  return 1;
}

/* Whether an argument is a sub-buffer whose address a kernel would note. The driver copies what
 * lies in sub-buffers to other memory and back, so it is of no use. */
int asks_address_of_part(void* kernel, cl_uint index, size_t size, const void* value) {
  char name[64] = "";
  if (fact("PTX") == NULL || index != 0 || size != sizeof(void*) || value == NULL) return 0;
  REAL(cl_int, clGetKernelInfo, (void*, cl_uint, size_t, void*, size_t*))(
      kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
  return strcmp(name, "device_address") == 0 && is_part(*(void* const*)value);
}
