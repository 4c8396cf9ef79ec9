#include "cl/context.hpp"

#include <algorithm>
#include <sstream>

#include "base/sha256.hpp"
#include "cl/extensions.hpp"

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

// In front of a variant that was launched, among those of a program.
constexpr const char* kLaunched = "launched ";

}  // namespace

Counters& counters() {
  thread_local Counters instance;
  return instance;
}

std::shared_ptr<Context> Context::of(const Device& device) { return adopt(device, nullptr); }

std::shared_ptr<Context> Context::adopt(const Device& device, cl_context handle) {
  static auto* mutex = new std::mutex;
  static auto* contexts = new std::map<cl_device_id, std::shared_ptr<Context>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto known = contexts->find(device.id);
  if (known != contexts->end()) return known->second;
  const auto context = std::make_shared<Context>(device, handle);
  // An application's context may be that of other devices.
  if (handle != nullptr) context->create_queue(false);
  return contexts->emplace(device.id, context).first->second;
}

Context::Context(const Device& device, cl_context handle) : device_(device) {
  if (handle != nullptr && api().clRetainContext != nullptr) {
    check(api().clRetainContext(handle), "clRetainContext", device.info.name);
    context_ = {api(), handle};
  } else {
    constexpr std::intptr_t kContextPlatform = 0x1084;
    const std::intptr_t properties[] = {kContextPlatform,
                                        reinterpret_cast<std::intptr_t>(device.platform), 0};
    cl_int code = CL_SUCCESS;
    context_ = {api(), api().clCreateContext(properties, 1, &device.id, nullptr, nullptr, &code)};
    check(code, "clCreateContext", device.info.name);
  }
  // The number is the version of our own format of the stored data.
  const DeviceInfo& info = device.info;
  for (const std::string& fact : {std::string("1"), info.name, info.vendor, info.driver_version,
                                  info.opencl_version, info.platform, info.platform_version})
    identity_ += fact + "\n";
}

QueueHandle Context::create_queue(bool profiling) {
  return create_queue_with(profiling ? CL_QUEUE_PROFILING_ENABLE : 0);
}

// Adreno's driver takes no other property beside this one.
QueueHandle Context::create_recordable_queue() {
  return create_queue_with(CL_QUEUE_RECORDABLE_QCOM);
}

QueueHandle Context::create_queue_with(cl_bitfield properties) {
  cl_int code = CL_SUCCESS;
  QueueHandle queue(api(),
                    api().clCreateCommandQueue(context_.get(), device_.id, properties, &code));
  check(code, "clCreateCommandQueue", device_.info.name);
  ++counters().objects_created;
  return queue;
}

Memory Context::create_buffer(std::size_t bytes, const std::string& what, bool host_visible) {
  const cl_bitfield flags = CL_MEM_READ_WRITE | (host_visible ? CL_MEM_ALLOC_HOST_PTR : 0);
  cl_int code = CL_SUCCESS;
  MemHandle buffer(api(), api().clCreateBuffer(context_.get(), flags, bytes, nullptr, &code));
  if (code != CL_SUCCESS)
    throw OpenCLError("clCreateBuffer", code, what + " of " + std::to_string(bytes) + " bytes");
  ++counters().objects_created;
  return {std::move(buffer), usage_, bytes};
}

MemHandle Context::create_sub_buffer(const Memory& buffer, std::size_t offset, std::size_t bytes,
                                     const std::string& what) {
  const cl_buffer_region region{offset, bytes};
  cl_int code = CL_SUCCESS;
  MemHandle part(api(), api().clCreateSubBuffer(buffer.get(), CL_MEM_READ_WRITE,
                                                CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
  check(code, "clCreateSubBuffer", what);
  ++counters().objects_created;
  return part;
}

MemHandle Context::create_image(cl_mem buffer, DType storage, std::int64_t texels,
                                const std::string& what) {
  CLGPU_CHECK(storage == DType::kF32 || storage == DType::kF16);
  const cl_image_format format{CL_RGBA, storage == DType::kF16 ? CL_HALF_FLOAT : CL_FLOAT};
  cl_image_desc desc{};
  desc.type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  desc.width = static_cast<std::size_t>(texels);
  desc.object = buffer;
  cl_int code = CL_SUCCESS;
  MemHandle image(
      api(), api().clCreateImage(context_.get(), CL_MEM_READ_ONLY, &format, &desc, nullptr, &code));
  if (code != CL_SUCCESS)
    throw OpenCLError("clCreateImage", code, what + " of " + std::to_string(texels) + " texels");
  ++counters().objects_created;
  return image;
}

MemHandle Context::create_pinned(std::size_t bytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = api().clCreateBuffer(
      context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &code);
  if (code != CL_SUCCESS) return {};
  ++counters().objects_created;
  return {api(), buffer};
}

MemHandle Context::wrap_memory(void* data, std::size_t bytes, const std::string& what) {
  cl_int code = CL_SUCCESS;
  MemHandle buffer(
      api(), api().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                  data, &code));
  check(code, "clCreateBuffer", what);
  ++counters().objects_created;
  return buffer;
}

MemHandle Context::retain(cl_mem buffer) {
  check(api().clRetainMemObject(buffer), "clRetainMemObject", "a buffer of the application");
  return {api(), buffer};
}

std::size_t Context::bytes_of(cl_mem buffer) const {
  if (api().clGetMemObjectInfo == nullptr || api().clRetainMemObject == nullptr) return 0;
  const auto ask = [&](cl_uint what, auto answer) {
    const cl_int code = api().clGetMemObjectInfo(buffer, what, sizeof answer, &answer, nullptr);
    return code == CL_SUCCESS ? answer : decltype(answer){};
  };
  if (ask(CL_MEM_CONTEXT, cl_context{}) != context_.get()) return 0;
  if (ask(CL_MEM_TYPE, cl_uint{}) != CL_MEM_OBJECT_BUFFER) return 0;
  if ((ask(CL_MEM_FLAGS, cl_bitfield{}) & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) != 0) return 0;
  return ask(CL_MEM_SIZE, std::size_t{});
}

bool Context::takes_images(cl_mem buffer) const {
  if (device_.info.sub_buffer_images || api().clGetMemObjectInfo == nullptr) return true;
  cl_mem whole = nullptr;
  const cl_int code = api().clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole,
                                               static_cast<void*>(&whole), nullptr);
  return code == CL_SUCCESS && whole == nullptr;
}

bool Context::has(cl_event event) const {
  cl_context context = nullptr;
  return api().clGetEventInfo != nullptr &&
         api().clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, static_cast<void*>(&context),
                              nullptr) == CL_SUCCESS &&
         context == context_.get();
}

std::shared_ptr<Context::Program> Context::program(const std::string& key,
                                                   const ProgramSource& source, store::Store& store,
                                                   store::Attempt& attempt) {
  std::shared_ptr<Program>& known = programs_[key];
  if (known == nullptr) known = std::make_shared<Program>();
  const std::shared_ptr<Program> program = known;
  program->last_use = ++uses_;
  if (program->handle) return program;
  program->label = source.file + " on " + device_.info.name + " (" + device_.info.platform + ")";
  load(*program, key, source.options, store);
  if (!program->handle) {
    if (store.is_on()) {
      attempt = store::Attempt(
          store,
          risk(key, source, "the compilation of " + source.file + " with " + source.options));
    }
    compile(*program, source);
  }
  drop_idle();
  return program;
}

// A process that tries many kernels, or opens many models in turn, would otherwise keep all
// programs: some drivers take a megabyte for each.
void Context::drop_idle() {
  constexpr std::size_t kKept = 128;  // more than the largest networks have
  while (programs_.size() > kKept) {
    auto oldest = programs_.end();
    for (auto it = programs_.begin(); it != programs_.end(); ++it) {
      const bool is_idle = it->second.use_count() == 1;
      if (is_idle && (oldest == programs_.end() || it->second->last_use < oldest->second->last_use))
        oldest = it;
    }
    if (oldest == programs_.end()) return;
    programs_.erase(oldest);
  }
}

// Creates the program from the store's binary. Leaves it empty if there is no binary or the driver
// rejects it: permanently, or because the machine is short of a resource.
void Context::load(Program& program, const std::string& key, const std::string& options,
                   store::Store& store) {
  const std::optional<std::string> row = store.get(store::kProgram, key);
  if (!row) return;
  const std::size_t end = std::min(row->find('\0'), row->size() - 1);
  const auto* bytes = reinterpret_cast<const unsigned char*>(row->data()) + end + 1;
  const std::size_t size = row->size() - end - 1;
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  ProgramHandle made(api(), api().clCreateProgramWithBinary(context_.get(), 1, &device_.id, &size,
                                                            &bytes, &status, &code));
  if (code == CL_SUCCESS) code = status;
  if (code == CL_SUCCESS)
    code = api().clBuildProgram(made.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    if (!may_pass(code)) reject(key, error_name(code), store);
    return;
  }
  ++counters().objects_created;
  ++counters().programs_loaded;
  std::set<std::string> stored;
  std::istringstream variants(row->substr(0, end));
  for (std::string variant; std::getline(variants, variant);) stored.insert(variant);
  program.stored[store.path()].swap(stored);
  program.handle = std::move(made);
  program.is_loaded = true;
}

// Programs of one source have much in common, whatever their options.
store::Risk Context::risk(const std::string& key, const ProgramSource& source,
                          const std::string& what) const {
  return {sha256_hex(key), sha256_hex(identity_ + source.text), what + " on " + device_.info.name};
}

void Context::reject(const std::string& key, const std::string& why, store::Store& store) {
  store.warn("the driver of " + device_.info.name + " rejects a program of the cache " +
             store.path() + " (" + why + "); it is compiled again");
  store.erase(store::kProgram, key);
}

void Context::compile(Program& program, const ProgramSource& source) {
  const char* text = source.text.c_str();
  const std::size_t length = source.text.size();
  const char* options = source.options.c_str();
  cl_int code = CL_SUCCESS;
  ProgramHandle made(api(),
                     api().clCreateProgramWithSource(context_.get(), 1, &text, &length, &code));
  check(code, "clCreateProgramWithSource", source.file);
  const auto build = [&] {
    return api().clBuildProgram(made.get(), 1, &device_.id, options, nullptr, nullptr);
  };
  code = build();
  if (may_pass(code)) code = build();
  if (code != CL_SUCCESS) {
    throw BuildError(source.file, source.options, code, build_log(api(), made.get(), device_.id));
  }
  ++counters().objects_created;
  ++counters().programs_built;
  program.handle = std::move(made);
}

namespace {
std::mutex names_mutex;
std::set<std::string>& names() {
  static auto* all = new std::set<std::string>;  // contexts outlive static objects
  return *all;
}

struct Recorded {
  bool is_on = false;
  std::map<std::pair<std::string, std::string>, KernelFacts> facts;
};
Recorded& recorded() {
  static auto* all = new Recorded;
  return *all;
}

bool is_recording() {
  const std::lock_guard<std::mutex> lock(names_mutex);
  return recorded().is_on;
}

void record(const std::string& entry, const std::string& options, const KernelFacts& facts) {
  const std::lock_guard<std::mutex> lock(names_mutex);
  recorded().facts[{entry, options}] = facts;
}
}  // namespace

void record_kernels() {
  const std::lock_guard<std::mutex> lock(names_mutex);
  recorded().is_on = true;
}

std::map<std::pair<std::string, std::string>, KernelFacts> kernel_facts() {
  const std::lock_guard<std::mutex> lock(names_mutex);
  return recorded().facts;
}

std::set<std::string> kernel_names() {
  const std::lock_guard<std::mutex> lock(names_mutex);
  return names();
}

KernelHandle Context::create_kernel(const ProgramSource& source, const std::string& entry,
                                    const std::string& variant, store::Store& store, Programs* used,
                                    std::optional<FirstLaunch>* first_launch) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string key =
      hex(Sha256().update(identity_).update(source.options + "\n").update(source.text).digest());
  cl_int code = CL_SUCCESS;
  std::shared_ptr<Program> made;
  store::Attempt attempt;  // until the kernel is there: some drivers compile when it is created
  try {
    made = program(key, source, store, attempt);
  } catch (const BuildError&) {
    if (is_recording()) record(entry, source.options, {});
    throw;
  }
  const auto create = [&] {
    return KernelHandle(api(), api().clCreateKernel(made->handle.get(), entry.c_str(), &code));
  };
  KernelHandle handle = create();
  if (code != CL_SUCCESS && made->is_loaded && !may_pass(code)) {
    reject(key, error_name(code), store);
    programs_.erase(key);
    made = program(key, source, store, attempt);
    handle = create();
  }
  if (code != CL_SUCCESS) throw OpenCLError("clCreateKernel", code, source.file + ":" + entry);
  ++counters().objects_created;
  attempt = {};
  const std::string use = entry + " " + variant;
  const std::string mark = kLaunched + use;
  const bool was_launched =
      made->stored[store.path()].count(mark) != 0 || made->variants.count(mark) != 0;
  if (first_launch != nullptr && store.is_on() && !was_launched) {
    *first_launch = FirstLaunch{
        risk(key + use, source, "the first launch of " + source.file + ":" + use), key, mark};
    store::refuse_if_ended(store, (*first_launch)->risk);
  }
  made->variants.insert(use);
  if (used != nullptr) used->insert_or_assign(key, made);
  if (is_recording())
    record(entry, source.options, {true, max_work_group_size(handle), local_bytes(handle)});
  const std::lock_guard<std::mutex> names_lock(names_mutex);
  names().insert(entry);
  return handle;
}

void Context::has_launched(const FirstLaunch& first) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = programs_.find(first.program);
  if (found != programs_.end()) found->second->variants.insert(first.mark);
}

void Context::save_programs(const Programs& used, store::Store& store) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!store.is_on()) return;
  if (store.is_for_programs() && device_.info.compiles_at_launch) return;
  for (const auto& [key, program] : used) {
    std::set<std::string>& stored = program->stored[store.path()];
    if (std::includes(stored.begin(), stored.end(), program->variants.begin(),
                      program->variants.end()))
      continue;
    std::set<std::string> all = stored;
    all.insert(program->variants.begin(), program->variants.end());
    const std::string bytes = binary(program->handle.get());
    if (!bytes.empty()) {
      std::string row;
      for (const std::string& variant : all) row += variant + "\n";
      store.put(store::kProgram, key, row + '\0' + bytes, program->label);
    }
    stored.swap(all);
  }
}

void Context::forget_programs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  programs_.clear();  // executors keep the programs that they use
}

// Empty if the driver does not give out its binaries.
std::string Context::binary(cl_program program) const {
  std::size_t size = 0;
  if (api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) !=
      CL_SUCCESS)
    return {};
  std::string bytes(size, '\0');
  auto* data = reinterpret_cast<unsigned char*>(bytes.data());
  if (size == 0 || api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data,
                                          nullptr) != CL_SUCCESS)
    return {};
  return bytes;
}

std::uint64_t Context::local_bytes(const KernelHandle& kernel) const {
  cl_ulong bytes = 0;
  const cl_int code = api().clGetKernelWorkGroupInfo(
      kernel.get(), device_.id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  return code == CL_SUCCESS ? bytes : 0;
}

std::size_t Context::max_work_group_size(const KernelHandle& kernel) const {
  std::size_t size = 0;
  check(api().clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof size, &size, nullptr),
        "clGetKernelWorkGroupInfo");
  return size;
}

}  // namespace clgpu::cl
