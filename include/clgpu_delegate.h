/*
 * clgpu_delegate: an OpenCL delegate for TensorFlow Lite, as a library for C and C++.
 *
 *   const clgpu_delegate_option options[] = {{"precision", "fp16"}, {"profile", "on"}};
 *   char* error = NULL;
 *   struct TfLiteDelegate* delegate = clgpu_delegate_create(options, 2, &error);
 *   if (delegate == NULL) {
 *     fprintf(stderr, "%s\n", error != NULL ? error : "out of memory");
 *     clgpu_delegate_free(error);
 *   }
 *
 * Give the delegate to TfLiteInterpreterOptionsAddDelegate() (C; cast it where that header declares
 * another type), or to Interpreter::ModifyGraphWithDelegate() or InterpreterBuilder::AddDelegate()
 * (C++). It must live as long as the interpreters that use it; any number of them may share one.
 *
 * The library exports tflite_plugin_create_delegate() and tflite_plugin_destroy_delegate(), too, so
 * it can also be passed to TfLiteExternalDelegateCreate(), benchmark_model's
 * --external_delegate_path and Python's load_delegate(). TfLiteExternalDelegateCreate() returns
 * TensorFlow Lite's own delegate, which wraps one of ours: the functions below do not accept it.
 *
 * Texts are UTF-8 and end with NUL. No function throws, ends the process or keeps a pointer that is
 * passed to it. All functions may be called from any thread, but nobody may use a delegate while it
 * is being destroyed.
 */
#ifndef CLGPU_DELEGATE_H_
#define CLGPU_DELEGATE_H_

#include <stddef.h>

#if defined(_WIN32)
#define CLGPU_DELEGATE_API
#else
#define CLGPU_DELEGATE_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteDelegate;

/* One option, such as {"precision", "fp16"}. */
typedef struct clgpu_delegate_option {
  const char* key;
  const char* value;
} clgpu_delegate_option;

/*
 * The version of the library, as "0.1.0". Not to be freed.
 */
CLGPU_DELEGATE_API const char* clgpu_delegate_version(void);

/*
 * Creates a delegate from `count` options; the other options have their defaults. `options` may be
 * NULL if `count` is 0. Keys and values are those of Python's clgpu_delegate.Options as texts, with
 * "on" and "off" for True and False; a value must not contain ':' or ';'. The error of an unknown
 * key lists all keys, that of a bad value the allowed values. The environment variables
 * CLGPU_DEVICE and CLGPU_CACHE replace the options "device" and "cache" if these are not given;
 * CLGPU_OPENCL_LIBRARY and CLGPU_SQLITE_LIBRARY name the library to load instead of the usual ones.
 *
 * Tuned choices and compiled programs are kept in the file that the option "cache" names. By
 * default that is clgpu_delegate/cache.sqlite in the user's cache folder; Android has no such
 * default: without "cache", for example a file in the app's codeCacheDir, nothing is kept there and
 * every start compiles again. Where no SQLite can be loaded, the cache is a folder with ".rows" at
 * the end of that name. If it does not work, the "notes" of clgpu_delegate_explain_json() say why.
 * Nothing else is written.
 *
 * Returns NULL if an option is bad or no device matches. Then `*error` is a sentence,
 * which the caller frees; after success it is NULL. `error` may be NULL.
 */
CLGPU_DELEGATE_API struct TfLiteDelegate* clgpu_delegate_create(
    const clgpu_delegate_option* options, size_t count, char** error);

/*
 * The name of the OpenCL device that clgpu_delegate_create() would use with these options, such as
 * "Mali-G78 r0p1". The first call loads the OpenCL driver and asks it for devices, later ones take
 * microseconds; no context is made and nothing is compiled. A delegate may still fail to be
 * created, for example for lack of memory.
 *
 * Returns a text that the caller frees, or NULL with a sentence in `*error`, for the same reasons
 * as clgpu_delegate_create().
 */
CLGPU_DELEGATE_API char* clgpu_delegate_find_device(const clgpu_delegate_option* options,
                                                    size_t count, char** error);

/*
 * Destroys a delegate of this library, after the interpreters that use it. NULL is accepted. A
 * pointer that is not a delegate of this library, or was destroyed before, is not touched, and a
 * line in the log (logcat on Android, else standard error) says so. A second call for the same
 * delegate is recognised only as long as no new delegate has its address.
 */
CLGPU_DELEGATE_API void clgpu_delegate_destroy(struct TfLiteDelegate* delegate);

/*
 * The report on the delegate's last model, as a JSON object. Its "nodes" have "op", "claimed",
 * "reason" (why a node is on the CPU, as a sentence) and "refusal" (the same as fields: "code",
 * "what", "has" and "supported", or null; docs/refusals.md), the chosen kernel and the other
 * possible ones. Further keys are "device", "partitions", memory in bytes, "notes", "faults"
 * (kernels that do not work on the device) and "failure" (the class of the last error that was
 * reported to the runtime and, for an OpenCL error, its "call" and "code"; or null). It is the data
 * of Delegate.explain() in Python.
 *
 * Returns a text that the caller frees, or NULL with a sentence in `*error`, as above, for example
 * if `delegate` is NULL, destroyed or not of this library.
 */
CLGPU_DELEGATE_API char* clgpu_delegate_explain_json(struct TfLiteDelegate* delegate, char** error);

/*
 * The times at which each kernel launch and each transfer of the last recorded inferences was
 * queued, submitted, started and ended, as a JSON object: "launches", one row each, in nanoseconds
 * of the host's steady clock (null if the driver did not report a time), "host", the span of each
 * inference, "nodes" and what they compute, "peaks", the rates of the device. It is the data of
 * Delegate.profile() in Python.
 *
 * Only a delegate created with the option "profile" = "on" records: the first inferences, and some
 * of the later ones. The first call for a device measures its rates, which takes some tenths of a
 * second; they are stored in the cache.
 *
 * Returns values and errors like clgpu_delegate_explain_json(). A delegate that does not record is
 * an error; one that has not run an inference yet is not.
 */
CLGPU_DELEGATE_API char* clgpu_delegate_profile_json(struct TfLiteDelegate* delegate, char** error);

/*
 * Frees a text that a function of this library has returned or put into `*error`; NULL is accepted.
 */
CLGPU_DELEGATE_API void clgpu_delegate_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
