/* Launches that wait in a queue until it is flushed: no more than the profile's driver keeps. */
#include <pthread.h>

#include "opencl.h"

#define MOST_QUEUES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  void* queue;
  cl_ulong launches;
} waiting[MOST_QUEUES];

/* Under the lock. A queue that was released may come back as another one with its address. */
static cl_ulong* launches_of(void* queue) {
  for (size_t i = 0; i < MOST_QUEUES; ++i) {
    if (waiting[i].queue == NULL) waiting[i].queue = queue;
    if (waiting[i].queue == queue) return &waiting[i].launches;
  }
  return &waiting[0].launches;
}

int may_launch(void* queue) {
  pthread_mutex_lock(&lock);
  const int may = ++*launches_of(queue) <= limit("UNFLUSHED", UINT64_MAX);
  pthread_mutex_unlock(&lock);
  return may;
}

static void* flushed(void* queue) {
  pthread_mutex_lock(&lock);
  *launches_of(queue) = 0;
  pthread_mutex_unlock(&lock);
  return queue;
}

cl_int clFlush(void* queue) { return REAL(cl_int, clFlush, (void*))(flushed(queue)); }
cl_int clFinish(void* queue) { return REAL(cl_int, clFinish, (void*))(flushed(queue)); }

cl_int clReleaseCommandQueue(void* queue) {
  forget_recordable(queue);
  return REAL(cl_int, clReleaseCommandQueue, (void*))(flushed(queue));
}

/* Blocking reads and maps flush their queue. Other commands that do are not counted here, so the
 * layer is stricter than drivers. */
cl_int clEnqueueReadBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset, size_t bytes,
                           void* target, cl_uint n, const void* wait, void* event) {
  if (!may_use(buffer)) return CL_INVALID_GL_OBJECT;
  return REAL(cl_int, clEnqueueReadBuffer,
              (void*, void*, cl_uint, size_t, size_t, void*, cl_uint, const void*, void*))(
      blocking ? flushed(queue) : queue, buffer, blocking, offset, bytes, target, n, wait, event);
}

void* clEnqueueMapBuffer(void* queue, void* buffer, cl_uint blocking, cl_ulong flags, size_t offset,
                         size_t bytes, cl_uint n, const void* wait, void* event, cl_int* error) {
  return REAL(void*, clEnqueueMapBuffer,
              (void*, void*, cl_uint, cl_ulong, size_t, size_t, cl_uint, const void*, void*,
               cl_int*))(blocking ? flushed(queue) : queue, buffer, blocking, flags, offset, bytes,
                         n, wait, event, error);
}

cl_int clEnqueueWriteBuffer(void* queue, void* buffer, cl_uint blocking, size_t offset,
                            size_t bytes, const void* source, cl_uint n, const void* wait,
                            void* event) {
  if (!may_use(buffer)) return CL_INVALID_GL_OBJECT;
  return REAL(cl_int, clEnqueueWriteBuffer,
              (void*, void*, cl_uint, size_t, size_t, const void*, cl_uint, const void*, void*))(
      queue, buffer, blocking, offset, bytes, source, n, wait, event);
}

cl_int clEnqueueCopyBuffer(void* queue, void* from, void* to, size_t source, size_t target,
                           size_t bytes, cl_uint n, const void* wait, void* event) {
  if (!may_use(from) || !may_use(to)) return CL_INVALID_GL_OBJECT;
  return REAL(cl_int, clEnqueueCopyBuffer,
              (void*, void*, void*, size_t, size_t, size_t, cl_uint, const void*, void*))(
      queue, from, to, source, target, bytes, n, wait, event);
}
