#include "cl/device.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/join.hpp"
#include "base/quirks.hpp"
#include "cl/error.hpp"
#include "cl/fork.hpp"
#include "cl/libraries.hpp"
#include "cl/plausible.hpp"

namespace clgpu::cl {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::string> added;
  std::map<std::string, std::unique_ptr<Api>> loaded;  // never unloaded: drivers keep threads
  std::vector<Device> devices;
};

// Leaked on purpose: drivers may be called from other static destructors.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// Loads a library; on an error, returns null and sets `why`.
const Api* load(Registry& reg, const std::string& path, const System& system, std::string& why) {
  if (const auto found = reg.loaded.find(path); found != reg.loaded.end())
    return found->second.get();
  std::unique_ptr<Api> api = load_library(path, system, why);
  if (api == nullptr) return nullptr;
  return (reg.loaded[path] = std::move(api)).get();
}

// More than any driver offers: a larger count or text length is not valid.
constexpr cl_uint kMostObjects = 1024;
constexpr std::size_t kMostText = std::size_t{1} << 20;

std::string text(const Api& api, cl_platform_id platform, cl_uint what) {
  std::size_t size = 0;
  if (api.clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0 ||
      size > kMostText)
    return {};
  std::string value(size, '\0');
  api.clGetPlatformInfo(platform, what, size, value.data(), nullptr);
  value.resize(std::char_traits<char>::length(value.c_str()));
  return value;
}

std::string text(const Api& api, cl_device_id device, cl_uint what) {
  std::size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0 ||
      size > kMostText)
    return {};
  std::string value(size, '\0');
  api.clGetDeviceInfo(device, what, size, value.data(), nullptr);
  value.resize(std::char_traits<char>::length(value.c_str()));
  return value;
}

/// 0 if the driver does not answer.
template <class T>
T number(const Api& api, cl_device_id device, cl_uint what) {
  T value{};
  return api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) == CL_SUCCESS ? value
                                                                                        : T{};
}

// Vendors' queries first, then OpenCL 3.0's preferred multiple of the work-group size.
int lanes(const Api& api, cl_device_id device) {
  for (const cl_uint what : {CL_DEVICE_WARP_SIZE_NV, CL_DEVICE_WAVEFRONT_WIDTH_AMD}) {
    if (const auto width = number<cl_uint>(api, device, what); width > 0)
      return static_cast<int>(width);
  }
  const auto multiple =
      number<std::size_t>(api, device, CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
  return static_cast<int>(std::min<std::size_t>(multiple, INT_MAX));
}

DeviceInfo describe(const Api& api, cl_device_id id, cl_platform_id platform,
                    const std::string& library) {
  DeviceInfo info;
  info.platform = text(api, platform, CL_PLATFORM_NAME);
  info.platform_version = text(api, platform, CL_PLATFORM_VERSION);
  info.library = library;
  info.name = text(api, id, CL_DEVICE_NAME);
  info.vendor = text(api, id, CL_DEVICE_VENDOR);
  info.driver_version = text(api, id, CL_DRIVER_VERSION);
  info.opencl_version = text(api, id, CL_DEVICE_VERSION);
  info.extensions = text(api, id, CL_DEVICE_EXTENSIONS);
  const auto type = number<cl_bitfield>(api, id, CL_DEVICE_TYPE);
  // Emulators report all device types at once; a device that is also a CPU computes like one.
  info.type = (type & CL_DEVICE_TYPE_CPU) != 0           ? DeviceType::kCpu
              : (type & CL_DEVICE_TYPE_GPU) != 0         ? DeviceType::kGpu
              : (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? DeviceType::kAccelerator
                                                         : DeviceType::kOther;
  if (!info.is_cpu()) info.gpu = classify_gpu(info.vendor, info.name, info.opencl_version);
  if (number<cl_bool>(api, id, CL_DEVICE_IMAGE_SUPPORT) != 0)
    info.image_buffer_texels = number<std::size_t>(api, id, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
  info.compute_units = static_cast<int>(number<cl_uint>(api, id, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.max_work_group_size = number<std::size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  // Devices may have more than three axes, and drivers do not answer if there is no room for all.
  std::array<std::size_t, 16> along{};
  api.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof along, along.data(), nullptr);
  for (std::size_t axis = 0; axis < 3; ++axis) info.max_work_item_sizes[axis] = along[axis];
  info.lanes = lanes(api, id);
  info.vector_width =
      static_cast<int>(number<cl_uint>(api, id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  info.local_bytes = static_cast<std::size_t>(number<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE));
  info.global_bytes = number<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_object_bytes = number<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.base_align_bytes = number<cl_uint>(api, id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  info.unified_memory = number<cl_bool>(api, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  info.has_half = info.extensions.find("cl_khr_fp16") != std::string::npos;
  make_plausible(info);
  apply_quirks(info);
  return info;
}

/// Why a device cannot be used; empty if it can.
std::string device_problem(const Api& api, cl_device_id id) {
  for (const auto& [what, problem] :
       {std::pair(CL_DEVICE_AVAILABLE, "it is not available"),
        std::pair(CL_DEVICE_COMPILER_AVAILABLE, "it has no compiler")}) {
    cl_bool answer = 0;
    const cl_int code = api.clGetDeviceInfo(id, what, sizeof answer, &answer, nullptr);
    if (code != CL_SUCCESS)
      return "its driver does not report whether it can be used (clGetDeviceInfo: " +
             error_name(code) + ")";
    if (answer == 0) return std::string("its driver says that ") + problem;
  }
  return {};
}

// Appends the devices of one library, without the platforms that an earlier library has offered.
// Appends to `unusable` the devices that cannot be used, with the reasons. Returns the number of
// the library's platforms.
int collect(const Api& api, const std::string& library, std::set<std::string>& seen,
            std::vector<Device>& found, std::string& unusable) {
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0 || count > kMostObjects)
    return 0;
  std::vector<cl_platform_id> platforms(count);
  if (api.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return 0;
  const std::set<std::string> earlier = seen;  // one library may have two of the same name
  for (const cl_platform_id platform : platforms) {
    const std::string name = text(api, platform, CL_PLATFORM_NAME);
    const std::string identity = name + "|" + text(api, platform, CL_PLATFORM_VERSION);
    seen.insert(identity);
    if (earlier.count(identity) != 0) continue;
    cl_uint n = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS || n == 0 ||
        n > kMostObjects)
      continue;
    std::vector<cl_device_id> ids(n);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, ids.data(), nullptr) != CL_SUCCESS)
      continue;
    for (const cl_device_id id : ids) {
      if (const std::string problem = device_problem(api, id); !problem.empty()) {
        append_item(unusable, text(api, id, CL_DEVICE_NAME) + ": " + problem, "; ");
        continue;
      }
      found.push_back({&api, platform, id, describe(api, id, platform, library)});
    }
  }
  return static_cast<int>(count);
}

std::vector<Device> search(Registry& reg, const System& system) {
  std::vector<std::string> candidates;
  if (const char* only = std::getenv("CLGPU_OPENCL_LIBRARY"); only != nullptr && *only != '\0') {
    candidates.push_back(only);
    std::string why;
    if (load(reg, only, system, why) == nullptr) {
      throw DeviceError("CLGPU_OPENCL_LIBRARY names an OpenCL library that cannot be loaded (" +
                        why + "); correct or unset the variable");
    }
  } else {
    candidates = system.libraries;
    candidates.insert(candidates.end(), reg.added.begin(), reg.added.end());
  }
  std::set<std::string> seen;
  std::set<const Api*> visited;
  std::vector<Device> found;
  std::string libraries, failures, unusable;
  int platforms = 0;
  for (const std::string& path : candidates) {
    std::string why;
    const Api* api = load(reg, path, system, why);
    if (api == nullptr) {
      append_item(failures, why, "; ");
      continue;
    }
    if (!visited.insert(api).second) continue;
    append_item(libraries, path);
    platforms += collect(*api, path, seen, found, unusable);
    if (system.one_driver && !found.empty()) break;
  }
  if (libraries.empty()) {
    throw DeviceError("no OpenCL library was found (" + failures + "); " + system.no_library);
  }
  if (found.empty()) {
    throw DeviceError("the OpenCL library " + libraries + " offers " + std::to_string(platforms) +
                      (platforms == 1 ? " platform" : " platforms") + " and no usable device" +
                      (unusable.empty() ? "" : " (" + unusable + ")") + "; " + system.no_device);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Device& a, const Device& b) { return a.info.type < b.info.type; });
  return found;
}

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

}  // namespace

void add_library(const std::string& path) {
  if (is_forked_child()) return;  // such a child loads nothing any more
  Registry& reg = registry();
  const std::lock_guard<std::mutex> lock(reg.mutex);
  if (std::find(reg.added.begin(), reg.added.end(), path) == reg.added.end())
    reg.added.push_back(path);
}

const std::vector<Device>& devices() {
  refuse_forked_child();
  watch_forks();
  Registry& reg = registry();
  const std::lock_guard<std::mutex> lock(reg.mutex);
  if (reg.devices.empty()) reg.devices = search(reg, this_system());
  return reg.devices;
}

std::vector<Device> devices_as_on(const System& system) {
  refuse_forked_child();
  watch_forks();
  Registry& reg = registry();
  const std::lock_guard<std::mutex> lock(reg.mutex);
  return search(reg, system);
}

const Device& find_device(const std::string& selector) {
  const std::vector<Device>& all = devices();
  if (selector.empty()) return all.front();
  std::string list;
  for (std::size_t i = 0; i < all.size(); ++i) {
    list += (i ? "; " : "") + std::to_string(i) + " = " + all[i].info.name + " (" +
            all[i].info.platform + ")";
  }
  if (std::all_of(selector.begin(), selector.end(),
                  [](unsigned char c) { return std::isdigit(c); })) {
    if (selector.size() < 6 && std::stoul(selector) < all.size()) return all[std::stoul(selector)];
    throw DeviceError("there is no OpenCL device with index " + selector + "; found: " + list);
  }
  const std::string wanted = lower(selector);
  for (const Device& device : all) {
    if (lower(device.info.name).find(wanted) != std::string::npos ||
        lower(device.info.platform).find(wanted) != std::string::npos) {
      return device;
    }
  }
  throw DeviceError("no OpenCL device has '" + selector + "' in its name; found: " + list);
}

}  // namespace clgpu::cl
