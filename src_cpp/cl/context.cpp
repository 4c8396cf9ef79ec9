#include "cl/context.hpp"

namespace clgpu::cl {
namespace {

std::string build_log(const Api& api, cl_program program, cl_device_id device) {
  std::size_t size = 0;
  api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0)
    api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  log.resize(std::char_traits<char>::length(log.c_str()));
  return log;
}

}  // namespace

Counters& counters() {
  thread_local Counters instance;
  return instance;
}

std::shared_ptr<Context> Context::of(const Device& device) {
  static auto* mutex = new std::mutex;
  static auto* contexts = new std::map<cl_device_id, std::shared_ptr<Context>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::shared_ptr<Context>& context = (*contexts)[device.id];
  if (context == nullptr) context = std::make_shared<Context>(device);
  return context;
}

Context::Context(const Device& device) : device_(device) {
  constexpr std::intptr_t kContextPlatform = 0x1084;
  const std::intptr_t properties[] = {kContextPlatform,
                                      reinterpret_cast<std::intptr_t>(device.platform), 0};
  cl_int code = CL_SUCCESS;
  const cl_context context =
      api().clCreateContext(properties, 1, &device.id, nullptr, nullptr, &code);
  check(code, "clCreateContext", device.info.name);
  context_ = ContextHandle(api(), context);
}

QueueHandle Context::create_queue(bool profiling) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = api().clCreateCommandQueue(
      context_.get(), device_.id, profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
  check(code, "clCreateCommandQueue", device_.info.name);
  ++counters().objects_created;
  return {api(), queue};
}

MemHandle Context::create_buffer(std::size_t bytes, const std::string& what) {
  cl_int code = CL_SUCCESS;
  const cl_mem buffer =
      api().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
  if (code != CL_SUCCESS)
    throw OpenCLError("clCreateBuffer", code, what + " of " + std::to_string(bytes) + " bytes");
  ++counters().objects_created;
  return {api(), buffer};
}

cl_program Context::program(const std::string& file, const std::string& source,
                            const std::string& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key = options + '\n' + source;
  if (const auto found = programs_.find(key); found != programs_.end()) return found->second.get();
  const char* text = source.c_str();
  const std::size_t length = source.size();
  cl_int code = CL_SUCCESS;
  ProgramHandle program(api(),
                        api().clCreateProgramWithSource(context_.get(), 1, &text, &length, &code));
  check(code, "clCreateProgramWithSource", file);
  code = api().clBuildProgram(program.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    throw BuildError(file, options,
                     error_name(code) + "\n" + build_log(api(), program.get(), device_.id));
  }
  ++counters().objects_created;
  ++counters().programs_built;
  return (programs_[key] = std::move(program)).get();
}

KernelHandle Context::create_kernel(const std::string& file, const std::string& source,
                                    const std::string& entry, const std::string& options) {
  const cl_program built = program(file, source, options);
  cl_int code = CL_SUCCESS;
  const cl_kernel kernel = api().clCreateKernel(built, entry.c_str(), &code);
  check(code, "clCreateKernel", file + ":" + entry);
  ++counters().objects_created;
  return {api(), kernel};
}

std::size_t Context::max_work_group_size(const KernelHandle& kernel) const {
  std::size_t size = 0;
  check(api().clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof size, &size, nullptr),
        "clGetKernelWorkGroupInfo");
  return size;
}

}  // namespace clgpu::cl
