// Inference on a camera's frames without a copy of a frame, for Android. The frames are
// AHardwareBuffers of an AImageReader: the app draws the camera's picture in the model's size into
// camera_window(), by OpenGL, Vulkan or as the target of a CameraX effect. The model takes one
// float image [1, height, width, 3] with values from -1 to 1.
//
// Three functions for the app's JNI code; camera_open() returns NULL if that does not work:
//   void* camera = camera_open("/data/.../model.tflite", "/data/.../cache/clgpu.sqlite",
//   on_result); ANativeWindow* window = camera_window(camera); camera_close(camera);
#include <clgpu_delegate.h>
#include <media/NdkImageReader.h>

#include <cstdint>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>

#include "tflite.hpp"

namespace {

using Delegate = std::unique_ptr<TfLiteDelegate, Deleter<clgpu_delegate_destroy>>;
using Memory = std::unique_ptr<clgpu_delegate_memory, Deleter<clgpu_delegate_release_memory>>;
using Reader = std::unique_ptr<AImageReader, Deleter<AImageReader_delete>>;
using Image = std::unique_ptr<AImage, Deleter<AImage_delete>>;
using Text = std::unique_ptr<char, Deleter<clgpu_delegate_free>>;

constexpr int kImages = 3;  // the reader's buffers, which take turns
constexpr clgpu_delegate_scaling kScaling{1 / 127.5F, -1};  // 0..255 becomes -1..1

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

// The result's bytes, in the reader's thread.
using OnResult = void (*)(const void* data, std::size_t bytes);

class Camera {
 public:
  Camera(const char* model, const char* cache, OnResult on_result) : on_result_(on_result) {
    model_.reset(TfLiteModelCreateFromFile(model));
    if (model_ == nullptr) refuse("this is no model");
    const clgpu_delegate_option options[] = {{"precision", "fp16"}, {"cache", cache}};
    char* error = nullptr;
    delegate_.reset(clgpu_delegate_create(options, 2, &error));
    const Text owned(error);
    if (delegate_ == nullptr) refuse(error != nullptr ? error : "out of memory");
    const Options made(TfLiteInterpreterOptionsCreate());
    TfLiteInterpreterOptionsAddDelegate(made.get(), delegate_.get());
    interpreter_.reset(TfLiteInterpreterCreate(model_.get(), made.get()));
    if (interpreter_ == nullptr) refuse("the delegate refuses the model");
    if (TfLiteInterpreterAllocateTensors(interpreter_.get()) != kTfLiteOk) refuse("no memory");
    input_ = TfLiteInterpreterGetInputTensor(interpreter_.get(), 0);
    if (TfLiteTensorNumDims(input_) != 4 || TfLiteTensorDim(input_, 3) != 3 ||
        TfLiteTensorType(input_) != kTfLiteFloat32)
      refuse("the model takes no float image [1, height, width, 3]");

    // The GPU draws the frames and samples them; the host reads them only where nothing is
    // imported.
    const std::uint64_t usage =
        AHARDWAREBUFFER_USAGE_GPU_SAMPLED_IMAGE | AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN;
    AImageReader* reader = nullptr;
    if (AImageReader_newWithUsage(TfLiteTensorDim(input_, 2), TfLiteTensorDim(input_, 1),
                                  AIMAGE_FORMAT_RGBA_8888, usage, kImages, &reader) != AMEDIA_OK)
      refuse("no AImageReader");
    reader_.reset(reader);
    AImageReader_ImageListener listener{
        this, [](void* self, AImageReader*) { static_cast<Camera*>(self)->take_frame(); }};
    AImageReader_setImageListener(reader, &listener);
  }

  // The reader, the last member, ends first.
  ~Camera() { AImageReader_setImageListener(reader_.get(), nullptr); }

  ANativeWindow* window() const {
    ANativeWindow* window = nullptr;
    AImageReader_getWindow(reader_.get(), &window);
    return window;
  }

 private:
  void take_frame() {
    AImage* acquired = nullptr;
    // Waits until the frame is drawn. Frames that came too fast are left out.
    if (AImageReader_acquireLatestImage(reader_.get(), &acquired) != AMEDIA_OK) return;
    const Image image(acquired);  // the reader gets it back when the inference has ended
    AHardwareBuffer* frame = nullptr;
    if (AImage_getHardwareBuffer(acquired, &frame) != AMEDIA_OK) return;
    if (!bind(frame)) copy(frame);
    if (TfLiteInterpreterInvoke(interpreter_.get()) != kTfLiteOk) return;
    const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter_.get(), 0);
    on_result_(TfLiteTensorData(output), TfLiteTensorByteSize(output));
  }

  // Whether the model reads the frame where it is.
  bool bind(AHardwareBuffer* frame) {
    if (!may_import_) return false;
    char* error = nullptr;
    Memory& memory = imported_[frame];  // the same few buffers come again and again
    if (memory == nullptr)
      memory.reset(clgpu_delegate_import_hardware_buffer(delegate_.get(), frame, &error));
    const int tensor = TfLiteInterpreterInputTensorIndices(interpreter_.get())[0];
    if (memory != nullptr &&
        clgpu_delegate_bind(delegate_.get(), tensor, memory.get(), &kScaling, &error) == 1)
      return true;
    const Text owned(error);
    std::fprintf(stderr, "frames are copied: %s\n", error != nullptr ? error : "out of memory");
    clgpu_delegate_bind(delegate_.get(), tensor, nullptr, nullptr, nullptr);
    may_import_ = false;
    return false;
  }

  // Where the driver imports nothing.
  void copy(AHardwareBuffer* frame) {
    AHardwareBuffer_Desc desc{};
    AHardwareBuffer_describe(frame, &desc);
    void* memory = nullptr;
    if (AHardwareBuffer_lock(frame, AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN, -1, nullptr, &memory) !=
        0)
      return;
    std::vector<float> pixels;
    for (std::uint32_t y = 0; y < desc.height; ++y) {
      const auto* row = static_cast<const std::uint8_t*>(memory) + std::size_t{4} * desc.stride * y;
      for (std::uint32_t x = 0; x < desc.width; ++x) {
        for (int channel = 0; channel < 3; ++channel)
          pixels.push_back(kScaling.scale * static_cast<float>(row[4 * x + channel]) +
                           kScaling.offset);
      }
    }
    AHardwareBuffer_unlock(frame, nullptr);
    TfLiteTensorCopyFromBuffer(input_, pixels.data(), pixels.size() * sizeof(float));
  }

  // Members end in the reverse order.
  const OnResult on_result_;
  Model model_;
  Delegate delegate_;
  Interpreter interpreter_;
  TfLiteTensor* input_ = nullptr;
  std::map<AHardwareBuffer*, Memory> imported_;  // each has a reference to its buffer
  bool may_import_ = true;
  Reader reader_;
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* camera_open(const char* model, const char* cache,
                                                         OnResult on_result) {
  try {
    return new Camera(model, cache, on_result);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "no camera: %s\n", error.what());
    return nullptr;
  }
}

__attribute__((visibility("default"))) ANativeWindow* camera_window(void* camera) {
  return static_cast<Camera*>(camera)->window();
}

__attribute__((visibility("default"))) void camera_close(void* camera) {
  delete static_cast<Camera*>(camera);
}

}  // extern "C"
