/* Hints about priority and performance, which the real device may not have: they are written to the
 * file HINTS, a line for each context or queue that is made with any ("queue 1096=1"), and refused
 * if REFUSE_HINTS is 1. EMULATED lists the extensions that permit them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "opencl.h"

enum {
  CL_QUEUE_PROPERTIES = 0x1093,
  CL_QUEUE_PRIORITY_KHR = 0x1096,
  CL_CONTEXT_PERF_HINT_QCOM = 0x40C2,
  CL_CONTEXT_PRIORITY_HINT_QCOM = 0x40C9,
  MOST_PROPERTIES = 16,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_permitted(cl_ulong property) {
  const char* own = fact("EMULATED");
  const char* needs = property == CL_QUEUE_PRIORITY_KHR       ? "cl_khr_priority_hints"
                      : property == CL_CONTEXT_PERF_HINT_QCOM ? "cl_qcom_perf_hint"
                                                              : "cl_qcom_priority_hint";
  return limit("REFUSE_HINTS", 0) == 0 && own != NULL && strstr(own, needs) != NULL;
}

static int is_hint(cl_ulong property) {
  return property == CL_QUEUE_PRIORITY_KHR || property == CL_CONTEXT_PERF_HINT_QCOM ||
         property == CL_CONTEXT_PRIORITY_HINT_QCOM;
}

/* Copies the pairs that are no hints, and writes down the others. 0 if one is not permitted. */
static int sort(const char* what, const cl_ulong* properties, cl_ulong rest[MOST_PROPERTIES + 1]) {
  char line[256];
  int length = snprintf(line, sizeof line, "%s", what), count = 0, has_hints = 0;
  for (; properties != NULL && *properties != 0; properties += 2) {
    if (is_hint(*properties)) {
      if (!is_permitted(*properties)) return 0;
      has_hints = 1;
      length += snprintf(line + length, sizeof line - (size_t)length, " %llx=%llx",
                         (unsigned long long)properties[0], (unsigned long long)properties[1]);
    } else if (count + 1 < MOST_PROPERTIES) {
      rest[count++] = properties[0];
      rest[count++] = properties[1];
    }
  }
  rest[count] = 0;
  if (has_hints && fact("HINTS") != NULL) {
    pthread_mutex_lock(&lock);
    FILE* file = fopen(fact("HINTS"), "a");
    if (file != NULL) {
      fprintf(file, "%s\n", line);
      fclose(file);
    }
    pthread_mutex_unlock(&lock);
  }
  return 1;
}

static void* refuse(cl_int* error, cl_int code) {
  if (error != NULL) *error = code;
  return NULL;
}

void* create_context(const void* properties, cl_uint n, const void* devices, void* notify,
                     void* user, cl_int* error) {
  cl_ulong rest[MOST_PROPERTIES + 1];
  if (!sort("context", properties, rest)) return refuse(error, CL_INVALID_PROPERTY);
  return REAL(void*, clCreateContext, (const void*, cl_uint, const void*, void*, void*, cl_int*))(
      properties != NULL ? rest : NULL, n, devices, notify, user, error);
}

void* clCreateCommandQueueWithProperties(void* context, void* device, const cl_ulong* properties,
                                         cl_int* error) {
  cl_ulong rest[MOST_PROPERTIES + 1], flags = 0;
  if (!sort("queue", properties, rest)) return refuse(error, CL_INVALID_QUEUE_PROPERTIES);
  for (const cl_ulong* pair = rest; *pair != 0; pair += 2)
    if (*pair == CL_QUEUE_PROPERTIES) flags = pair[1];
  return REAL(void*, clCreateCommandQueue, (void*, void*, cl_ulong, cl_int*))(context, device,
                                                                              flags, error);
}
