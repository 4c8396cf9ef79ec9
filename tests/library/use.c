/* The whole of clgpu_delegate.h as a C99 program uses it, right and wrong. Prints the version. */
#include <clgpu_delegate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static void check_error(char** error, const char* part) {
  CHECK(*error != NULL);
  if (strstr(*error, part) == NULL) {
    fprintf(stderr, "'%s' is not in '%s'\n", part, *error);
    exit(1);
  }
  clgpu_delegate_free(*error);
  *error = NULL;
}

static void check_refused(const char* key, const char* value, const char* part) {
  clgpu_delegate_option option;
  char* error = NULL;
  option.key = key;
  option.value = value;
  CHECK(clgpu_delegate_create(&option, 1, &error) == NULL);
  check_error(&error, part);
  CHECK(clgpu_delegate_create(&option, 1, NULL) == NULL);
  CHECK(clgpu_delegate_find_device(&option, 1, &error) == NULL);
  check_error(&error, part);
}

int main(void) {
  const clgpu_delegate_option options[] = {{"profile", "on"}, {"precision", "fp16"}};
  const clgpu_delegate_option twice[] = {{"profile", "on"}, {"profile", "off"}};
  char foreign[256] = {0};
  char* error = foreign; /* whatever it was before */
  char* json;
  char* name;
  char* memory;
  size_t i;
  struct TfLiteDelegate* delegate = clgpu_delegate_create(options, 2, &error);
  if (delegate == NULL) {
    const int none = error != NULL && strstr(error, "no OpenCL") != NULL;
    fprintf(stderr, "%s\n", error != NULL ? error : "out of memory");
    clgpu_delegate_free(error);
    return none ? 77 : 1;
  }
  CHECK(error == NULL);

  json = clgpu_delegate_profile_json(delegate, &error);
  CHECK(json != NULL && error == NULL);
  CHECK(json[0] == '{' && strstr(json, "\"enabled\":true") != NULL);
  clgpu_delegate_free(json);
  json = clgpu_delegate_explain_json(delegate, NULL);
  CHECK(json != NULL && strstr(json, "\"precision\":\"fp16\"") != NULL);
  name = clgpu_delegate_find_device(options, 2, &error);
  CHECK(name != NULL && error == NULL && strstr(json, name) != NULL);
  clgpu_delegate_free(name);
  clgpu_delegate_free(json);
  memory = clgpu_delegate_allocate(delegate, 5000, &error);
  CHECK(memory != NULL && error == NULL && (size_t)memory % 4096 == 0);
  for (i = 0; i < 5000; ++i) CHECK(memory[i] == 0);
  memset(memory, 7, 8192); /* to the end of the last page */
  clgpu_delegate_deallocate(memory);
  clgpu_delegate_deallocate(memory); /* a line on standard error, no more */
  clgpu_delegate_deallocate(foreign);
  clgpu_delegate_deallocate(NULL);
  CHECK(clgpu_delegate_allocate(delegate, 0, &error) == NULL);
  check_error(&error, "0 bytes cannot be allocated; allowed: 1 to ");
  CHECK(clgpu_delegate_allocate(delegate, (size_t)-1, &error) == NULL);
  check_error(&error, "cannot be allocated");
  CHECK(clgpu_delegate_allocate(delegate, (size_t)1 << 62, &error) == NULL);
  CHECK(error != NULL);
  clgpu_delegate_free(error);
  CHECK(clgpu_delegate_allocate(NULL, 64, &error) == NULL);
  check_error(&error, "the delegate is null");
  memory = clgpu_delegate_allocate(delegate, 1, NULL);
  CHECK(memory != NULL);
  clgpu_delegate_destroy(delegate);
  memory[0] = 1;
  clgpu_delegate_deallocate(memory); /* it may outlive the delegate */
  CHECK(clgpu_delegate_allocate(delegate, 64, &error) == NULL);
  check_error(&error, "not a working delegate");
  clgpu_delegate_destroy(delegate); /* a line on standard error, no more */
  CHECK(clgpu_delegate_explain_json(delegate, &error) == NULL);
  check_error(&error, "not a working delegate");

  delegate = clgpu_delegate_create(NULL, 0, NULL);
  CHECK(delegate != NULL);
  CHECK(clgpu_delegate_profile_json(delegate, NULL) == NULL);
  CHECK(clgpu_delegate_profile_json(delegate, &error) == NULL);
  check_error(&error, "'profile' as 'on'");
  clgpu_delegate_destroy(delegate);

  check_refused("speed", "high", "unknown option 'speed'; options are: device, precision");
  check_refused("precision", "fp64", "'precision' is 'fp64'; allowed: fp32, fp16, tf32");
  check_refused("cache", "C:/cache", "':' and ';' are not allowed");
  check_refused("engines", "conv2d:winograd", "':' and ';' are not allowed");
  check_refused("memory_budget", "64;MB", "':' and ';' are not allowed");
  check_refused("device", "no such device", "no such device");
  check_refused(NULL, "on", "null");
  check_refused("profile", NULL, "'profile' is null");
  CHECK(clgpu_delegate_create(twice, 2, &error) == NULL);
  check_error(&error, "twice");
  CHECK(clgpu_delegate_find_device(twice, 2, &error) == NULL);
  check_error(&error, "twice");
  CHECK(clgpu_delegate_create(NULL, 1, &error) == NULL);
  check_error(&error, "null");

  CHECK(clgpu_delegate_explain_json(NULL, &error) == NULL);
  check_error(&error, "null");
  CHECK(clgpu_delegate_profile_json((struct TfLiteDelegate*)(void*)foreign, &error) == NULL);
  check_error(&error, "not a working delegate of this library");
  clgpu_delegate_destroy((struct TfLiteDelegate*)(void*)foreign);
  clgpu_delegate_destroy(NULL);
  clgpu_delegate_free(NULL);
  printf("%s\n", clgpu_delegate_version());
  return 0;
}
