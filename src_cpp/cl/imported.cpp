#include "cl/imported.hpp"

#include <utility>

#include "base/error.hpp"

namespace clgpu::cl {
namespace {

constexpr const char* kArm = "cl_arm_import_memory_android_hardware_buffer";
constexpr const char* kQualcomm = "cl_qcom_android_ahardwarebuffer_host_ptr";

// A function of an extension that the device lists. Loaders that export it may lack it behind.
template <class Function>
Function needed(const Context& context, Function exported, const char* name) {
  if (exported != nullptr) return exported;
  const Api& api = context.api();
  void* const found =
      api.clGetExtensionFunctionAddressForPlatform == nullptr
          ? nullptr
          : api.clGetExtensionFunctionAddressForPlatform(context.device().platform, name);
  if (found == nullptr) {
    throw DeviceError("the driver of " + context.device().info.name + " lacks the function " +
                      name + " of an extension that it lists; copy the contents instead");
  }
  return reinterpret_cast<Function>(found);
}

void need_gl(const Context& context) {
  if (!context.shares_gl()) {
    throw Error(
        "the delegate does not share objects with OpenGL; create it by "
        "clgpu_delegate_create_with_gl");
  }
}

[[noreturn]] void refuse(const std::string& what, const std::string& call, cl_int code,
                         const std::string& allowed) {
  throw Error(what + " cannot be imported: the driver answers " + error_name(code) + " to " + call +
              "; " + allowed);
}

}  // namespace

Imported::~Imported() {
  object_ = {};
  if (kept_ != nullptr && !is_forked_child()) hardware_buffers().release(kept_);
}

std::shared_ptr<const Imported> Imported::hardware_buffer(std::shared_ptr<Context> context,
                                                          AHardwareBuffer* buffer) {
  if (buffer == nullptr) throw Error("the AHardwareBuffer is null");
  std::shared_ptr<Imported> made(new Imported(std::move(context), "the AHardwareBuffer"));
  made->import(buffer);
  return made;
}

void Imported::import(AHardwareBuffer* buffer) {
  const DeviceInfo& info = context_->device().info;
  const bool is_arm = info.has_extension(kArm);
  if (!is_arm && !info.has_extension(kQualcomm)) {
    throw DeviceError(info.name + " cannot import AHardwareBuffers: its driver lists neither " +
                      kArm + " nor " + kQualcomm +
                      "; lock the buffer and copy between it and the tensor");
  }
  const HardwareBufferApi& api = hardware_buffers();
  HardwareBufferDesc desc{};
  api.describe(buffer, &desc);
  const bool is_known =
      desc.format == kBlob || desc.format == kRgba8888 || desc.format == kRgbx8888;
  if (!is_known || desc.layers != 1) {
    throw Error("the AHardwareBuffer has the format " + std::to_string(desc.format) + " and " +
                std::to_string(desc.layers) +
                " layers; allowed are one layer and the formats BLOB (33), R8G8B8A8_UNORM (1) and "
                "R8G8B8X8_UNORM (2)");
  }
  is_image_ = desc.format != kBlob;
  has_alpha_ = desc.format != kRgbx8888;
  if (is_image_ && info.image_buffer_texels == 0) {
    throw DeviceError(info.name +
                      " has no images: only AHardwareBuffers of the format BLOB can be "
                      "imported");
  }
  api.acquire(buffer);
  kept_ = buffer;
  cl_int code = CL_SUCCESS;
  object_ = {context_->api(), is_arm ? import_arm(buffer, code) : import_qcom(buffer, desc, code)};
  if (code != CL_SUCCESS || !object_) {
    refuse(what_,
           is_arm      ? "clImportMemoryARM"
           : is_image_ ? "clCreateImage"
                       : "clCreateBuffer",
           code,
           is_image_ ? "it must be allocated with the usage GPU_SAMPLED_IMAGE (and "
                       "GPU_COLOR_OUTPUT if it receives an output)"
                     : "it must be allocated with the usage GPU_DATA_BUFFER");
  }
  ++counters().objects_created;
  if (is_image_) {
    width_ = desc.width;
    height_ = desc.height;
    return;
  }
  bytes_ = context_->bytes_of(object_.get());
  if (bytes_ == 0) bytes_ = desc.width;
}

// The object has the kind that the format says: a buffer, or an image of two dimensions.
cl_mem Imported::import_arm(AHardwareBuffer* buffer, cl_int& code) const {
  const std::intptr_t properties[] = {CL_IMPORT_TYPE_ARM,
                                      CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM, 0};
  const auto call = needed(*context_, context_->api().clImportMemoryARM, "clImportMemoryARM");
  return call(context_->handle(), CL_MEM_READ_WRITE, properties, buffer,
              CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM, &code);
}

cl_mem Imported::import_qcom(AHardwareBuffer* buffer, const HardwareBufferDesc& desc,
                             cl_int& code) const {
  constexpr cl_bitfield kFlags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR | CL_MEM_EXT_HOST_PTR_QCOM;
  const bool is_coherent = context_->device().info.has_extension("cl_qcom_ext_host_ptr_iocoherent");
  cl_mem_ahardwarebuffer_host_ptr host{
      CL_MEM_ANDROID_AHARDWAREBUFFER_HOST_PTR_QCOM,
      is_coherent ? CL_MEM_HOST_IOCOHERENT_QCOM : CL_MEM_HOST_WRITEBACK_QCOM, buffer};
  const Api& api = context_->api();
  if (!is_image_) return api.clCreateBuffer(context_->handle(), kFlags, desc.width, &host, &code);
  const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
  cl_image_desc image{};
  image.type = CL_MEM_OBJECT_IMAGE2D;
  image.width = desc.width;
  image.height = desc.height;
  image.row_pitch = std::size_t{4} * desc.stride;
  return api.clCreateImage(context_->handle(), kFlags, &format, &image, &host, &code);
}

std::shared_ptr<const Imported> Imported::gl_buffer(std::shared_ptr<Context> context,
                                                    unsigned buffer) {
  need_gl(*context);
  std::shared_ptr<Imported> made(
      new Imported(std::move(context), "the OpenGL buffer " + std::to_string(buffer)));
  const Context& in = *made->context_;
  const auto call = needed(in, in.api().clCreateFromGLBuffer, "clCreateFromGLBuffer");
  cl_int code = CL_SUCCESS;
  made->object_ = {in.api(), call(in.handle(), CL_MEM_READ_WRITE, buffer, &code)};
  if (code != CL_SUCCESS || !made->object_) {
    refuse(made->what_, "clCreateFromGLBuffer", code,
           "it must be a buffer with memory (glBufferData) of the OpenGL context that the delegate "
           "shares, and that context must be current");
  }
  ++counters().objects_created;
  made->is_gl_ = true;
  made->bytes_ = in.bytes_of(made->object_.get());
  return made;
}

std::shared_ptr<const Imported> Imported::gl_texture(std::shared_ptr<Context> context,
                                                     unsigned target, int level, unsigned texture) {
  need_gl(*context);
  if (context->device().info.image_buffer_texels == 0)
    throw DeviceError(context->device().info.name + " has no images, so it takes no textures");
  std::shared_ptr<Imported> made(
      new Imported(std::move(context), "the OpenGL texture " + std::to_string(texture)));
  const Context& in = *made->context_;
  const auto call = needed(in, in.api().clCreateFromGLTexture, "clCreateFromGLTexture");
  cl_int code = CL_SUCCESS;
  made->object_ = {in.api(), call(in.handle(), CL_MEM_READ_WRITE, target, level, texture, &code)};
  if (code != CL_SUCCESS || !made->object_) {
    refuse(
        made->what_, "clCreateFromGLTexture", code,
        "it must be a complete GL_TEXTURE_2D of the OpenGL context that the delegate shares, and "
        "that context must be current; GL_TEXTURE_EXTERNAL_OES must be drawn into such a texture "
        "first");
  }
  ++counters().objects_created;
  made->is_gl_ = made->is_image_ = true;
  made->describe_image();
  return made;
}

void Imported::describe_image() {
  const Api& api = context_->api();
  const auto ask = [&](cl_uint what, auto answer) {
    if (api.clGetImageInfo == nullptr)
      throw DeviceError("the driver of " + context_->device().info.name +
                        " lacks the function clGetImageInfo");
    check(api.clGetImageInfo(object_.get(), what, sizeof answer, &answer, nullptr),
          "clGetImageInfo", what_);
    return answer;
  };
  const auto format = ask(CL_IMAGE_FORMAT, cl_image_format{});
  if (format.order != CL_RGBA || format.type != CL_UNORM_INT8) {
    throw Error(what_ + " has another format than RGBA8 (channel order " +
                std::to_string(format.order) + ", type " + std::to_string(format.type) +
                " in OpenCL); create it with the internal format GL_RGBA8");
  }
  width_ = ask(CL_IMAGE_WIDTH, std::size_t{});
  height_ = ask(CL_IMAGE_HEIGHT, std::size_t{});
}

void Imported::acquire(const QueueHandle& queue) const {
  if (!is_gl_) return;
  const auto call =
      needed(*context_, context_->api().clEnqueueAcquireGLObjects, "clEnqueueAcquireGLObjects");
  const cl_mem object = object_.get();
  check(call(queue.get(), 1, &object, 0, nullptr, nullptr), "clEnqueueAcquireGLObjects", what_);
}

void Imported::release(const QueueHandle& queue) const {
  if (!is_gl_) return;
  const auto call =
      needed(*context_, context_->api().clEnqueueReleaseGLObjects, "clEnqueueReleaseGLObjects");
  const cl_mem object = object_.get();
  check(call(queue.get(), 1, &object, 0, nullptr, nullptr), "clEnqueueReleaseGLObjects", what_);
}

}  // namespace clgpu::cl
