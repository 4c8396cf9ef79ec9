// Memory of other interfaces as OpenCL objects: AHardwareBuffers, OpenGL's buffers and textures.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "cl/context.hpp"
#include "cl/hardware_buffer.hpp"

namespace clgpu::cl {

/// Without a copy: kernels read and write the memory of the application. Immutable.
class Imported {
 public:
  /// Takes a reference to `buffer` until it ends. Format BLOB becomes an OpenCL buffer, RGBA8888
  /// and RGBX8888 an image. Throws Error if the device or the buffer does not fit.
  static std::shared_ptr<const Imported> hardware_buffer(std::shared_ptr<Context> context,
                                                         AHardwareBuffer* buffer);
  /// Of a context that shares objects with OpenGL. The OpenGL object must outlive it. Throws Error.
  static std::shared_ptr<const Imported> gl_buffer(std::shared_ptr<Context> context,
                                                   unsigned buffer);
  /// A level of a two-dimensional texture with the format RGBA8.
  static std::shared_ptr<const Imported> gl_texture(std::shared_ptr<Context> context,
                                                    unsigned target, int level, unsigned texture);

  ~Imported();
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }
  cl_mem object() const { return object_.get(); }
  /// For messages: "the AHardwareBuffer".
  const std::string& what() const { return what_; }
  bool is_image() const { return is_image_; }
  std::size_t bytes() const { return bytes_; }    ///< of a buffer
  std::size_t width() const { return width_; }    ///< of an image, in pixels
  std::size_t height() const { return height_; }  ///< of an image, in pixels
  bool has_alpha() const { return has_alpha_; }   ///< of an image

  /// OpenCL may use it from here on in `queue`, until release() there. Does nothing where the
  /// extension needs nothing. Throws OpenCLError.
  void acquire(const QueueHandle& queue) const;
  void release(const QueueHandle& queue) const;

 private:
  Imported(std::shared_ptr<Context> context, std::string what)
      : context_(std::move(context)), what_(std::move(what)) {}
  void import(AHardwareBuffer* buffer);
  cl_mem import_arm(AHardwareBuffer* buffer, cl_int& code) const;
  cl_mem import_qcom(AHardwareBuffer* buffer, const HardwareBufferDesc& desc, cl_int& code) const;
  void describe_image();

  std::shared_ptr<Context> context_;
  std::string what_;
  AHardwareBuffer* kept_ = nullptr;
  MemHandle object_;  // goes before what `kept_` refers to
  bool is_image_ = false, is_gl_ = false, has_alpha_ = true;
  std::size_t bytes_ = 0, width_ = 0, height_ = 0;
};

}  // namespace clgpu::cl
