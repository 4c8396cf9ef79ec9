// run_external LIBRARY MODEL: the same by TensorFlow Lite's own loader, without our header. Where
// an option is bad, the interpreter's creation fails and tells the reason.
#include "tensorflow/lite/delegates/external/external_delegate.h"
#include "tflite.hpp"

int main(int count, char** arguments) {
  if (count != 3) fail("usage: run_external LIBRARY MODEL");
  TfLiteExternalDelegateOptions options = TfLiteExternalDelegateOptionsDefault(arguments[1]);
  options.insert(&options, "precision", "fp16");
  using External = std::unique_ptr<TfLiteDelegate, Deleter<TfLiteExternalDelegateDelete>>;
  const External delegate(TfLiteExternalDelegateCreate(&options));
  const Model model(TfLiteModelCreateFromFile(arguments[2]));
  if (model == nullptr) fail("this is no model");
  run(model.get(), delegate.get());
}
