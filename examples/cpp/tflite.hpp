// TensorFlow Lite's objects, each with the function that ends it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tensorflow/lite/c/c_api.h"

template <auto Delete>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Delete(object);
  }
};
using Model = std::unique_ptr<TfLiteModel, Deleter<TfLiteModelDelete>>;
using Options = std::unique_ptr<TfLiteInterpreterOptions, Deleter<TfLiteInterpreterOptionsDelete>>;
using Interpreter = std::unique_ptr<TfLiteInterpreter, Deleter<TfLiteInterpreterDelete>>;

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

/// Runs a model with zeros as its inputs and prints the size of each output.
/// The delegate must outlive what this returns.
inline Interpreter run(const TfLiteModel* model, TfLiteDelegate* delegate) {
  const Options options(TfLiteInterpreterOptionsCreate());
  TfLiteInterpreterOptionsAddDelegate(options.get(), delegate);
  Interpreter interpreter(TfLiteInterpreterCreate(model, options.get()));
  if (interpreter == nullptr) fail("the delegate refuses the model; the line above tells why");
  if (TfLiteInterpreterAllocateTensors(interpreter.get()) != kTfLiteOk) fail("no memory");
  for (int i = 0; i < TfLiteInterpreterGetInputTensorCount(interpreter.get()); ++i) {
    TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter.get(), i);
    const std::vector<char> zeros(TfLiteTensorByteSize(input));
    TfLiteTensorCopyFromBuffer(input, zeros.data(), zeros.size());
  }
  if (TfLiteInterpreterInvoke(interpreter.get()) != kTfLiteOk) fail("the inference has failed");
  for (int i = 0; i < TfLiteInterpreterGetOutputTensorCount(interpreter.get()); ++i) {
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter.get(), i);
    std::printf("%s: %zu bytes\n", TfLiteTensorName(output), TfLiteTensorByteSize(output));
  }
  return interpreter;
}
