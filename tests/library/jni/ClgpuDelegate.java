package com.example.clgpu;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** The native methods of examples/android/ClgpuDelegate.kt, called as they are there. */
public class ClgpuDelegate {
  private native long create(byte[][] keys, byte[][] values, byte[][] error);

  private native void destroy(long handle);

  private native byte[] explain(long handle, byte[][] error);

  private native byte[] profile(long handle, byte[][] error);

  private static byte[][] bytes(String... texts) {
    return Arrays.stream(texts)
        .map(text -> text.getBytes(StandardCharsets.UTF_8))
        .toArray(byte[][]::new);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void check(boolean condition) {
    if (!condition) throw new AssertionError();
  }

  public static void main(String[] arguments) {
    System.load(arguments[0]);
    ClgpuDelegate delegate = new ClgpuDelegate();
    byte[][] error = new byte[1][];
    String name = "gr\u00fcn \uD83D\uDE00"; // JNI's own strings are not UTF-8
    check(delegate.create(bytes("device"), bytes(name), error) == 0);
    if (text(error[0]).contains("no OpenCL library")) System.exit(77);
    check(text(error[0]).contains(name));
    long handle = delegate.create(bytes("profile", "cache"), bytes("on", "off"), error);
    check(handle != 0);
    error[0] = null;
    check(text(delegate.explain(handle, error)).startsWith("{\"device\":"));
    check(text(delegate.profile(handle, error)).contains("\"enabled\":true"));
    check(error[0] == null);
    delegate.destroy(handle);
    check(delegate.explain(handle, error) == null);
    check(text(error[0]).contains("not a working delegate"));
    delegate.destroy(0);
  }
}
