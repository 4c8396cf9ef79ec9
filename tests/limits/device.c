/* What the device says of itself: the profile's answers, else the real device's. */
#include <stdio.h>
#include <string.h>

#include "opencl.h"

typedef cl_int (*Info)(void*, cl_uint, size_t, void*, size_t*);

static const struct {
  cl_uint what;
  char kind; /* text, u: cl_uint, l: cl_ulong, z: size_t, 3: as many size_t */
  const char* key;
} kFacts[] = {
    {0x102B, 't', "NAME"},
    {0x102C, 't', "VENDOR"},
    {0x102D, 't', "DRIVER"},
    {0x102F, 't', "VERSION"},
    {0x103D, 't', "C_VERSION"},
    {0x1002, 'u', "COMPUTE_UNITS"},
    {0x1035, 'u', "UNIFIED_MEMORY"},
    {0x1004, 'z', "WORK_GROUP"},
    {0x1005, '3', "WORK_ITEMS"},
    {0x1067, 'z', "LANES"},
    {0x1010, 'l', "OBJECT"},
    {0x101F, 'l', "GLOBAL"},
    {0x1023, 'l', "LOCAL"},
    {0x1022, 'u', "LOCAL_TYPE"},
    {0x1019, 'u', "BASE_ALIGN_BITS"},
    {0x1017, 'z', "PARAMETERS"},
    {0x1020, 'l', "CONSTANT"},
    {CL_DEVICE_IMAGE_SUPPORT, 'u', "IMAGES"},
    {0x1011, 'z', "IMAGE_WIDTH"},
    {0x1012, 'z', "IMAGE_HEIGHT"},
    {0x1040, 'z', "IMAGE_TEXELS"},
    {0x100A, 'u', "VECTOR_FLOAT"}, /* preferred */
    {0x103A, 'u', "VECTOR_FLOAT"}, /* native */
    {0x41DE, 'u', "RECORDABLE_MAX"},
    {0x12A9, 'l', "COMMAND_BUFFERS"},
};

static cl_int answer(const void* data, size_t bytes, size_t size, void* value, size_t* needed) {
  if (needed != NULL) *needed = bytes;
  if (value == NULL) return 0;
  if (size < bytes) return CL_INVALID_VALUE;
  memcpy(value, data, bytes);
  return 0;
}

cl_int clGetPlatformInfo(void* platform, cl_uint what, size_t size, void* value, size_t* needed) {
  const char* name = what == 0x0902 ? fact("PLATFORM") : what == 0x0903 ? fact("VENDOR") : NULL;
  if (name != NULL) return answer(name, strlen(name) + 1, size, value, needed);
  return REAL(cl_int, clGetPlatformInfo, (void*, cl_uint, size_t, void*, size_t*))(
      platform, what, size, value, needed);
}

/* Of the profile's extensions those that the real device has, too, or the layer emulates. */
static const char* extensions(Info info, void* device) {
  static __thread char list[4096];
  char real_ones[8192] = " ", wanted[4096];
  char* rest = NULL;
  info(device, CL_DEVICE_EXTENSIONS, sizeof real_ones - 2, real_ones + 1, NULL);
  strcat(real_ones, " ");
  snprintf(wanted, sizeof wanted, "%s", fact("EXTENSIONS"));
  list[0] = 0;
  for (char* name = strtok_r(wanted, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
    char word[256];
    snprintf(word, sizeof word, " %s ", name);
    const int is_emulated =
        limit("RECORDABLE_MAX", 0) > 0 && strcmp(name, "cl_qcom_recordable_queues") == 0;
    if (is_emulated || strstr(real_ones, word) != NULL) strcat(strcat(list, name), " ");
  }
  if (fact("EMULATED") != NULL) strncat(list, fact("EMULATED"), sizeof list - 1 - strlen(list));
  return list;
}

cl_int clGetDeviceInfo(void* device, cl_uint what, size_t size, void* value, size_t* needed) {
  const Info info = (Info)real("clGetDeviceInfo");
  if (what == CL_DEVICE_TYPE) {
    const cl_ulong type = limit("TYPE", CL_DEVICE_TYPE_GPU);
    return answer(&type, sizeof type, size, value, needed);
  }
  if (what == CL_DEVICE_EXTENSIONS && fact("EXTENSIONS") != NULL) {
    const char* list = extensions(info, device);
    return answer(list, strlen(list) + 1, size, value, needed);
  }
  for (size_t i = 0; i < sizeof kFacts / sizeof *kFacts; ++i) {
    const char* text = what == kFacts[i].what ? fact(kFacts[i].key) : NULL;
    if (text == NULL) continue;
    const cl_ulong number = limit(kFacts[i].key, 0);
    const cl_uint small = (cl_uint)number;
    const size_t sizes[3] = {(size_t)number, (size_t)number, (size_t)number};
    switch (kFacts[i].kind) {
      case 't':
        return answer(text, strlen(text) + 1, size, value, needed);
      case 'u':
        return answer(&small, sizeof small, size, value, needed);
      case 'l':
        return answer(&number, sizeof number, size, value, needed);
      default:
        return answer(sizes, kFacts[i].kind == '3' ? sizeof sizes : sizeof *sizes, size, value,
                      needed);
    }
  }
  return info(device, what, size, value, needed);
}
