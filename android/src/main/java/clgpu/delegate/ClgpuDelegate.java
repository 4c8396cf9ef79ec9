package clgpu.delegate;

import android.content.Context;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.tensorflow.lite.Delegate;

/**
 * Runs the nodes of a model on the GPU by OpenCL.
 *
 * <p>Give it to {@code Interpreter.Options.addDelegate()}, and close it after the interpreter. The
 * keys and values of options are those of the library's documentation, such as "precision" and
 * "fp16"; what is not given has its default.
 *
 * <p>The constructors and {@link #findDevice} throw an {@link IllegalArgumentException} whose
 * message tells the reason, if an option is bad, if there is no OpenCL device, or if the native
 * libraries cannot be loaded, as in a 32-bit process. All methods may be called from any thread.
 */
public final class ClgpuDelegate implements Delegate {
  private long handle;

  /** Has the default options, and keeps no compiled kernels. */
  public ClgpuDelegate() {
    this(Collections.<String, String>emptyMap());
  }

  /** Keeps compiled kernels only if the options have a "cache". */
  public ClgpuDelegate(Map<String, String> options) {
    loadLibraries();
    byte[][] error = new byte[1][];
    handle = create(bytes(options), error);
    if (handle == 0) throw new IllegalArgumentException(message(error));
  }

  /**
   * Keeps compiled kernels in the app's folder for generated code, which the system empties when
   * the app is updated, unless the options have another "cache".
   */
  public ClgpuDelegate(Context context, Map<String, String> options) {
    this(withCache(context, options));
  }

  /**
   * Whether a delegate with default options has a device here. The first call loads the OpenCL
   * driver and asks it for devices, later ones take microseconds; nothing is compiled. A delegate
   * may still fail to be created, for example for lack of memory.
   */
  public static boolean isSupported() {
    try {
      findDevice(Collections.<String, String>emptyMap());
      return true;
    } catch (IllegalArgumentException unsupported) {
      return false;
    }
  }

  /**
   * The name of the OpenCL device that a delegate with these options would use, such as "Mali-G78
   * r0p1". Takes as long as {@link #isSupported}.
   */
  public static String findDevice(Map<String, String> options) {
    loadLibraries();
    byte[][] error = new byte[1][];
    byte[] name = find(bytes(options), error);
    if (name == null) throw new IllegalArgumentException(message(error));
    return text(name);
  }

  /**
   * The address of the native delegate.
   *
   * @throws IllegalStateException if the delegate is closed
   */
  @Override
  public synchronized long getNativeHandle() {
    if (handle == 0) throw new IllegalStateException("the delegate is closed");
    return handle;
  }

  /** Releases the native delegate; further calls do nothing. */
  @Override
  public synchronized void close() {
    if (handle != 0) destroy(handle);
    handle = 0;
  }

  /**
   * What became of each node of the model, as JSON: where it runs, by which kernel, or why not.
   *
   * @throws IllegalStateException if the delegate is closed
   */
  public synchronized String explainJson() {
    byte[][] error = new byte[1][];
    return told(explain(getNativeHandle(), error), error);
  }

  /**
   * Times of each kernel, as JSON.
   *
   * @throws IllegalStateException if the delegate is closed, or lacks the option "profile" with the
   *     value "on"
   */
  public synchronized String profileJson() {
    byte[][] error = new byte[1][];
    return told(profile(getNativeHandle(), error), error);
  }

  static Map<String, String> withCache(Context context, Map<String, String> options) {
    Map<String, String> all = new HashMap<>();
    all.put("cache", new File(context.getCodeCacheDir(), "clgpu.sqlite").getPath());
    all.putAll(options);
    return all;
  }

  private static String told(byte[] json, byte[][] error) {
    if (json == null) throw new IllegalStateException(message(error));
    return text(json);
  }

  private static String message(byte[][] error) {
    return error[0] == null ? "out of memory" : text(error[0]);
  }

  private static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  /** Each key, followed by its value. */
  private static byte[][] bytes(Map<String, String> options) {
    byte[][] texts = new byte[2 * options.size()][];
    int i = 0;
    for (Map.Entry<String, String> option : options.entrySet()) {
      String key = option.getKey();
      String value = option.getValue();
      if (key == null || value == null) {
        throw new IllegalArgumentException(
            key == null
                ? "the key of an option is null: give the name of an option, such as \"precision\""
                : "'" + key + "' is null: give a value, or leave the option out for its default");
      }
      texts[i++] = key.getBytes(StandardCharsets.UTF_8);
      texts[i++] = value.getBytes(StandardCharsets.UTF_8);
    }
    return texts;
  }

  private static void loadLibraries() {
    if (Libraries.FAILURE != null) {
      throw new IllegalArgumentException(
          "libclgpu_jni.so and libclgpu_delegate.so, which are for 64-bit processes on arm64-v8a"
              + " and x86_64, cannot be loaded: "
              + Libraries.FAILURE.getMessage(),
          Libraries.FAILURE);
    }
  }

  /** Loads the native libraries when it is first used. */
  private static final class Libraries {
    static final UnsatisfiedLinkError FAILURE = load();

    private static UnsatisfiedLinkError load() {
      try {
        System.loadLibrary("clgpu_jni"); // which loads libclgpu_delegate.so
        return null;
      } catch (UnsatisfiedLinkError error) {
        return error;
      }
    }
  }

  // Texts cross the border as UTF-8, which is not what JNI's own functions for strings take. A
  // sentence in error[0] tells why there is no result.
  private static native long create(byte[][] options, byte[][] error);

  private static native byte[] find(byte[][] options, byte[][] error);

  private static native void destroy(long handle);

  private static native byte[] explain(long handle, byte[][] error);

  private static native byte[] profile(long handle, byte[][] error);
}
