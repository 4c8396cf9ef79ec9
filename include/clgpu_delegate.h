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
struct AHardwareBuffer;

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

/* The window system of an OpenGL context. */
enum { CLGPU_DELEGATE_EGL = 1, CLGPU_DELEGATE_GLX = 2 };

/* An OpenGL context. */
typedef struct clgpu_delegate_gl {
  int window_system; /* CLGPU_DELEGATE_EGL or CLGPU_DELEGATE_GLX */
  void* display;     /* EGLDisplay, or Display* of GLX */
  void* context;     /* EGLContext or GLXContext */
} clgpu_delegate_gl;

/*
 * As clgpu_delegate_create(), for a delegate to whose tensors buffers and textures of an OpenGL
 * context can be bound. The OpenGL context must be current in the calling thread, and must outlive
 * the delegate and its interpreters.
 *
 * Returns NULL also if the device does not list cl_khr_gl_sharing, or if its driver does not share
 * with this context. `*error` says which; clgpu_delegate_create() still works then.
 */
CLGPU_DELEGATE_API struct TfLiteDelegate* clgpu_delegate_create_with_gl(
    const clgpu_delegate_option* options, size_t count, const clgpu_delegate_gl* gl, char** error);

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
 * Memory of the application that OpenCL uses without a copy: a buffer, which holds the bytes of a
 * tensor as on the host, or an image of 8-bit pixels, which is converted.
 */
typedef struct clgpu_delegate_memory clgpu_delegate_memory;

/*
 * Imports an AHardwareBuffer of one layer: of the format BLOB as a buffer, of R8G8B8A8_UNORM or
 * R8G8B8X8_UNORM as an image. The driver must list cl_arm_import_memory_android_hardware_buffer or
 * cl_qcom_android_ahardwarebuffer_host_ptr. The library holds a reference to the AHardwareBuffer
 * until clgpu_delegate_release_memory(), and longer while it is bound.
 *
 * Returns NULL with a sentence in `*error`, as above, if the driver lacks the extensions or refuses
 * the buffer. The delegate is as before, and the application can copy between the locked buffer and
 * the tensor.
 */
CLGPU_DELEGATE_API clgpu_delegate_memory* clgpu_delegate_import_hardware_buffer(
    struct TfLiteDelegate* delegate, struct AHardwareBuffer* buffer, char** error);

/*
 * Imports an OpenGL buffer, or a level of a GL_TEXTURE_2D with the internal format GL_RGBA8, as an
 * image, for a delegate of clgpu_delegate_create_with_gl(). `buffer` and `texture` are OpenGL's
 * names, `target` is GL_TEXTURE_2D. The OpenGL context must be current in the calling thread. The
 * OpenGL object must outlive the memory, and must not get another size or format meanwhile.
 *
 * Return NULL with a sentence in `*error`, as above.
 */
CLGPU_DELEGATE_API clgpu_delegate_memory* clgpu_delegate_import_gl_buffer(
    struct TfLiteDelegate* delegate, unsigned buffer, char** error);
CLGPU_DELEGATE_API clgpu_delegate_memory* clgpu_delegate_import_gl_texture(
    struct TfLiteDelegate* delegate, unsigned target, int level, unsigned texture, char** error);

/*
 * How the channels of an image, 0 to 255, become elements of a tensor, and the reverse:
 * element = scale * channel + offset. Integers are rounded to the nearest, and clamped to the range
 * of their type.
 */
typedef struct clgpu_delegate_scaling {
  float scale; /* not 0 */
  float offset;
} clgpu_delegate_scaling;

/*
 * Binds memory to a tensor of the main graph of the delegate's only interpreter: from the next
 * inference on, an input has its value from there, and an output is written there instead of to the
 * interpreter's tensor. `tensor` is its index in the model, as in
 * TfLiteInterpreterInputTensorIndices() and Interpreter::inputs(). To be called after the
 * interpreter has allocated its tensors, and not during an inference. Binding other memory replaces
 * it, which costs some microseconds, so frames may take turns; NULL gives the tensor its own memory
 * again.
 *
 * - The tensor is an input or output of nodes on the device, and no node on the CPU uses it.
 * - A buffer has at least as many bytes as the tensor.
 * - An image has the width and height of a tensor [1, height, width, 3 or 4] of the type float32,
 *   uint8 or int8. With three channels, alpha is not read, and is written as 255. `scaling` says how
 *   to convert; NULL stands for {1, 0}. It is not used for buffers.
 * - Inputs must be complete before the inference starts: wait for the fence of the camera's frame,
 *   unlock what AHardwareBuffer_lock() has locked, call glFinish() after OpenGL has drawn. Outputs
 *   are complete when the inference has ended. Between two inferences the delegate does not use the
 *   memory: OpenGL's objects are acquired and released in each.
 * - What was bound stays bound after clgpu_delegate_release_memory(), until it is replaced, the
 *   interpreter ends or its tensors are resized to another size than the memory's: then inferences
 *   fail with a sentence until other memory is bound.
 *
 * Returns 1; or 0 with a sentence in `*error`, as above, and nothing has changed.
 */
CLGPU_DELEGATE_API int clgpu_delegate_bind(struct TfLiteDelegate* delegate, int tensor,
                                           clgpu_delegate_memory* memory,
                                           const clgpu_delegate_scaling* scaling, char** error);

/*
 * Ends the application's use of imported memory. NULL is accepted. A pointer that is not memory of
 * this library, or was released before, is not touched, and a line in the log says so.
 */
CLGPU_DELEGATE_API void clgpu_delegate_release_memory(clgpu_delegate_memory* memory);

/*
 * Allocates host memory for inputs and outputs that an interpreter has by
 * Interpreter::SetCustomAllocationForTensor() or TfLiteInterpreterSetCustomAllocationForTensor():
 * a device with memory of its own copies directly from and to it, as the driver has pinned it; one
 * that shares the host's memory works on it without a copy, where the plan allows that. `bytes` is
 * 1 or more, at least those of the tensor. The memory is zero, aligned to pages and to what buffers
 * of the device need, and its last page belongs to it as a whole. A tensor may also begin at a
 * later page of it. The application may read and write it between two inferences, and may give it
 * to interpreters with other delegates or without one; then it is memory like any other.
 *
 * Returns NULL with a sentence in `*error`, as above, if the delegate is no working one, if `bytes`
 * is 0, or if there is not so much memory.
 */
CLGPU_DELEGATE_API void* clgpu_delegate_allocate(struct TfLiteDelegate* delegate, size_t bytes,
                                                 char** error);

/*
 * Frees memory of clgpu_delegate_allocate(), before or after its delegate is destroyed, but not
 * before the interpreters whose tensors are in it are destroyed, or have got other memory for these
 * tensors. NULL is accepted. A pointer that clgpu_delegate_allocate() has not returned, or that was
 * deallocated before, is not touched, and a line in the log says so.
 */
CLGPU_DELEGATE_API void clgpu_delegate_deallocate(void* memory);

/*
 * Frees a text that a function of this library has returned or put into `*error`; NULL is accepted.
 */
CLGPU_DELEGATE_API void clgpu_delegate_free(char* text);

#ifdef __cplusplus
}
#endif

#endif
