// The native methods of ClgpuDelegate.java.
#include <clgpu_delegate.h>
#include <jni.h>

#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Free {
  void operator()(char* text) const { clgpu_delegate_free(text); }
};
using Text = std::unique_ptr<char, Free>;

TfLiteDelegate* delegate_of(jlong handle) { return reinterpret_cast<TfLiteDelegate*>(handle); }

// Null where Java has no memory; then an exception is pending.
jbyteArray to_java(JNIEnv* env, const char* text) {
  const auto size = static_cast<jsize>(std::strlen(text));
  jbyteArray bytes = env->NewByteArray(size);
  if (bytes != nullptr)
    env->SetByteArrayRegion(bytes, 0, size, reinterpret_cast<const jbyte*>(text));
  return bytes;
}

std::string from_java(JNIEnv* env, jobjectArray texts, jsize i) {
  const auto bytes = static_cast<jbyteArray>(env->GetObjectArrayElement(texts, i));
  std::string text(static_cast<std::size_t>(env->GetArrayLength(bytes)), '\0');
  env->GetByteArrayRegion(bytes, 0, static_cast<jsize>(text.size()),
                          reinterpret_cast<jbyte*>(text.data()));
  env->DeleteLocalRef(bytes);
  return text;
}

void set_error(JNIEnv* env, jobjectArray error, const Text& text) {
  jbyteArray bytes = text == nullptr ? nullptr : to_java(env, text.get());
  if (bytes != nullptr) env->SetObjectArrayElement(error, 0, bytes);
}

// The options of ClgpuDelegate.java: each key, followed by its value.
class Options {
 public:
  Options(JNIEnv* env, jobjectArray texts) {
    const jsize count = env->GetArrayLength(texts);
    for (jsize i = 0; i < count; ++i) texts_.push_back(from_java(env, texts, i));
    for (std::size_t i = 0; i < texts_.size(); i += 2)
      options_.push_back({texts_[i].c_str(), texts_[i + 1].c_str()});
  }
  const clgpu_delegate_option* data() const { return options_.data(); }
  std::size_t size() const { return options_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<clgpu_delegate_option> options_;
};

// Nothing where memory is lacking; then a Java exception is pending. A C++ exception that left a
// native method would end the process.
std::optional<Options> read_options(JNIEnv* env, jobjectArray texts) {
  try {
    return std::optional<Options>(std::in_place, env, texts);
  } catch (const std::bad_alloc&) {
    jclass type = env->FindClass("java/lang/OutOfMemoryError");
    if (type != nullptr) env->ThrowNew(type, "no memory for the options of a ClgpuDelegate");
    return std::nullopt;
  }
}

// `result` and `sentence` are what a function of the header has returned and put into `*error`.
jbyteArray told(JNIEnv* env, jobjectArray error, const Text& result, const Text& sentence) {
  set_error(env, error, sentence);
  return result == nullptr ? nullptr : to_java(env, result.get());
}

}  // namespace

extern "C" {

JNIEXPORT jlong JNICALL Java_clgpu_delegate_ClgpuDelegate_create(JNIEnv* env, jclass /*type*/,
                                                                 jobjectArray options,
                                                                 jobjectArray error) {
  const auto given = read_options(env, options);
  if (!given) return 0;
  char* sentence = nullptr;
  TfLiteDelegate* delegate = clgpu_delegate_create(given->data(), given->size(), &sentence);
  set_error(env, error, Text(sentence));
  return reinterpret_cast<jlong>(delegate);
}

JNIEXPORT jbyteArray JNICALL Java_clgpu_delegate_ClgpuDelegate_find(JNIEnv* env, jclass /*type*/,
                                                                    jobjectArray options,
                                                                    jobjectArray error) {
  const auto given = read_options(env, options);
  if (!given) return nullptr;
  char* sentence = nullptr;
  const Text name(clgpu_delegate_find_device(given->data(), given->size(), &sentence));
  return told(env, error, name, Text(sentence));
}

JNIEXPORT void JNICALL Java_clgpu_delegate_ClgpuDelegate_destroy(JNIEnv* /*env*/, jclass /*type*/,
                                                                 jlong handle) {
  clgpu_delegate_destroy(delegate_of(handle));
}

JNIEXPORT jbyteArray JNICALL Java_clgpu_delegate_ClgpuDelegate_explain(JNIEnv* env, jclass /*type*/,
                                                                       jlong handle,
                                                                       jobjectArray error) {
  char* sentence = nullptr;
  const Text json(clgpu_delegate_explain_json(delegate_of(handle), &sentence));
  return told(env, error, json, Text(sentence));
}

JNIEXPORT jbyteArray JNICALL Java_clgpu_delegate_ClgpuDelegate_profile(JNIEnv* env, jclass /*type*/,
                                                                       jlong handle,
                                                                       jobjectArray error) {
  char* sentence = nullptr;
  const Text json(clgpu_delegate_profile_json(delegate_of(handle), &sentence));
  return told(env, error, json, Text(sentence));
}

}  // extern "C"
