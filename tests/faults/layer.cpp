// An OpenCL library in front of a real one (FAULTS_LIBRARY, a path): any call of it can be made to
// fail, objects are counted, and uses of objects that were released are told.
//
// FAULTS_KEEPS: a function that releases nothing, for the test of the counting.
// FAULTS_DEVICE_TYPE and FAULTS_UNIFIED_MEMORY: numbers that clGetDeviceInfo answers with.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cl/api.hpp"

using namespace clgpu::cl;

namespace {

enum Call {
#define ENTRY(result, name, parameters) k_##name,
  CLGPU_CL_FUNCTIONS(ENTRY)
#undef ENTRY
      kCalls
};
constexpr const char* kNames[] = {
#define ENTRY(result, name, parameters) #name,
    CLGPU_CL_FUNCTIONS(ENTRY)
#undef ENTRY
};

enum Kind { kContext, kQueue, kMemory, kProgram, kKernel, kEvent, kKinds };
constexpr const char* kKindNames[] = {"context", "queue",  "memory object",
                                      "program", "kernel", "event"};

struct Object {
  Kind kind = kContext;
  long number = 0;        // addresses come again, numbers do not
  std::size_t bytes = 0;  // of device memory
  // Of a queue: how many commands that use host memory were enqueued, and how many of them are
  // known to be done; and, by queue, how many of its commands are done before what comes next here.
  long enqueued = 0, done = 0;
  std::map<void*, long> awaits;
  void* queue = nullptr;  // of an event, with the number of its command there
  long command = 0;
  std::map<cl_uint, std::pair<void*, long>> arguments;  // of a kernel: objects, and their numbers
};

struct Fault {
  long skip = 0;   // calls before it
  long count = 0;  // calls that fail; negative: all that follow
  cl_int code = CL_SUCCESS;
};

// Everything below is guarded by `mutex`. Never freed: calls come until the process ends.
struct World {
  std::mutex mutex;
  Api real;
  std::map<void*, Object> objects;
  long numbers = 0;
  std::array<long, kKinds> live{};
  std::array<long, kCalls> calls{};
  std::array<Fault, kCalls> faults;
  Fault lost;   // of all calls but those that ask about platforms and devices
  Fault queue;  // of launches: the queue of the first one that fails is lost with it
  void* lost_queue = nullptr;
  cl_int lost_code = CL_SUCCESS;
  Fault host_pointer;  // of objects in memory of the program
  long failed = 0;
  std::size_t bytes = 0, peak_bytes = 0;
  std::string misuse;  // a line for each use of what is gone
  long events = 0;     // that commands were asked for
  // What clGetDeviceInfo answers instead of the real driver.
  std::map<cl_uint, cl_ulong> numbers_told;
  std::string name_told;
  std::vector<cl_bitfield> types_told;  // by order of asking
  std::vector<cl_device_id> asked;
};

World& world() {
  static World* const instance = [] {
    auto* made = new World;
    const char* path = std::getenv("FAULTS_LIBRARY");
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (path == nullptr || library == nullptr) {
      std::fprintf(stderr, "FAULTS_LIBRARY names no library: %s\n", dlerror());
      std::abort();
    }
#define ENTRY(result, name, parameters)                        \
  {                                                            \
    void* const function = dlsym(library, #name);              \
    std::memcpy(&made->real.name, &function, sizeof function); \
  }
    CLGPU_CL_FUNCTIONS(ENTRY)
#undef ENTRY
    return made;
  }();
  return *instance;
}

using Lock = std::lock_guard<std::mutex>;

bool strikes(World& w, Fault& fault) {
  if (fault.count == 0) return false;
  if (fault.skip > 0) {
    --fault.skip;
    return false;
  }
  if (fault.count > 0) --fault.count;
  ++w.failed;
  return true;
}

// The code that a call fails with; CL_SUCCESS: it does not.
cl_int due(Call call) {
  World& w = world();
  const Lock lock(w.mutex);
  ++w.calls[call];
  if (strikes(w, w.faults[call])) return w.faults[call].code;
  const bool asks = call == k_clGetPlatformIDs || call == k_clGetPlatformInfo ||
                    call == k_clGetDeviceIDs || call == k_clGetDeviceInfo;
  if (!asks && strikes(w, w.lost)) return w.lost.code;
  return CL_SUCCESS;
}

// The code that a command of a queue fails with, as `due`.
cl_int due_in(cl_command_queue queue, bool launches) {
  World& w = world();
  const Lock lock(w.mutex);
  if (launches && w.lost_queue == nullptr && strikes(w, w.queue)) {
    w.lost_queue = queue;
    w.lost_code = w.queue.code;
    return w.lost_code;
  }
  if (queue != w.lost_queue) return CL_SUCCESS;
  ++w.failed;
  return w.lost_code;
}

template <class T>
T born(T object, Kind kind, std::size_t bytes = 0) {
  if (object == nullptr) return object;
  World& w = world();
  const Lock lock(w.mutex);
  Object& entry = w.objects[object];
  entry = {};
  entry.kind = kind;
  entry.number = ++w.numbers;
  entry.bytes = bytes;
  ++w.live[kind];
  w.bytes += bytes;
  if (w.bytes > w.peak_bytes) w.peak_bytes = w.bytes;
  return object;
}

Object* find(World& w, void* object, Kind kind) {
  const auto found = w.objects.find(object);
  return found != w.objects.end() && found->second.kind == kind ? &found->second : nullptr;
}

void tell(World& w, const char* call, const char* does, Kind kind) {
  if (w.misuse.size() < 2000)
    w.misuse += std::string(call) + " " + does + " a " + kKindNames[kind] + " that is gone\n";
}

void uses(void* object, Kind kind, const char* call) {
  World& w = world();
  const Lock lock(w.mutex);
  if (find(w, object, kind) == nullptr) tell(w, call, "uses", kind);
}

void uses_all(cl_uint count, const cl_event* events, const char* call) {
  for (cl_uint i = 0; i < count; ++i) uses(events[i], kEvent, call);
}

// Objects are created with one reference, and the delegate never adds any.
void dies(void* object, Kind kind, const char* call) {
  World& w = world();
  const Lock lock(w.mutex);
  const Object* found = find(w, object, kind);
  if (found == nullptr) return tell(w, call, "releases", kind);
  --w.live[kind];
  w.bytes -= found->bytes;
  w.objects.erase(object);
}

// All commands of a queue up to this one are done, and so is what they have waited for: queues are
// in order.
void waited_for(World& w, void* queue, long command) {
  Object* const found = find(w, queue, kQueue);
  if (found == nullptr) return;
  found->done = std::max(found->done, command);
  for (const auto& [other, up_to] : found->awaits) {
    if (Object* awaited = find(w, other, kQueue)) awaited->done = std::max(awaited->done, up_to);
  }
}

void waited_for(void* queue) {
  World& w = world();
  const Lock lock(w.mutex);
  if (const Object* found = find(w, queue, kQueue)) waited_for(w, queue, found->enqueued);
}

// A command was enqueued.
void enqueued(cl_command_queue queue, cl_uint waits, const cl_event* wait_list, cl_event* event,
              bool uses_host, bool blocking) {
  if (event != nullptr) born(*event, kEvent);
  World& w = world();
  const Lock lock(w.mutex);
  w.events += event != nullptr ? 1 : 0;
  Object* const found = find(w, queue, kQueue);
  if (found == nullptr) return;
  for (cl_uint i = 0; i < waits; ++i) {
    const Object* const awaited = find(w, wait_list[i], kEvent);
    if (awaited == nullptr) continue;
    long& up_to = found->awaits[awaited->queue];
    up_to = std::max(up_to, awaited->command);
  }
  if (uses_host) ++found->enqueued;
  if (event != nullptr && *event != nullptr) {
    w.objects[*event].queue = queue;
    w.objects[*event].command = found->enqueued;
  }
  if (blocking) waited_for(w, queue, found->enqueued);
}

cl_ulong answer(const char* variable, cl_ulong otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

int index_of(const char* name) {
  for (int i = 0; i < kCalls; ++i) {
    if (std::strcmp(kNames[i], name) == 0) return i;
  }
  return -1;
}

}  // namespace

#define REAL world().real
#define FAIL_OR(name) \
  if (const cl_int code = due(k_##name); code != CL_SUCCESS) return code
#define FAIL_IN(queue, launches) \
  if (const cl_int code = due_in(queue, launches); code != CL_SUCCESS) return code
#define FAIL_OR_NULL(name)                                     \
  if (const cl_int code = due(k_##name); code != CL_SUCCESS) { \
    if (error != nullptr) *error = code;                       \
    return nullptr;                                            \
  }

extern "C" {

// What tests ask for.

// From now on `call` fails with `code`, `count` times (negative: for good), but not at once: after
// `skip` more calls. False: there is no such call.
bool faults_set(const char* call, cl_int code, long skip, long count) {
  World& w = world();
  const Lock lock(w.mutex);
  const int index = index_of(call);
  if (index >= 0) w.faults[static_cast<std::size_t>(index)] = {skip, count, code};
  return index >= 0;
}

// The same of every call, for good.
void faults_lose_device(cl_int code, long skip) {
  World& w = world();
  const Lock lock(w.mutex);
  w.lost = {skip, -1, code};
}

// The same of all commands of one queue: that of the launch after `skip` others.
void faults_lose_queue(cl_int code, long skip) {
  World& w = world();
  const Lock lock(w.mutex);
  w.queue = {skip, 1, code};
}

// The same of objects in memory of the program.
void faults_refuse_host_pointers(cl_int code, long skip, long count) {
  World& w = world();
  const Lock lock(w.mutex);
  w.host_pointer = {skip, count, code};
}

void faults_clear() {
  World& w = world();
  const Lock lock(w.mutex);
  w.faults = {};
  w.lost = w.host_pointer = w.queue = {};
  w.lost_queue = nullptr;
}

// What clGetDeviceInfo says of a number of any device.
void faults_tell_number(cl_uint what, cl_ulong bits) {
  World& w = world();
  const Lock lock(w.mutex);
  w.numbers_told[what] = bits;
}
// What it says of any device's name.
void faults_tell_name(const char* name) {
  World& w = world();
  const Lock lock(w.mutex);
  w.name_told = name;
}
// What it says of the type of the device that it is asked about as the `index`-th one.
void faults_tell_type(std::size_t index, cl_bitfield type) {
  World& w = world();
  const Lock lock(w.mutex);
  if (w.types_told.size() <= index) w.types_told.resize(index + 1);
  w.types_told[index] = type;
}

// Events that commands were asked for since the process began.
long faults_events() {
  const Lock lock(world().mutex);
  return world().events;
}

// Calls of all functions, and those that have failed on demand, since the last reset.
void faults_reset_counts() {
  World& w = world();
  const Lock lock(w.mutex);
  w.calls = {};
  w.failed = 0;
  w.peak_bytes = w.bytes;
  w.misuse.clear();
}
int faults_functions() { return kCalls; }
const char* faults_name(int call) { return kNames[call]; }
long faults_calls(int call) {
  const Lock lock(world().mutex);
  return world().calls[static_cast<std::size_t>(call)];
}
long faults_failed() {
  const Lock lock(world().mutex);
  return world().failed;
}

// Objects that exist, by kind: context, queue, memory, program, kernel, event.
long faults_live(int kind) {
  const Lock lock(world().mutex);
  return world().live[static_cast<std::size_t>(kind)];
}
std::size_t faults_peak_bytes() {
  const Lock lock(world().mutex);
  return world().peak_bytes;
}
// Commands that may still read or write host memory.
long faults_host_commands() {
  World& w = world();
  const Lock lock(w.mutex);
  long count = 0;
  for (const auto& [address, object] : w.objects) count += object.enqueued - object.done;
  return count;
}
// A line for each use of an object that is gone, since the last reset.
const char* faults_misuse() {
  static std::string* const copy = new std::string;
  const Lock lock(world().mutex);
  *copy = world().misuse;
  return copy->c_str();
}

// OpenCL.

cl_int clGetPlatformIDs(cl_uint count, cl_platform_id* ids, cl_uint* found) {
  FAIL_OR(clGetPlatformIDs);
  return REAL.clGetPlatformIDs(count, ids, found);
}

cl_int clGetPlatformInfo(cl_platform_id id, cl_uint what, std::size_t size, void* value,
                         std::size_t* needed) {
  FAIL_OR(clGetPlatformInfo);
  return REAL.clGetPlatformInfo(id, what, size, value, needed);
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_bitfield type, cl_uint count, cl_device_id* ids,
                      cl_uint* found) {
  FAIL_OR(clGetDeviceIDs);
  return REAL.clGetDeviceIDs(platform, type, count, ids, found);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_uint what, std::size_t size, void* value,
                       std::size_t* needed) {
  FAIL_OR(clGetDeviceInfo);
  constexpr cl_uint kType = 0x1000, kName = 0x102B, kUnified = 0x1035;
  World& w = world();
  const Lock lock(w.mutex);
  if (what == kName && !w.name_told.empty()) {
    const std::size_t length = w.name_told.size() + 1;
    if (needed != nullptr) *needed = length;
    if (value != nullptr) std::memcpy(value, w.name_told.c_str(), std::min(size, length));
    return CL_SUCCESS;
  }
  const cl_int code = REAL.clGetDeviceInfo(device, what, size, value, needed);
  if (code != CL_SUCCESS || value == nullptr) return code;
  if (const auto told = w.numbers_told.find(what); told != w.numbers_told.end()) {
    auto* bytes = static_cast<char*>(value);
    for (std::size_t at = 0; at < size; at += sizeof told->second)  // some answers are arrays
      std::memcpy(bytes + at, &told->second, std::min(size - at, sizeof told->second));
  } else if (what == kType) {
    const auto place = std::find(w.asked.begin(), w.asked.end(), device);
    const auto index = static_cast<std::size_t>(place - w.asked.begin());
    if (place == w.asked.end()) w.asked.push_back(device);
    auto* type = static_cast<cl_bitfield*>(value);
    *type = answer("FAULTS_DEVICE_TYPE", *type);
    if (index < w.types_told.size() && w.types_told[index] != 0) *type = w.types_told[index];
  } else if (what == kUnified) {
    auto* unified = static_cast<cl_bool*>(value);
    *unified = static_cast<cl_bool>(answer("FAULTS_UNIFIED_MEMORY", *unified));
  }
  return code;
}

cl_context clCreateContext(const std::intptr_t* properties, cl_uint count,
                           const cl_device_id* devices, ContextNotify notify, void* data,
                           cl_int* error) {
  FAIL_OR_NULL(clCreateContext);
  return born(REAL.clCreateContext(properties, count, devices, notify, data, error), kContext);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_bitfield flags,
                                      cl_int* error) {
  FAIL_OR_NULL(clCreateCommandQueue);
  uses(context, kContext, __func__);
  return born(REAL.clCreateCommandQueue(context, device, flags, error), kQueue);
}

cl_mem clCreateBuffer(cl_context context, cl_bitfield flags, std::size_t bytes, void* host,
                      cl_int* error) {
  FAIL_OR_NULL(clCreateBuffer);
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    World& w = world();
    const Lock lock(w.mutex);
    if (strikes(w, w.host_pointer)) {
      *error = w.host_pointer.code;
      return nullptr;
    }
  }
  constexpr cl_bitfield kOfHost = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR;
  uses(context, kContext, __func__);
  return born(REAL.clCreateBuffer(context, flags, bytes, host, error), kMemory,
              (flags & kOfHost) != 0 ? 0 : bytes);
}

cl_mem clCreateSubBuffer(cl_mem whole, cl_bitfield flags, cl_uint type, const void* region,
                         cl_int* error) {
  FAIL_OR_NULL(clCreateSubBuffer);
  uses(whole, kMemory, __func__);
  return born(REAL.clCreateSubBuffer(whole, flags, type, region, error), kMemory);
}

cl_mem clCreateImage(cl_context context, cl_bitfield flags, const cl_image_format* format,
                     const cl_image_desc* description, void* host, cl_int* error) {
  FAIL_OR_NULL(clCreateImage);
  uses(description->object, kMemory, __func__);
  return born(REAL.clCreateImage(context, flags, format, description, host, error), kMemory);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** text,
                                     const std::size_t* lengths, cl_int* error) {
  FAIL_OR_NULL(clCreateProgramWithSource);
  return born(REAL.clCreateProgramWithSource(context, count, text, lengths, error), kProgram);
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                     const std::size_t* lengths, const unsigned char** binaries,
                                     cl_int* status, cl_int* error) {
  FAIL_OR_NULL(clCreateProgramWithBinary);
  return born(
      REAL.clCreateProgramWithBinary(context, count, devices, lengths, binaries, status, error),
      kProgram);
}

cl_int clGetProgramInfo(cl_program program, cl_uint what, std::size_t size, void* value,
                        std::size_t* needed) {
  FAIL_OR(clGetProgramInfo);
  uses(program, kProgram, __func__);
  return REAL.clGetProgramInfo(program, what, size, value, needed);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                      const char* options, ProgramNotify notify, void* data) {
  FAIL_OR(clBuildProgram);
  uses(program, kProgram, __func__);
  return REAL.clBuildProgram(program, count, devices, options, notify, data);
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_uint what,
                             std::size_t size, void* value, std::size_t* needed) {
  FAIL_OR(clGetProgramBuildInfo);
  uses(program, kProgram, __func__);
  return REAL.clGetProgramBuildInfo(program, device, what, size, value, needed);
}

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* error) {
  FAIL_OR_NULL(clCreateKernel);
  uses(program, kProgram, __func__);
  return born(REAL.clCreateKernel(program, name, error), kKernel);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, std::size_t size, const void* value) {
  FAIL_OR(clSetKernelArg);
  uses(kernel, kKernel, __func__);
  {
    World& w = world();
    const Lock lock(w.mutex);
    Object* const of = find(w, kernel, kKernel);
    void* object = nullptr;
    if (size == sizeof object && value != nullptr) std::memcpy(&object, value, size);
    const Object* const memory = object == nullptr ? nullptr : find(w, object, kMemory);
    if (of != nullptr && memory != nullptr) {
      of->arguments[index] = {object, memory->number};
    } else if (of != nullptr) {
      of->arguments.erase(index);
    }
  }
  return REAL.clSetKernelArg(kernel, index, size, value);
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_uint what,
                                std::size_t size, void* value, std::size_t* needed) {
  FAIL_OR(clGetKernelWorkGroupInfo);
  uses(kernel, kKernel, __func__);
  return REAL.clGetKernelWorkGroupInfo(kernel, device, what, size, value, needed);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const std::size_t* offset, const std::size_t* global,
                              const std::size_t* local, cl_uint waits, const cl_event* wait_list,
                              cl_event* event) {
  FAIL_OR(clEnqueueNDRangeKernel);
  FAIL_IN(queue, true);
  uses(queue, kQueue, __func__);
  uses(kernel, kKernel, __func__);
  uses_all(waits, wait_list, __func__);
  {
    World& w = world();
    const Lock lock(w.mutex);
    static const Object* const kNone = new Object;
    const Object* const found = find(w, kernel, kKernel);
    for (const auto& [index, argument] : (found != nullptr ? found : kNone)->arguments) {
      const Object* const memory = find(w, argument.first, kMemory);
      if (memory == nullptr || memory->number != argument.second)
        tell(w, __func__, "passes", kMemory);
    }
  }
  const cl_int code = REAL.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                                  waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, false, false);
  return code;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                           std::size_t offset, std::size_t bytes, void* target, cl_uint waits,
                           const cl_event* wait_list, cl_event* event) {
  FAIL_OR(clEnqueueReadBuffer);
  FAIL_IN(queue, false);
  uses(buffer, kMemory, __func__);
  uses_all(waits, wait_list, __func__);
  const cl_int code = REAL.clEnqueueReadBuffer(queue, buffer, blocking, offset, bytes, target,
                                               waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, true, blocking == CL_TRUE);
  return code;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                            std::size_t offset, std::size_t bytes, const void* source,
                            cl_uint waits, const cl_event* wait_list, cl_event* event) {
  FAIL_OR(clEnqueueWriteBuffer);
  FAIL_IN(queue, false);
  uses(buffer, kMemory, __func__);
  uses_all(waits, wait_list, __func__);
  const cl_int code = REAL.clEnqueueWriteBuffer(queue, buffer, blocking, offset, bytes, source,
                                                waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, true, blocking == CL_TRUE);
  return code;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                           std::size_t to_offset, std::size_t bytes, cl_uint waits,
                           const cl_event* wait_list, cl_event* event) {
  FAIL_OR(clEnqueueCopyBuffer);
  FAIL_IN(queue, false);
  uses(from, kMemory, __func__);
  uses(to, kMemory, __func__);
  uses_all(waits, wait_list, __func__);
  const cl_int code = REAL.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes,
                                               waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, false, false);
  return code;
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_bitfield flags,
                         std::size_t offset, std::size_t bytes, cl_uint waits,
                         const cl_event* wait_list, cl_event* event, cl_int* error) {
  FAIL_OR_NULL(clEnqueueMapBuffer);
  uses(buffer, kMemory, __func__);
  uses_all(waits, wait_list, __func__);
  void* const mapped = REAL.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, waits,
                                               wait_list, event, error);
  if (mapped != nullptr) enqueued(queue, waits, wait_list, event, true, blocking == CL_TRUE);
  return mapped;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void* mapped, cl_uint waits,
                               const cl_event* wait_list, cl_event* event) {
  FAIL_OR(clEnqueueUnmapMemObject);
  uses(buffer, kMemory, __func__);
  const cl_int code = REAL.clEnqueueUnmapMemObject(queue, buffer, mapped, waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, false, false);
  return code;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* wait_list,
                                   cl_event* event) {
  FAIL_OR(clEnqueueMarkerWithWaitList);
  FAIL_IN(queue, false);
  uses_all(waits, wait_list, __func__);
  const cl_int code = REAL.clEnqueueMarkerWithWaitList(queue, waits, wait_list, event);
  if (code == CL_SUCCESS) enqueued(queue, waits, wait_list, event, false, false);
  return code;
}

cl_int clGetEventProfilingInfo(cl_event event, cl_uint what, std::size_t size, void* value,
                               std::size_t* needed) {
  FAIL_OR(clGetEventProfilingInfo);
  uses(event, kEvent, __func__);
  return REAL.clGetEventProfilingInfo(event, what, size, value, needed);
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  uses_all(count, events, __func__);
  const cl_int fails = due(k_clWaitForEvents);
  const cl_int code = REAL.clWaitForEvents(count, events);  // a device that fails is done, too
  World& w = world();
  const Lock lock(w.mutex);
  for (cl_uint i = 0; i < count; ++i) {
    if (const Object* found = find(w, events[i], kEvent))
      waited_for(w, found->queue, found->command);
  }
  return fails != CL_SUCCESS ? fails : code;
}

cl_int clFlush(cl_command_queue queue) {
  FAIL_OR(clFlush);
  FAIL_IN(queue, false);
  uses(queue, kQueue, __func__);
  return REAL.clFlush(queue);
}

cl_int clFinish(cl_command_queue queue) {
  uses(queue, kQueue, __func__);
  const cl_int fails = due(k_clFinish);
  const cl_int code = REAL.clFinish(queue);  // a device that fails is done, too
  waited_for(queue);
  return fails != CL_SUCCESS ? fails : code;
}

// A release that fails has released: nobody can do more.
#define RELEASE(name, type, kind)                                            \
  cl_int name(type object) {                                                 \
    const char* const kept = std::getenv("FAULTS_KEEPS");                    \
    if (kept != nullptr && std::strcmp(kept, #name) == 0) return CL_SUCCESS; \
    const cl_int fails = due(k_##name);                                      \
    dies(object, kind, #name);                                               \
    const cl_int code = REAL.name(object);                                   \
    return fails != CL_SUCCESS ? fails : code;                               \
  }
RELEASE(clReleaseContext, cl_context, kContext)
RELEASE(clReleaseCommandQueue, cl_command_queue, kQueue)
RELEASE(clReleaseMemObject, cl_mem, kMemory)
RELEASE(clReleaseProgram, cl_program, kProgram)
RELEASE(clReleaseKernel, cl_kernel, kKernel)
RELEASE(clReleaseEvent, cl_event, kEvent)
#undef RELEASE

}  // extern "C"
