/* Stands for Android's libnativewindow.so: AHardwareBuffers in memory of the host. Memory goes with
 * the last reference, and is overwritten before: a use that comes later reads 0xEE. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* AHardwareBuffer_Desc of the NDK. */
typedef struct {
  uint32_t width, height, layers, format;
  uint64_t usage;
  uint32_t stride, reserved0;
  uint64_t reserved1;
} Desc;

typedef struct {
  Desc desc;
  size_t bytes;
  void* memory;
  int references, locks;
} AHardwareBuffer;

enum { kBlob = 0x21, kPage = 4096 };

static int living;

int AHardwareBuffer_allocate(const Desc* desc, AHardwareBuffer** buffer) {
  AHardwareBuffer* made = calloc(1, sizeof *made);
  made->desc = *desc;
  /* Rows of images are padded. */
  made->desc.stride = desc->format == kBlob ? desc->width : (desc->width + 15) / 16 * 16;
  made->bytes = desc->format == kBlob ? desc->width : (size_t)4 * made->desc.stride * desc->height;
  made->memory = aligned_alloc(kPage, (made->bytes + kPage - 1) / kPage * kPage);
  memset(made->memory, 0, made->bytes);
  made->references = 1;
  ++living;
  *buffer = made;
  return 0;
}

void AHardwareBuffer_acquire(AHardwareBuffer* buffer) { ++buffer->references; }

void AHardwareBuffer_release(AHardwareBuffer* buffer) {
  if (--buffer->references > 0) return;
  if (buffer->references < 0) abort();
  memset(buffer->memory, 0xEE, buffer->bytes);
  free(buffer->memory);
  buffer->memory = NULL; /* the object itself stays, to tell who releases it again */
  --living;
}

void AHardwareBuffer_describe(const AHardwareBuffer* buffer, Desc* desc) { *desc = buffer->desc; }

int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const void* rect,
                         void** memory) {
  (void)usage, (void)fence, (void)rect;
  if (buffer->references <= 0) return -22;
  ++buffer->locks;
  *memory = buffer->memory;
  return 0;
}

int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence) {
  (void)fence;
  --buffer->locks;
  return 0;
}

/* For tests. */
int fake_references(const AHardwareBuffer* buffer) { return buffer->references; }
int fake_living(void) { return living; }
