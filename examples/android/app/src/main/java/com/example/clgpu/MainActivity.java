package com.example.clgpu;

import android.app.Activity;
import android.content.res.AssetFileDescriptor;
import android.os.Bundle;
import android.util.Log;
import android.widget.TextView;
import clgpu.delegate.ClgpuDelegate;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.tensorflow.lite.Interpreter;

/**
 * Runs the model in assets/model.tflite on zeros, on the CPU and, where there is OpenCL, on the
 * GPU, and shows how long an inference takes. The report on the nodes goes to the log.
 */
public final class MainActivity extends Activity {
  private static final String TAG = "clgpu_example";
  private static final int RUNS = 50;

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    TextView view = new TextView(this);
    view.setText("running ...");
    setContentView(view);
    // The first GPU run compiles kernels, which takes seconds: never on the thread of the screen.
    new Thread(
            () -> {
              String text = measure();
              runOnUiThread(() -> view.setText(text));
            })
        .start();
  }

  private String measure() {
    try {
      ByteBuffer model = readModel();
      return "CPU: " + milliseconds(model, null) + " ms\n" + "GPU: " + onGpu(model);
    } catch (IOException | RuntimeException error) {
      Log.e(TAG, "failed", error);
      return error.toString();
    }
  }

  private String onGpu(ByteBuffer model) {
    if (!ClgpuDelegate.isSupported()) return "not supported";
    Map<String, String> options = Collections.singletonMap("precision", "fp16");
    try (ClgpuDelegate delegate = new ClgpuDelegate(this, options)) {
      String text = milliseconds(model, delegate) + " ms on " + ClgpuDelegate.findDevice(options);
      Log.i(TAG, delegate.explainJson());
      return text;
    } catch (IllegalArgumentException error) {
      Log.w(TAG, "no delegate, or it cannot run the model", error);
      return error.getMessage();
    }
  }

  /** The shortest of some inferences. */
  private static double milliseconds(ByteBuffer model, ClgpuDelegate delegate) {
    Interpreter.Options options = new Interpreter.Options();
    if (delegate != null) options.addDelegate(delegate);
    try (Interpreter interpreter = new Interpreter(model, options)) {
      Object[] inputs = new Object[interpreter.getInputTensorCount()];
      for (int i = 0; i < inputs.length; ++i)
        inputs[i] = bytes(interpreter.getInputTensor(i).numBytes());
      Map<Integer, Object> outputs = new HashMap<>();
      for (int i = 0; i < interpreter.getOutputTensorCount(); ++i)
        outputs.put(i, bytes(interpreter.getOutputTensor(i).numBytes()));
      long shortest = Long.MAX_VALUE;
      for (int run = 0; run < RUNS; ++run) {
        for (Object buffer : inputs) ((ByteBuffer) buffer).rewind();
        for (Object buffer : outputs.values()) ((ByteBuffer) buffer).rewind();
        long start = System.nanoTime();
        interpreter.runForMultipleInputsOutputs(inputs, outputs);
        shortest = Math.min(shortest, System.nanoTime() - start);
      }
      return shortest / 1e6;
    }
  }

  private static ByteBuffer bytes(int count) {
    return ByteBuffer.allocateDirect(count).order(ByteOrder.nativeOrder());
  }

  private ByteBuffer readModel() throws IOException {
    try (AssetFileDescriptor asset = getAssets().openFd("model.tflite");
        FileInputStream file = new FileInputStream(asset.getFileDescriptor())) {
      return file.getChannel()
          .map(FileChannel.MapMode.READ_ONLY, asset.getStartOffset(), asset.getLength());
    }
  }
}
