package org.tensorflow.lite;

import java.nio.ByteBuffer;
import java.util.Map;

public final class Interpreter implements AutoCloseable {
  public static class Options {
    public Options addDelegate(Delegate delegate) {
      return this;
    }
  }

  public Interpreter(ByteBuffer model, Options options) {}

  public int getInputTensorCount() {
    throw new UnsupportedOperationException();
  }

  public Tensor getInputTensor(int index) {
    throw new UnsupportedOperationException();
  }

  public int getOutputTensorCount() {
    throw new UnsupportedOperationException();
  }

  public Tensor getOutputTensor(int index) {
    throw new UnsupportedOperationException();
  }

  public void runForMultipleInputsOutputs(Object[] inputs, Map<Integer, Object> outputs) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() {}
}
