package com.example.clgpu

import android.content.Context
import java.io.File
import org.tensorflow.lite.Delegate

/**
 * Runs the nodes of a model on the GPU by OpenCL.
 *
 * Give it to `Interpreter.Options().addDelegate(...)`, and close it after the interpreter. The keys
 * and values of [options] are those of the library's documentation, such as "precision" to "fp16".
 *
 * @throws IllegalArgumentException if an option is bad or there is no OpenCL device; the message
 *   tells what is allowed, or why.
 */
class ClgpuDelegate(options: Map<String, String> = emptyMap()) : Delegate {

  /**
   * Keeps compiled kernels in the app's cache folder, unless [options] have a "cache". That takes a
   * libsqlite3.so among the app's libraries.
   */
  constructor(
      context: Context,
      options: Map<String, String> = emptyMap(),
  ) : this(mapOf("cache" to File(context.cacheDir, "clgpu.sqlite").path) + options)

  private var handle = open(options)

  @Synchronized
  override fun getNativeHandle(): Long {
    check(handle != 0L) { "the delegate is closed" }
    return handle
  }

  @Synchronized
  override fun close() {
    destroy(handle)
    handle = 0
  }

  /** What became of each node of the model, as JSON: where it runs, by which kernel, or why not. */
  @Synchronized fun explainJson(): String = text { error -> explain(handle, error) }

  /** Times of each kernel, as JSON; needs the option "profile" as "on". */
  @Synchronized fun profileJson(): String = text { error -> profile(handle, error) }

  private fun open(options: Map<String, String>): Long {
    val pairs = options.entries.toList()
    val error = arrayOfNulls<ByteArray>(1)
    val created =
        create(
            Array(pairs.size) { pairs[it].key.encodeToByteArray() },
            Array(pairs.size) { pairs[it].value.encodeToByteArray() },
            error,
        )
    require(created != 0L) { message(error) }
    return created
  }

  private fun text(tell: (Array<ByteArray?>) -> ByteArray?): String {
    val error = arrayOfNulls<ByteArray>(1)
    return checkNotNull(tell(error)) { message(error) }.decodeToString()
  }

  private fun message(error: Array<ByteArray?>) = error[0]?.decodeToString() ?: "out of memory"

  // Texts cross the border as UTF-8, which is not what JNI's own functions for strings take. A
  // sentence in error[0] tells why there is no result.
  private external fun create(
      keys: Array<ByteArray>,
      values: Array<ByteArray>,
      error: Array<ByteArray?>,
  ): Long

  private external fun destroy(handle: Long)

  private external fun explain(handle: Long, error: Array<ByteArray?>): ByteArray?

  private external fun profile(handle: Long, error: Array<ByteArray?>): ByteArray?

  private companion object {
    init {
      System.loadLibrary("clgpu_jni") // which loads libclgpu_delegate.so
    }
  }
}
