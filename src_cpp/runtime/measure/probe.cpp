#include "runtime/measure/probe.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "base/half.hpp"
#include "base/index.hpp"
#include "base/sha256.hpp"
#include "base/sm_90a.hpp"
#include "cl/error.hpp"
#include "kernel/dot8.hpp"
#include "kernel/macros.hpp"
#include "kernel/sources.hpp"

namespace clgpu::runtime {
namespace {

constexpr const char* kMmaFile = "device/mma_nvidia.cl";
constexpr const char* kWgmmaFile = "device/wgmma_nvidia.cl";
constexpr const char* kHalfFile = "device/half.cl";
constexpr const char* kDot8File = "device/dot8.cl";
constexpr const char* kChainFile = "device/chain.cl";

const std::string kStandard = "-cl-std=CL1.2";

using Bytes = std::vector<std::uint8_t>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(values.data());
  return {data, data + values.size() * sizeof(T)};
}

std::vector<std::uint16_t> halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float v : values) result.push_back(float_to_half(v));
  return result;
}

/// One launch: uploads `inputs`, runs the kernel with them, a result of `bytes` and `number` (none
/// if negative) as its arguments, and reads the result.
Bytes run(cl::Context& context, store::Store& store, const char* file, const char* entry,
          const std::string& options, const std::vector<Bytes>& inputs, std::size_t bytes,
          int number, std::size_t items, std::size_t group) {
  const cl::Api& api = context.api();
  kernel::check_macros(file, options);
  const cl::KernelHandle kernel =
      context.create_kernel({file, kernel::assemble(file), options}, entry, {}, store);
  const cl::QueueHandle queue = context.create_queue();
  std::vector<cl::Memory> buffers;
  const auto add = [&](std::size_t size) {
    buffers.push_back(context.create_buffer(size, "a probe"));
    const cl::cl_mem buffer = buffers.back().get();
    cl::check(api.clSetKernelArg(kernel.get(), static_cast<cl::cl_uint>(buffers.size() - 1),
                                 sizeof buffer, &buffer),
              "clSetKernelArg", file);
    return buffer;
  };
  for (const Bytes& input : inputs) {
    cl::check(api.clEnqueueWriteBuffer(queue.get(), add(input.size()), cl::CL_TRUE, 0, input.size(),
                                       input.data(), 0, nullptr, nullptr),
              "clEnqueueWriteBuffer", file);
  }
  Bytes result(bytes);
  const cl::cl_mem output = add(bytes);
  if (number >= 0) {
    cl::check(api.clSetKernelArg(kernel.get(), static_cast<cl::cl_uint>(buffers.size()),
                                 sizeof number, &number),
              "clSetKernelArg", file);
  }
  cl::check(api.clEnqueueNDRangeKernel(queue.get(), kernel.get(), 1, nullptr, &items, &group, 0,
                                       nullptr, nullptr),
            "clEnqueueNDRangeKernel", file);
  cl::check(api.clEnqueueReadBuffer(queue.get(), output, cl::CL_TRUE, 0, bytes, result.data(), 0,
                                    nullptr, nullptr),
            "clEnqueueReadBuffer", file);
  return result;
}

/// Runs `compute`, which returns whether the numbers are right. Records wrong numbers.
template <class F>
bool works(const std::string& what, ProbedDevice& result, F compute) {
  const auto note_failure = [&](const Error& error) {
    result.notes.push_back(what + " fails in a probe and is not used: " + error.what());
  };
  try {
    if (compute()) return true;
    result.notes.push_back(what + " gives wrong numbers in a probe and is not used");
  } catch (const cl::BuildError& error) {
    if (!cl::may_pass(error.code())) return false;  // the device does not have it
    note_failure(error);
    result.is_final = false;
  } catch (const cl::OpenCLError& error) {
    note_failure(error);
    if (error.may_pass()) result.is_final = false;
  } catch (const Error& error) {
    note_failure(error);
  }
  return false;
}

/// Operands of tensor cores.
enum class Mma : int { kHalf = 0, kTf32 = 1, kInt8 = 2 };

template <class To>
Bytes bytes_as(const std::vector<float>& values) {
  return bytes_of(std::vector<To>(values.begin(), values.end()));
}

/// A small product by tensor cores: a kernel that reads kRead rows of a, and the others as zeros.
struct MmaProbe {
  const char *file, *entry;
  int rows, cols, bytes, read;  ///< of a and of b, of the depth; rows of a that are read
  std::size_t items;
  std::array<int, 3> types;  ///< the macro MMA_TYPE for operands of Mma
  std::string flags;
};
const MmaProbe kMma = {kMmaFile, "device_mma", 16, 8, 32, 13, 32, {0, 1, 2}, ""};
const MmaProbe kWgmma = {
    kWgmmaFile, "device_wgmma", 64, 32, 64, 51, 128, {3, -1, 4}, std::string(" ") + kSm90aFlag};

bool right_mma(cl::Context& context, store::Store& store, Mma type, const MmaProbe& probe) {
  const int kRows = probe.rows, kCols = probe.cols, kRead = probe.read;
  const int depth = probe.bytes / (type == Mma::kHalf ? 2 : type == Mma::kTf32 ? 4 : 1);
  // Small whole numbers: every product and sum is exact.
  std::vector<float> a, b, expected;
  for (int i = 0; i < kRows * depth; ++i) a.push_back(static_cast<float>(i * 7 % 13 - 6));
  for (int i = 0; i < kCols * depth; ++i) b.push_back(static_cast<float>(i * 5 % 11 - 4));
  for (int m = 0; m < kRows; ++m) {
    for (int n = 0; n < kCols; ++n) {
      float sum = 0;
      for (int k = 0; k < depth && m < kRead; ++k) {
        sum += a[uz(m * depth + k)] * b[uz(n * depth + k)];
      }
      expected.push_back(sum);
    }
  }
  const auto operand = [&](const std::vector<float>& values) {
    return type == Mma::kHalf   ? bytes_of(halves(values))
           : type == Mma::kTf32 ? bytes_of(values)
                                : bytes_as<std::int8_t>(values);
  };
  const Bytes want = type == Mma::kInt8 ? bytes_as<std::int32_t>(expected) : bytes_of(expected);
  return want == run(context, store, probe.file, probe.entry,
                     kStandard + " -DMMA_TYPE=" +
                         std::to_string(probe.types[static_cast<std::size_t>(type)]) + probe.flags,
                     {operand(a), operand(b)}, want.size(), kRead, probe.items, probe.items);
}

bool right_half(cl::Context& context, store::Store& store) {
  const std::vector<float> src = {1.5F, 2.0F, -0.25F, -3.0F, 0.5F, 8.0F};
  const Bytes want = bytes_of(halves({2.75F, 6.5F}));
  return want == run(context, store, kHalfFile, "device_half", kStandard, {bytes_of(halves(src))},
                     want.size(), -1, 1, 1);
}

bool right_dot8(cl::Context& context, store::Store& store, Dot8 dot8) {
  // Products at both ends of their range, four with the same sign too: sums saturate where the
  // hardware adds two products in 16 bits.
  std::vector<std::int8_t> a, b;
  std::vector<std::int32_t> sums, expected;
  for (const int x : {-128, -127, -1, 0, 1, 127}) {
    for (const int y : {-128, -127, -1, 0, 1, 127}) {
      for (const int step : {0, 37}) {
        // Sums wrap around, which C allows for unsigned numbers only.
        auto sum = static_cast<std::uint32_t>(INT32_MAX - 1) - static_cast<std::uint32_t>(x * 1000);
        sums.push_back(static_cast<std::int32_t>(sum));
        for (int i = 0; i < 4; ++i) {
          a.push_back(static_cast<std::int8_t>(x + i * step));
          b.push_back(static_cast<std::int8_t>(y - i * step));
          sum += static_cast<std::uint32_t>(a.back() * b.back());
        }
        expected.push_back(static_cast<std::int32_t>(sum));
      }
    }
  }
  const Bytes want = bytes_of(expected);
  const std::string flags = kernel::dot8_flags(dot8);
  return want == run(context, store, kDot8File, "device_dot8",
                     (flags.empty() ? kStandard : flags) +
                         " -DDOT8=" + std::to_string(static_cast<int>(dot8)),
                     {bytes_of(a), bytes_of(b), bytes_of(sums)}, want.size(), -1, expected.size(),
                     1);
}

Dot8 find_dot8(cl::Context& context, store::Store& store, ProbedDevice& result) {
  const DeviceInfo& info = context.device().info;
  const auto lists = [&](const char* name) {
    return info.extensions.find(name) != info.extensions.npos;
  };
  struct Form {
    Dot8 number;
    bool possible;  // other compilers may end the process on another machine's instructions
    const char* name;
  };
  for (const Form& form :
       {Form{Dot8::kNvidia, info.is(GpuFamily::kNvidia), "the instruction dp4a"},
        Form{Dot8::kKhronos, lists("cl_khr_integer_dot_product"), "cl_khr_integer_dot_product"},
        Form{Dot8::kArm, lists("cl_arm_integer_dot_product_accumulate_int8"),
             "cl_arm_integer_dot_product_accumulate_int8"}}) {
    if (form.possible &&
        works(form.name, result, [&] { return right_dot8(context, store, form.number); }))
      return form.number;
  }
  return Dot8::kNone;
}

bool right_chain(cl::Context& context, store::Store& store, const plan::ChainLimits& limits) {
  const std::size_t items = std::max(limits.items, limits.slim_items);
  const std::uint32_t elements = static_cast<std::uint32_t>(limits.groups * items);
  std::vector<std::uint32_t> a(elements + 1);
  for (std::uint32_t i = 0; i < elements; ++i) a[i] = i;
  const Bytes start = bytes_of(a);
  constexpr std::uint32_t kStages = 64;  // as in the kernel
  for (std::uint32_t stage = 0; stage < kStages; ++stage) {
    const std::vector<std::uint32_t> from = a;
    for (std::uint32_t i = 0; i < elements; ++i)
      a[i] = from[(i + items + 7) % elements] * 3 + stage;
  }
  a[elements] = 0;
  return bytes_of(a) == run(context, store, kChainFile, "device_chain",
                            kStandard + " -DCHAIN_NVIDIA=" + (limits.nvidia ? "1" : "0") +
                                " -DITEMS=" + std::to_string(items),
                            {Bytes(3 * sizeof(std::uint32_t)), start}, start.size(),
                            static_cast<int>(limits.groups), elements, items);
}

// The capabilities that are probed, in the order of the stored digits; then the digit of dot8.
std::array<bool*, 5> facts(ProbedDevice& device) {
  DeviceInfo& info = device.info;
  return {&info.half_arithmetic, &info.mma_f16, &info.mma_tf32, &info.mma_s8, &info.wgmma};
}

// The major number of NVIDIA's compute capability; 0 if the driver does not tell.
cl::cl_uint compute_capability(const cl::Context& context) {
  cl::cl_uint major = 0;
  const cl::cl_int code =
      context.api().clGetDeviceInfo(context.device().id, cl::CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV,
                                    sizeof major, &major, nullptr);
  return code == cl::CL_SUCCESS ? major : 0;
}

ProbedDevice probe_now(cl::Context& context, store::Store& store) {
  ProbedDevice result{context.device().info, {}, true};
  DeviceInfo& info = result.info;
  // NVIDIA's compiler accepts half arithmetic without listing the extension. Of the CPUs, only
  // those that list it compute in half instead of converting to float for every operation.
  info.half_arithmetic = info.has_half;
  if (!info.has_half && !info.is_cpu()) {
    info.half_arithmetic =
        works("half arithmetic", result, [&] { return right_half(context, store); });
  }
  // Other compilers may end the process on another machine's instructions.
  if (info.is(GpuFamily::kNvidia)) {
    info.mma_f16 = works("the tensor cores' product of halves", result,
                         [&] { return right_mma(context, store, Mma::kHalf, kMma); });
    info.mma_tf32 = works("the tensor cores' product of TF32 numbers", result,
                          [&] { return right_mma(context, store, Mma::kTf32, kMma); });
    info.mma_s8 = works("the tensor cores' product of int8", result,
                        [&] { return right_mma(context, store, Mma::kInt8, kMma); });
    // Only for this generation: programs for another one build, and fail when they are launched.
    if (info.mma_f16 && info.mma_s8 && compute_capability(context) == kSm90aCapability) {
      info.wgmma = works("the tensor cores' product by four warps", result, [&] {
        return right_mma(context, store, Mma::kHalf, kWgmma) &&
               right_mma(context, store, Mma::kInt8, kWgmma);
      });
    }
  }
  info.dot8 = find_dot8(context, store, result);
  return result;
}

struct Known {
  std::mutex mutex;
  std::map<std::pair<const cl::Device*, std::string>, ProbedDevice> done;  // by the kernels' text
  std::map<const cl::Device*, ProbedDevice> pretended;
};
Known& known() {
  static auto* instance = new Known;
  return *instance;
}

std::atomic<std::size_t> pretended_groups{0};

// Bytes of the arguments of a kernel.
std::size_t parameter_bytes(const cl::Context& context) {
  constexpr cl::cl_uint kMaxParameterSize = 0x1017;
  std::size_t bytes = 0;
  const cl::cl_int code = context.api().clGetDeviceInfo(context.device().id, kMaxParameterSize,
                                                        sizeof bytes, &bytes, nullptr);
  return code == cl::CL_SUCCESS ? bytes : 1024;  // the least that OpenCL allows
}

}  // namespace

void pretend_chain_groups(std::size_t groups) { pretended_groups = groups; }

plan::ChainLimits chain_limits(cl::Context& context, store::Store& store) {
  constexpr std::size_t kItems = 256, kSlimItems = 512, kWord = 8, kOthers = 4, kFewStages = 4;
  const DeviceInfo& info = context.device().info;
  plan::ChainLimits limits;
  limits.groups = static_cast<std::size_t>(std::max(1, info.compute_units));
  limits.items = std::min(kItems, info.max_work_group_size);
  limits.local_bytes = info.local_bytes;
  limits.buffers = parameter_bytes(context) / kWord - kOthers;
  limits.nvidia = info.is(GpuFamily::kNvidia);
  if (limits.nvidia) limits.slim_items = std::min(kSlimItems, info.max_work_group_size);
  // Compilers that copy every function take minutes for many.
  if (!limits.nvidia) limits.stages = kFewStages;
  if (pretended_groups > 0) {
    limits.groups = pretended_groups;
    return limits;
  }
  const std::string key = sha256_hex(context.identity() + std::to_string(limits.groups) + " " +
                                     std::to_string(std::max(limits.items, limits.slim_items)) +
                                     "\n" + kernel::assemble(kChainFile));
  if (store.get(store::kProbe, key)) return limits;
  ProbedDevice result{info, {}, true};
  const auto works_with = [&](std::size_t groups) {
    limits.groups = groups;
    return works("a kernel whose work-groups wait for each other", result, [&] {
      const auto alone = context.whole_device();
      return right_chain(context, store, limits);
    });
  };
  // The threads of a CPU may start too late, or one may take all groups.
  constexpr int kAttempts = 3;
  for (int i = 0; i < kAttempts && limits.groups > 1; ++i) {
    if (!works_with(limits.groups)) continue;
    store.put(store::kProbe, key, "1", "chains on " + info.name);
    return limits;
  }
  // One work-group is enough for a CPU.
  if (!info.is_cpu() || !works_with(1)) limits.groups = 0;
  return limits;
}

void pretend_probe(const cl::Device& device, const ProbedDevice& facts) {
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().pretended.insert_or_assign(&device, facts);
}

void stop_pretending(const cl::Device& device) {
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().pretended.erase(&device);
}

ProbedDevice probe(cl::Context& context, store::Store& store) {
  const std::string text = kernel::assemble(kMmaFile) + kernel::assemble(kWgmmaFile) +
                           kernel::assemble(kHalfFile) + kernel::assemble(kDot8File);
  const std::lock_guard<std::mutex> lock(known().mutex);
  const auto& pretended = known().pretended;
  if (const auto found = pretended.find(&context.device()); found != pretended.end())
    return found->second;
  auto& done = known().done;
  const std::pair memory(&context.device(), text);
  if (const auto found = done.find(memory); found != done.end()) return found->second;
  ProbedDevice result{context.device().info, {}, true};
  const std::string key = sha256_hex(context.identity() + text);
  if (const auto kept = store.get(store::kProbe, key);
      kept && kept->size() == facts(result).size() + 1) {
    std::size_t i = 0;
    for (bool* fact : facts(result)) *fact = (*kept)[i++] == '1';
    result.info.dot8 = static_cast<Dot8>((*kept)[i] - '0');
  } else {
    result = probe_now(context, store);
    std::string value;
    for (const bool* fact : facts(result)) value += *fact ? '1' : '0';
    value += static_cast<char>('0' + static_cast<int>(result.info.dot8));
    // A failed probe is repeated, and reported.
    if (result.notes.empty())
      store.put(store::kProbe, key, value, "abilities of " + result.info.name);
  }
  if (!result.is_final) return result;
  return done.emplace(memory, std::move(result)).first->second;
}

}  // namespace clgpu::runtime
