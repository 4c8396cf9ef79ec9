// camera_frame FOLDER MODEL: from a camera's frame in OpenCL memory to a result, with LiteRT's
// CompiledModel and without a copy of the image on the host. FOLDER has libLiteRtGpuAccelerator.so,
// MODEL takes one float image [1, height, width, 3].
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

#include "litert/c/litert_compiled_model.h"
#include "litert/c/litert_environment.h"
#include "litert/c/litert_model.h"
#include "litert/c/litert_options.h"
#include "litert/c/litert_tensor_buffer.h"

namespace {

constexpr int kFrameWidth = 64, kFrameHeight = 48;

// What stands between camera and model: the nearest pixel of the frame, from 0 to 1.
const char* const kScale = R"(
kernel void scale(global const uchar4* frame, global float* image, int frame_width,
                  int frame_height) {
  const int x = get_global_id(0), y = get_global_id(1);
  const int width = get_global_size(0), height = get_global_size(1);
  const uchar4 pixel = frame[y * frame_height / height * frame_width + x * frame_width / width];
  vstore3(convert_float3(pixel.xyz) / 255.0f, y * width + x, image);
})";

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s has failed with %d\n", what, status);
  std::exit(1);
}

template <auto Destroy>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter<Destroy>>;

using Context = Owned<cl_context, clReleaseContext>;
using Queue = Owned<cl_command_queue, clReleaseCommandQueue>;
using Memory = Owned<cl_mem, clReleaseMemObject>;
using Program = Owned<cl_program, clReleaseProgram>;
using Kernel = Owned<cl_kernel, clReleaseKernel>;
using Environment = Owned<LiteRtEnvironment, LiteRtDestroyEnvironment>;
using Model = Owned<LiteRtModel, LiteRtDestroyModel>;
using Options = Owned<LiteRtOptions, LiteRtDestroyOptions>;
using Compiled = Owned<LiteRtCompiledModel, LiteRtDestroyCompiledModel>;
using Buffer = Owned<LiteRtTensorBuffer, LiteRtDestroyTensorBuffer>;

// The application's OpenCL objects.
struct OpenCl {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  Context context;
  Queue queue;

  OpenCl() {
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int code = 0;
    context.reset(clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code));
    check(code, "clCreateContext");
    queue.reset(clCreateCommandQueue(context.get(), device, 0, &code));
    check(code, "clCreateCommandQueue");
  }

  Memory buffer(std::size_t bytes, void* contents = nullptr) const {
    cl_int code = 0;
    const cl_bitfield flags = CL_MEM_READ_WRITE | (contents != nullptr ? CL_MEM_COPY_HOST_PTR : 0);
    Memory made(clCreateBuffer(context.get(), flags, bytes, contents, &code));
    check(code, "clCreateBuffer");
    return made;
  }

  // Writes the frame, scaled to the model's size, into the model's input.
  void scale(const Memory& frame, const Memory& image, int width, int height) const {
    cl_int code = 0;
    const char* text = kScale;
    const Program program(clCreateProgramWithSource(context.get(), 1, &text, nullptr, &code));
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program.get(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
    const Kernel kernel(clCreateKernel(program.get(), "scale", &code));
    check(code, "clCreateKernel");
    const cl_mem from = frame.get(), to = image.get();
    check(clSetKernelArg(kernel.get(), 0, sizeof from, &from), "clSetKernelArg");
    check(clSetKernelArg(kernel.get(), 1, sizeof to, &to), "clSetKernelArg");
    check(clSetKernelArg(kernel.get(), 2, sizeof kFrameWidth, &kFrameWidth), "clSetKernelArg");
    check(clSetKernelArg(kernel.get(), 3, sizeof kFrameHeight, &kFrameHeight), "clSetKernelArg");
    const std::size_t size[] = {static_cast<std::size_t>(width), static_cast<std::size_t>(height)};
    check(clEnqueueNDRangeKernel(queue.get(), kernel.get(), 2, nullptr, size, nullptr, 0, nullptr,
                                 nullptr),
          "clEnqueueNDRangeKernel");
    check(clFinish(queue.get()), "clFinish");  // the model has a queue of its own
  }
};

// In a camera application the driver of the camera fills it.
Memory some_frame(const OpenCl& opencl) {
  std::vector<cl_uchar> pixels;
  for (int y = 0; y < kFrameHeight; ++y) {
    for (int x = 0; x < kFrameWidth; ++x) {
      for (const int value : {4 * x, 5 * y, x + y, 255})
        pixels.push_back(static_cast<cl_uchar>(value));
    }
  }
  return opencl.buffer(pixels.size(), pixels.data());
}

LiteRtEnvOption object(LiteRtEnvOptionTag tag, const void* object) {
  LiteRtEnvOption option{};
  option.tag = tag;
  option.value.type = kLiteRtAnyTypeInt;
  option.value.int_value = reinterpret_cast<std::int64_t>(object);
  return option;
}

// An environment that works in the application's OpenCL context.
Environment make_environment(const OpenCl& opencl, const char* folder) {
  LiteRtEnvOption library{};
  library.tag = kLiteRtEnvOptionTagRuntimeLibraryDir;
  library.value.type = kLiteRtAnyTypeString;
  library.value.str_value = folder;
  LiteRtEnvironment made = nullptr;
  check(LiteRtCreateEnvironment(1, &library, &made), "LiteRtCreateEnvironment");
  Environment environment(made);
  const LiteRtEnvOption objects[] = {
      object(kLiteRtEnvOptionTagOpenClDeviceId, opencl.device),
      object(kLiteRtEnvOptionTagOpenClPlatformId, opencl.platform),
      object(kLiteRtEnvOptionTagOpenClContext, opencl.context.get()),
  };
  check(LiteRtAddEnvironmentOptions(made, 3, objects, true), "LiteRtAddEnvironmentOptions");
  return environment;
}

std::size_t elements(const LiteRtLayout& layout) {
  std::size_t count = 1;
  for (unsigned i = 0; i < layout.rank; ++i)
    count *= static_cast<std::size_t>(layout.dimensions[i]);
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: camera_frame FOLDER MODEL\n");
    return 1;
  }
  const OpenCl opencl;
  const Environment environment = make_environment(opencl, arguments[1]);
  LiteRtModel loaded = nullptr;
  check(LiteRtCreateModelFromFile(environment.get(), arguments[2], &loaded), "loading the model");
  const Model model(loaded);
  LiteRtOptions made_options = nullptr;
  check(LiteRtCreateOptions(&made_options), "LiteRtCreateOptions");
  const Options options(made_options);
  check(LiteRtSetOptionsHardwareAccelerators(made_options, kLiteRtHwAcceleratorGpu), "the options");
  LiteRtCompiledModel made = nullptr;
  check(LiteRtCreateCompiledModel(environment.get(), loaded, made_options, &made), "compiling");
  const Compiled compiled(made);

  LiteRtRankedTensorType input{kLiteRtElementTypeFloat32, {}};
  LiteRtRankedTensorType output{kLiteRtElementTypeFloat32, {}};
  check(LiteRtGetCompiledModelInputTensorLayout(made, 0, 0, &input.layout), "the input's shape");
  check(LiteRtGetCompiledModelOutputTensorLayouts(made, 0, 1, &output.layout, false),
        "the output's shape");
  if (input.layout.rank != 4 || input.layout.dimensions[3] != 3) {
    std::fprintf(stderr, "the model takes no image [1, height, width, 3]\n");
    return 1;
  }

  // The model's input is memory of the application, its output memory of LiteRT's.
  const std::size_t input_bytes = sizeof(float) * elements(input.layout);
  const std::size_t output_bytes = sizeof(float) * elements(output.layout);
  const Memory image = opencl.buffer(input_bytes);
  LiteRtTensorBuffer x = nullptr, y = nullptr;
  check(LiteRtCreateTensorBufferFromOpenClMemory(environment.get(), &input,
                                                 kLiteRtTensorBufferTypeOpenClBufferPacked,
                                                 image.get(), input_bytes, nullptr, &x),
        "the input's buffer");
  const Buffer owned_x(x);
  check(
      LiteRtCreateManagedTensorBuffer(environment.get(), kLiteRtTensorBufferTypeOpenClBufferPacked,
                                      &output, output_bytes, &y),
      "the output's buffer");
  const Buffer owned_y(y);

  const Memory frame = some_frame(opencl);
  opencl.scale(frame, image, input.layout.dimensions[2], input.layout.dimensions[1]);
  check(LiteRtRunCompiledModel(made, 0, 1, &x, 1, &y), "the inference");

  void* data = nullptr;  // only the result comes to the host
  check(LiteRtLockTensorBuffer(y, &data, kLiteRtTensorBufferLockModeRead), "reading the result");
  for (std::size_t i = 0; i < elements(output.layout); ++i)
    std::printf("%.6g\n", static_cast<double>(static_cast<const float*>(data)[i]));
  check(LiteRtUnlockTensorBuffer(y), "reading the result");
}
