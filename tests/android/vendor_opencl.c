/* What stands before OpenCL on some phones, in front of a real library (REAL, a path).
 * HIDDEN: as libOpenCL-pixel.so, functions are told by one function, once another was called.
 * VENDOR (a folder): as libvndksupport.so, which loads what is out of an app's reach. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef HIDDEN
static int enabled;

void enableOpenCL(void) { enabled = 1; }

void* loadOpenCLPointer(const char* name) {
  return enabled ? dlsym(dlopen(REAL, RTLD_NOW), name) : NULL;
}
#endif

#ifdef VENDOR
void* android_load_sphal_library(const char* name, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", VENDOR, name);
  return dlopen(path, flags);
}
#endif
