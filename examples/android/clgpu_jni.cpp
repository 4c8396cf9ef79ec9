// The native methods of ClgpuDelegate.kt.
#include <clgpu_delegate.h>
#include <jni.h>

#include <cstring>
#include <memory>
#include <string>
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

using Tell = char* (*)(TfLiteDelegate*, char**);

jbyteArray told(JNIEnv* env, jlong handle, jobjectArray error, Tell tell) {
  char* sentence = nullptr;
  const Text json(tell(delegate_of(handle), &sentence));
  set_error(env, error, Text(sentence));
  return json == nullptr ? nullptr : to_java(env, json.get());
}

}  // namespace

extern "C" {

JNIEXPORT jlong JNICALL Java_com_example_clgpu_ClgpuDelegate_create(JNIEnv* env, jobject /*self*/,
                                                                    jobjectArray keys,
                                                                    jobjectArray values,
                                                                    jobjectArray error) {
  std::vector<std::string> texts;
  const jsize count = env->GetArrayLength(keys);
  for (jsize i = 0; i < count; ++i) {
    texts.push_back(from_java(env, keys, i));
    texts.push_back(from_java(env, values, i));
  }
  std::vector<clgpu_delegate_option> options;
  for (std::size_t i = 0; i < texts.size(); i += 2)
    options.push_back({texts[i].c_str(), texts[i + 1].c_str()});
  char* sentence = nullptr;
  TfLiteDelegate* delegate = clgpu_delegate_create(options.data(), options.size(), &sentence);
  set_error(env, error, Text(sentence));
  return reinterpret_cast<jlong>(delegate);
}

JNIEXPORT void JNICALL Java_com_example_clgpu_ClgpuDelegate_destroy(JNIEnv* /*env*/,
                                                                    jobject /*self*/,
                                                                    jlong handle) {
  clgpu_delegate_destroy(delegate_of(handle));
}

JNIEXPORT jbyteArray JNICALL Java_com_example_clgpu_ClgpuDelegate_explain(JNIEnv* env,
                                                                          jobject /*self*/,
                                                                          jlong handle,
                                                                          jobjectArray error) {
  return told(env, handle, error, clgpu_delegate_explain_json);
}

JNIEXPORT jbyteArray JNICALL Java_com_example_clgpu_ClgpuDelegate_profile(JNIEnv* env,
                                                                          jobject /*self*/,
                                                                          jlong handle,
                                                                          jobjectArray error) {
  return told(env, handle, error, clgpu_delegate_profile_json);
}

}  // extern "C"
