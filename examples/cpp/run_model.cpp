// run_model MODEL [KEY=VALUE]...: runs a model on the device and tells which nodes ran where.
#include <clgpu_delegate.h>

#include <string>

#include "tflite.hpp"

namespace {

using Delegate = std::unique_ptr<TfLiteDelegate, Deleter<clgpu_delegate_destroy>>;
using Text = std::unique_ptr<char, Deleter<clgpu_delegate_free>>;

Delegate create(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<clgpu_delegate_option> options;
  for (const auto& [key, value] : settings) options.push_back({key.c_str(), value.c_str()});
  char* error = nullptr;
  Delegate delegate(clgpu_delegate_create(options.data(), options.size(), &error));
  const Text owned(error);
  if (delegate == nullptr) fail(error != nullptr ? error : "out of memory");
  return delegate;
}

void print(const char* what, char* json, char* error) {
  const Text owned_json(json), owned_error(error);
  const char* text = json != nullptr ? json : error;
  std::printf("%s: %s\n", what, text != nullptr ? text : "out of memory");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) fail("usage: run_model MODEL [KEY=VALUE]...");
  std::vector<std::pair<std::string, std::string>> settings{{"profile", "on"}};
  for (int i = 2; i < count; ++i) {
    const std::string setting = arguments[i];
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) fail("settings have the form KEY=VALUE");
    settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  const Delegate delegate = create(settings);  // ends after the interpreter
  const Model model(TfLiteModelCreateFromFile(arguments[1]));
  if (model == nullptr) fail("this is no model");
  const Interpreter interpreter = run(model.get(), delegate.get());
  char* error = nullptr;
  char* json = clgpu_delegate_explain_json(delegate.get(), &error);
  print("nodes", json, error);
  json = clgpu_delegate_profile_json(delegate.get(), &error);
  print("profile", json, error);
}
