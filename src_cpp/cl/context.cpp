#include "cl/context.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ptx_addresses.hpp"
#include "base/sha256.hpp"
#include "base/sm_90a.hpp"
#include "cl/compile_process.hpp"
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

// What all contexts of a device have in common.
struct Context::OnDevice {
  Usage usage;
  std::mutex whole;
};

// What the contexts with the same OpenCL context have in common.
struct Context::Shared {
  std::shared_ptr<OnDevice> on_device;
  ContextHandle handle;
  bool is_foreign = false;  // an application's
  std::string identity;
  std::string refused;  // why the hints in its key have no effect
  std::mutex mutex;     // of all below
  Programs programs;
  std::uint64_t uses = 0;
  CompileProcess compiler;
  std::atomic<bool> may_have_child{false};
  std::set<std::string> built_apart;         // keys of programs that a child process has built
  std::map<std::string, std::string> ended;  // by key: how a child process has ended at it
};

namespace {

const char* word(Level level) {
  switch (level) {
    case Level::kLow:
      return "low";
    case Level::kNormal:
      return "normal";
    case Level::kHigh:
      return "high";
    default:
      return "default";
  }
}

// The properties of cl_qcom_priority_hint and cl_qcom_perf_hint, in pairs.
std::vector<std::intptr_t> hints(Level priority, Level performance) {
  std::vector<std::intptr_t> properties;
  const auto add = [&](Level level, std::intptr_t what, std::intptr_t low, std::intptr_t normal,
                       std::intptr_t high) {
    if (level == Level::kDefault) return;
    properties.push_back(what);
    properties.push_back(level == Level::kLow ? low : level == Level::kNormal ? normal : high);
  };
  add(priority, CL_CONTEXT_PRIORITY_HINT_QCOM, CL_PRIORITY_HINT_LOW_QCOM,
      CL_PRIORITY_HINT_NORMAL_QCOM, CL_PRIORITY_HINT_HIGH_QCOM);
  add(performance, CL_CONTEXT_PERF_HINT_QCOM, CL_PERF_HINT_LOW_QCOM, CL_PERF_HINT_NORMAL_QCOM,
      CL_PERF_HINT_HIGH_QCOM);
  return properties;
}

// The properties of cl_khr_gl_sharing, in pairs.
std::vector<std::intptr_t> properties_of(const GlContext& gl) {
  const bool is_egl = gl.system == GlContext::System::kEgl;
  return {CL_GL_CONTEXT_KHR, reinterpret_cast<std::intptr_t>(gl.context),
          is_egl ? CL_EGL_DISPLAY_KHR : CL_GLX_DISPLAY_KHR,
          reinterpret_cast<std::intptr_t>(gl.display)};
}

ContextHandle make_context(const Device& device, const std::vector<std::intptr_t>& hints,
                           const std::vector<std::intptr_t>& others, cl_int& code) {
  std::vector<std::intptr_t> properties{CL_CONTEXT_PLATFORM,
                                        reinterpret_cast<std::intptr_t>(device.platform)};
  properties.insert(properties.end(), hints.begin(), hints.end());
  properties.insert(properties.end(), others.begin(), others.end());
  properties.push_back(0);
  const cl_context made =
      device.api->clCreateContext(properties.data(), 1, &device.id, nullptr, nullptr, &code);
  return {*device.api, made};
}

Level level_of(const DeviceInfo& info, Level asked, const char* extension) {
  return info.has_extension(extension) ? asked : Level::kDefault;
}

// Of the contexts and of what they share.
std::mutex& contexts_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

}  // namespace

std::shared_ptr<Context> Context::of(const Device& device, const ContextOptions& options) {
  return find(device, options, nullptr);
}

std::shared_ptr<Context> Context::adopt(const Device& device, cl_context handle) {
  return find(device, {}, handle);
}

std::shared_ptr<Context> Context::find(const Device& device, const ContextOptions& options,
                                       cl_context handle) {
  static auto* contexts =
      new std::map<std::pair<cl_device_id, ContextOptions>, std::shared_ptr<Context>>;
  const std::lock_guard<std::mutex> lock(contexts_mutex());
  const std::pair key(device.id, options);
  const auto known = contexts->find(key);
  if (known != contexts->end()) return known->second;
  const std::shared_ptr<Context> context(new Context(device, options, handle));
  return contexts->emplace(key, context).first->second;
}

std::shared_ptr<Context> Context::sharing(const Device& device, const GlContext& gl,
                                          const ContextOptions& options) {
  if (!device.info.has_extension("cl_khr_gl_sharing")) {
    throw DeviceError(device.info.name +
                      " cannot share buffers and textures with OpenGL: it does not list "
                      "cl_khr_gl_sharing; create the delegate without OpenGL, and copy");
  }
  using Key = std::tuple<cl_device_id, void*, void*, ContextOptions>;
  static auto* contexts = new std::map<Key, std::weak_ptr<Context>>;
  const std::lock_guard<std::mutex> lock(contexts_mutex());
  std::weak_ptr<Context>& known = (*contexts)[{device.id, gl.display, gl.context, options}];
  std::shared_ptr<Context> context = known.lock();
  if (context != nullptr) return context;
  try {
    context.reset(new Context(device, options, nullptr, &gl));
  } catch (const OpenCLError& error) {
    throw DeviceError(device.info.name +
                      " cannot share buffers and textures with this OpenGL context (" +
                      error.what() +
                      "); the context must exist, be current in this thread, and be of the same "
                      "GPU");
  }
  known = context;
  return context;
}

// Called for one context at a time.
Context::Context(const Device& device, const ContextOptions& options, cl_context handle,
                 const GlContext* gl)
    : device_(device),
      options_(options),
      shares_gl_(gl != nullptr),
      shared_(gl != nullptr ? share_with(*gl) : share(handle)) {
  const DeviceInfo& info = device.info;
  const auto note = [&](const char* option, Level level, const std::string& why) {
    if (!why.empty() && level != Level::kDefault) {
      notes_.push_back("the option " + std::string(option) + "=" + word(level) +
                       " has no effect: " + why);
    }
  };
  const bool has_qcom_priority = info.has_extension("cl_qcom_priority_hint");
  const bool has_khr_priority = info.has_extension("cl_khr_priority_hints");
  if (info.has_extension("cl_qcom_perf_hint")) {
    note("performance", options.performance, shared_->refused);
  } else {
    note("performance", options.performance, info.name + " does not list cl_qcom_perf_hint");
  }
  if (has_qcom_priority && shared_->refused.empty()) return;
  if (has_khr_priority) {
    note("priority", options.priority, try_priority());
  } else if (has_qcom_priority) {
    note("priority", options.priority, shared_->refused);
  } else {
    note("priority", options.priority,
         info.name + " lists neither cl_khr_priority_hints nor cl_qcom_priority_hint");
  }
}

// The OpenCL context with the hints of the options, as far as they are properties of a context.
std::shared_ptr<Context::Shared> Context::share(cl_context handle) {
  using Key = std::tuple<cl_device_id, Level, Level>;
  static auto* all = new std::map<Key, std::shared_ptr<Shared>>;
  const DeviceInfo& info = device_.info;
  const Level priority = level_of(info, options_.priority, "cl_qcom_priority_hint");
  const Level performance = level_of(info, options_.performance, "cl_qcom_perf_hint");
  const Key key(device_.id, priority, performance);
  if (const auto known = all->find(key); known != all->end()) return known->second;
  const Key plain(device_.id, Level::kDefault, Level::kDefault);
  const auto usual = all->find(plain);
  auto shared = std::make_shared<Shared>();
  if (usual != all->end() && usual->second->is_foreign) {
    // Only memory of the application's context can be exchanged with it.
    handle = usual->second->handle.get();
    shared->refused = "the OpenCL context is the application's";
  }
  if (handle != nullptr && api().clRetainContext != nullptr) {
    check(api().clRetainContext(handle), "clRetainContext", info.name);
    shared->handle = {api(), handle};
    shared->is_foreign = true;
    // It may be that of other devices.
    cl_int code = CL_SUCCESS;
    const QueueHandle queue(api(), api().clCreateCommandQueue(handle, device_.id, 0, &code));
    check(code, "clCreateCommandQueue", info.name);
  } else {
    open(*shared, priority, performance, {});
  }
  complete(*shared);
  return all->emplace(key, std::move(shared)).first->second;
}

// An OpenCL context of its own, which shares objects with an OpenGL context.
std::shared_ptr<Context::Shared> Context::share_with(const GlContext& gl) {
  const DeviceInfo& info = device_.info;
  auto shared = std::make_shared<Shared>();
  open(*shared, level_of(info, options_.priority, "cl_qcom_priority_hint"),
       level_of(info, options_.performance, "cl_qcom_perf_hint"), properties_of(gl));
  complete(*shared);
  return shared;
}

// Makes the OpenCL context, without hints if the driver refuses them.
void Context::open(Shared& shared, Level priority, Level performance,
                   const std::vector<std::intptr_t>& others) {
  cl_int code = CL_SUCCESS;
  const std::vector<std::intptr_t> properties = hints(priority, performance);
  shared.handle = make_context(device_, properties, others, code);
  if (code != CL_SUCCESS && !properties.empty() && !may_pass(code)) {
    shared.refused =
        "the driver refuses it for a context (clCreateContext: " + error_name(code) + ")";
    shared.handle = make_context(device_, {}, others, code);
  }
  check(code, "clCreateContext", device_.info.name);
}

// Sets what does not depend on the OpenCL context.
void Context::complete(Shared& shared) {
  static auto* devices = new std::map<cl_device_id, std::shared_ptr<OnDevice>>;
  const DeviceInfo& info = device_.info;
  // The number is the version of our own format of the stored data.
  for (const std::string& fact : {std::string("1"), info.name, info.vendor, info.driver_version,
                                  info.opencl_version, info.platform, info.platform_version})
    shared.identity += fact + "\n";
  std::shared_ptr<OnDevice>& on_device = (*devices)[device_.id];
  if (on_device == nullptr) on_device = std::make_shared<OnDevice>();
  shared.on_device = on_device;
}

// Sets the priority of queues. Returns why that is not possible, or nothing.
std::string Context::try_priority() {
  if (options_.priority == Level::kDefault) return {};
  // A loader may have the function for drivers that do not.
  if (device_.info.opencl_version.rfind("OpenCL 1", 0) == 0 ||
      api().clCreateCommandQueueWithProperties == nullptr)
    return "queues have priorities with OpenCL 2.0 or newer, and this device has " +
           device_.info.opencl_version;
  queue_priority_ = options_.priority == Level::kHigh  ? CL_QUEUE_PRIORITY_HIGH_KHR
                    : options_.priority == Level::kLow ? CL_QUEUE_PRIORITY_LOW_KHR
                                                       : CL_QUEUE_PRIORITY_MED_KHR;
  try {
    create_queue(false);
  } catch (const OpenCLError& error) {
    queue_priority_ = 0;
    return std::string("the driver refuses it for a queue (") + error.what() + ")";
  }
  return {};
}

std::vector<std::string> Context::notes() const {
  const std::lock_guard<std::mutex> lock(notes_mutex_);
  return notes_;
}

const std::string& Context::identity() const { return shared_->identity; }
cl_context Context::handle() const { return shared_->handle.get(); }
Usage& Context::usage() { return shared_->on_device->usage; }
std::unique_lock<std::mutex> Context::whole_device() {
  return std::unique_lock<std::mutex>(shared_->on_device->whole);
}

QueueHandle Context::create_queue(bool profiling) {
  const cl_bitfield flags = profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
  const char* call = "clCreateCommandQueue";
  cl_int code = CL_SUCCESS;
  QueueHandle queue;
  if (queue_priority_ == 0) {
    queue = {api(), api().clCreateCommandQueue(handle(), device_.id, flags, &code)};
  } else {
    call = "clCreateCommandQueueWithProperties";
    const cl_ulong properties[] = {CL_QUEUE_PROPERTIES, flags, CL_QUEUE_PRIORITY_KHR,
                                   queue_priority_, 0};
    queue = {api(),
             api().clCreateCommandQueueWithProperties(handle(), device_.id, properties, &code)};
  }
  check(code, call, device_.info.name);
  ++counters().objects_created;
  return queue;
}

// Adreno's driver takes no other property beside this one.
QueueHandle Context::create_recordable_queue() {
  cl_int code = CL_SUCCESS;
  QueueHandle queue(
      api(), api().clCreateCommandQueue(handle(), device_.id, CL_QUEUE_RECORDABLE_QCOM, &code));
  check(code, "clCreateCommandQueue", device_.info.name);
  ++counters().objects_created;
  return queue;
}

Memory Context::create_buffer(std::size_t bytes, const std::string& what, bool host_visible) {
  const cl_bitfield flags = CL_MEM_READ_WRITE | (host_visible ? CL_MEM_ALLOC_HOST_PTR : 0);
  cl_int code = CL_SUCCESS;
  MemHandle buffer(api(), api().clCreateBuffer(handle(), flags, bytes, nullptr, &code));
  if (code != CL_SUCCESS)
    throw OpenCLError("clCreateBuffer", code, what + " of " + std::to_string(bytes) + " bytes");
  ++counters().objects_created;
  return {std::move(buffer), usage(), bytes};
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
  MemHandle image(api(),
                  api().clCreateImage(handle(), CL_MEM_READ_ONLY, &format, &desc, nullptr, &code));
  if (code != CL_SUCCESS)
    throw OpenCLError("clCreateImage", code, what + " of " + std::to_string(texels) + " texels");
  ++counters().objects_created;
  return image;
}

MemHandle Context::create_pinned(std::size_t bytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = api().clCreateBuffer(handle(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                             bytes, nullptr, &code);
  if (code != CL_SUCCESS) return {};
  ++counters().objects_created;
  return {api(), buffer};
}

MemHandle Context::wrap_memory(void* data, std::size_t bytes, const std::string& what) {
  cl_int code = CL_SUCCESS;
  MemHandle buffer(api(), api().clCreateBuffer(handle(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                               bytes, data, &code));
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
  if (ask(CL_MEM_CONTEXT, cl_context{}) != handle()) return 0;
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
         context == handle();
}

std::shared_ptr<Context::Program> Context::program(const std::string& key,
                                                   const ProgramSource& source,
                                                   const std::string& entry, store::Store& store,
                                                   store::Attempt& attempt) {
  std::shared_ptr<Program>& known = shared_->programs[key];
  if (known == nullptr) known = std::make_shared<Program>();
  const std::shared_ptr<Program> program = known;
  program->last_use = ++shared_->uses;
  if (program->handle) return program;
  program->label = source.file + " on " + device_.info.name + " (" + device_.info.platform + ")";
  load(*program, key, source.options, store);
  if (!program->handle) {
    const store::Risk at_risk =
        risk(key, source, "the compilation of " + source.file + " with " + source.options);
    if (store.is_on()) attempt = store::Attempt(store, at_risk);
    build_apart(*program, key, source, entry, at_risk, store);
    if (!program->handle) compile(*program, source, entry);
  }
  drop_idle();
  return program;
}

namespace {
bool is_for_sm_90a(const ProgramSource& source) {
  return source.options.find(kSm90aFlag) != source.options.npos;
}

// The binary of which a source's program is made, of that which the compiler has written: changed
// PTX. Empty if that is impossible.
std::string binary_for(const ProgramSource& source, const std::string& entry, std::string binary) {
  if (is_for_sm_90a(source)) binary = sm_90a_of(std::move(binary));
  if (!source.addresses.empty())
    binary = with_addresses(std::move(binary), entry, source.addresses);
  return binary;
}
}  // namespace

// Lets a child process build it first, if the options or the driver require that, and makes the
// program of the child's binary. Leaves it empty where there is none: this process may compile it.
void Context::build_apart(Program& program, const std::string& key, const ProgramSource& source,
                          const std::string& entry, const store::Risk& at_risk,
                          store::Store& store) {
  const IsolateBuilds when = options_.isolate_builds;
  if (when == IsolateBuilds::kOff ||
      (when == IsolateBuilds::kAuto && !has_untested_compiler(device_.info)) ||
      shared_->built_apart.count(key) != 0 || is_for_sm_90a(source))
    return;
  const auto leave_out = [&] {
    throw store::LeftOut("a child process ended twice, the last time " + shared_->ended[key] +
                         ", during " + at_risk.what +
                         "; to try it again, run `clgpu cache clear --kind crash` or delete the "
                         "cache, and start a new process");
  };
  if (shared_->ended.count(key) != 0) leave_out();
  using Outcome = CompileProcess::Outcome;
  CompileProcess::Result made;
  for (int attempt = 0; attempt < 2; ++attempt) {  // the system may have ended the first one
    shared_->may_have_child = true;
    made = shared_->compiler.build(device_, source.text, source.options, entry);
    if (made.outcome != Outcome::kEnded) break;
  }
  if (made.outcome == Outcome::kEnded) {
    shared_->ended[key] = made.why;
    store::note_ended_child(store, at_risk);
    leave_out();
  }
  if (made.outcome == Outcome::kNoChild) {
    const std::string sentence = "the option isolate_builds=on has no effect: " + made.why;
    const std::lock_guard<std::mutex> lock(notes_mutex_);
    if (when == IsolateBuilds::kOn &&
        std::find(notes_.begin(), notes_.end(), sentence) == notes_.end())
      notes_.push_back(sentence);
    return;
  }
  shared_->built_apart.insert(key);
  const std::string binary = binary_for(source, entry, std::move(made.binary));
  if (binary.empty()) return;
  make_of_binary(program, source.options, reinterpret_cast<const unsigned char*>(binary.data()),
                 binary.size());
  if (program.handle) ++counters().programs_built;
}

void Context::end_builds() {
  if (!shared_->may_have_child.load(std::memory_order_relaxed)) return;
  const std::unique_lock<std::mutex> lock(shared_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // somebody builds
  shared_->compiler.end();
  shared_->may_have_child = false;
}

// A process that tries many kernels, or opens many models in turn, would otherwise keep all
// programs: some drivers take a megabyte for each.
void Context::drop_idle() {
  constexpr std::size_t kKept = 128;  // more than the largest networks have
  while (shared_->programs.size() > kKept) {
    auto oldest = shared_->programs.end();
    for (auto it = shared_->programs.begin(); it != shared_->programs.end(); ++it) {
      const bool is_idle = it->second.use_count() == 1;
      if (is_idle &&
          (oldest == shared_->programs.end() || it->second->last_use < oldest->second->last_use))
        oldest = it;
    }
    if (oldest == shared_->programs.end()) return;
    shared_->programs.erase(oldest);
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
  const cl_int code = make_of_binary(program, options, bytes, row->size() - end - 1);
  if (code != CL_SUCCESS) {
    if (!may_pass(code)) reject(key, error_name(code), store);
    return;
  }
  ++counters().programs_loaded;
  std::set<std::string> stored;
  std::istringstream variants(row->substr(0, end));
  for (std::string variant; std::getline(variants, variant);) stored.insert(variant);
  program.stored[store.path()].swap(stored);
}

// Leaves the program empty after an error, which it returns.
cl_int Context::make_of_binary(Program& program, const std::string& options,
                               const unsigned char* bytes, std::size_t size) {
  cl_int status = CL_SUCCESS, code = CL_SUCCESS;
  ProgramHandle made(api(), api().clCreateProgramWithBinary(handle(), 1, &device_.id, &size, &bytes,
                                                            &status, &code));
  if (code == CL_SUCCESS) code = status;
  if (code == CL_SUCCESS)
    code = api().clBuildProgram(made.get(), 1, &device_.id, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) return code;
  ++counters().objects_created;
  program.handle = std::move(made);
  program.is_loaded = true;
  return code;
}

// Programs of one source have much in common, whatever their options; those with addresses with
// each other only: where they are left out, the others take their place.
store::Risk Context::risk(const std::string& key, const ProgramSource& source,
                          const std::string& what) const {
  const std::string form = source.addresses.empty() ? "" : " with addresses of buffers";
  return {sha256_hex(key), sha256_hex(identity() + form + source.text),
          what + form + " on " + device_.info.name};
}

void Context::reject(const std::string& key, const std::string& why, store::Store& store) {
  store.warn("the driver of " + device_.info.name + " rejects a program of the cache " +
             store.path() + " (" + why + "); it is compiled again");
  store.erase(store::kProgram, key);
}

void Context::compile(Program& program, const ProgramSource& source, const std::string& entry) {
  const char* text = source.text.c_str();
  const std::size_t length = source.text.size();
  const char* options = source.options.c_str();
  cl_int code = CL_SUCCESS;
  ProgramHandle made(api(), api().clCreateProgramWithSource(handle(), 1, &text, &length, &code));
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
  const bool has_addresses = !source.addresses.empty();
  const bool changes = has_addresses || is_for_sm_90a(source);
  const std::string bytes = changes ? binary(made.get()) : "";
  // A driver without binaries does not run programs for sm_90a: the probe gets wrong numbers.
  if (!has_addresses && bytes.empty()) {
    program.handle = std::move(made);
    return;
  }
  constexpr cl_int kBuildProgramFailure = -11;
  const std::string ptx = binary_for(source, entry, bytes);
  code = ptx.empty()
             ? kBuildProgramFailure
             : make_of_binary(program, source.options,
                              reinterpret_cast<const unsigned char*>(ptx.data()), ptx.size());
  if (code != CL_SUCCESS)
    throw BuildError(source.file, source.options, code, "the driver does not take its changed PTX");
  program.is_loaded = false;
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
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  std::string inputs = source.options + "\n";
  if (!source.addresses.empty()) {
    inputs += "addresses of " + entry;
    for (const int number : source.addresses) inputs += ' ' + std::to_string(number);
    inputs += '\n';
  }
  const std::string key =
      hex(Sha256().update(identity()).update(inputs).update(source.text).digest());
  cl_int code = CL_SUCCESS;
  std::shared_ptr<Program> made;
  store::Attempt attempt;  // until the kernel is there: some drivers compile when it is created
  try {
    made = program(key, source, entry, store, attempt);
  } catch (const BuildError&) {
    if (is_recording()) record(entry, source.options, {});
    throw;
  }
  const auto create = [&] {
    return KernelHandle(api(), api().clCreateKernel(made->handle.get(), entry.c_str(), &code));
  };
  KernelHandle handle = create();
  if (code != CL_SUCCESS && made->is_loaded && !may_pass(code)) {
    if (!made->stored.empty()) reject(key, error_name(code), store);
    shared_->programs.erase(key);
    made = program(key, source, entry, store, attempt);
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
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  const auto found = shared_->programs.find(first.program);
  if (found != shared_->programs.end()) found->second->variants.insert(first.mark);
}

void Context::save_programs(const Programs& used, store::Store& store) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
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
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->programs.clear();  // executors keep the programs that they use
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
  if (!device_.info.is(GpuFamily::kNvidia)) return size;
  // NVIDIA's driver answers 256 for kernels that demand work-groups of 512, too, and launches
  // those.
  std::array<std::size_t, 3> demanded{};
  const cl_int code =
      api().clGetKernelWorkGroupInfo(kernel.get(), device_.id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                     sizeof demanded, demanded.data(), nullptr);
  if (code != CL_SUCCESS) return size;
  return std::max(size, demanded[0] * demanded[1] * demanded[2]);
}

}  // namespace clgpu::cl
