/* The part of the NDK's headers NdkImage.h and NdkImageReader.h that the examples use. */
#pragma once

#include <android/hardware_buffer.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct AImage AImage;
typedef struct AImageReader AImageReader;
typedef struct ANativeWindow ANativeWindow;
typedef enum { AMEDIA_OK = 0 } media_status_t;
enum { AIMAGE_FORMAT_RGBA_8888 = 1 };

typedef void (*AImageReader_ImageCallback)(void* context, AImageReader* reader);
typedef struct AImageReader_ImageListener {
  void* context;
  AImageReader_ImageCallback onImageAvailable;
} AImageReader_ImageListener;

media_status_t AImageReader_newWithUsage(int32_t width, int32_t height, int32_t format,
                                         uint64_t usage, int32_t images, AImageReader** reader);
void AImageReader_delete(AImageReader* reader);
media_status_t AImageReader_getWindow(AImageReader* reader, ANativeWindow** window);
media_status_t AImageReader_setImageListener(AImageReader* reader,
                                             AImageReader_ImageListener* listener);
media_status_t AImageReader_acquireLatestImage(AImageReader* reader, AImage** image);
media_status_t AImage_getHardwareBuffer(const AImage* image, AHardwareBuffer** buffer);
void AImage_delete(AImage* image);

#ifdef __cplusplus
}
#endif
