// Options of a delegate: one table of key, default, allowed values and documentation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cl/context_options.hpp"
#include "passes/pass.hpp"
#include "plan/plan.hpp"

namespace clgpu::delegate {

enum class Tuning {
  kAuto,        ///< use what has been measured before
  kOff,         ///< the defaults
  kExhaustive,  ///< measure at load time what has not been measured before
};

enum class Placement {
  kAll,       ///< the device takes all that it can
  kAuto,      ///< partitions that a cost model expects to be slower stay on the CPU
  kMeasured,  ///< what was measured as the fastest for this model; unmeasured models: kAuto
};

enum class Chain {
  kAuto,  ///< where that is faster, on NVIDIA's GPUs
  kOff,
  kOn,  ///< on every device whose work-groups can wait for each other
};

enum class CommandList {
  kAuto,  ///< where that is faster, except on CPUs
  kOff,
  kOn,  ///< on every device whose driver has an extension for it
};

/// A tensor that stays on the device between inferences: in each of these graphs an input, whose
/// next value is an output.
struct CarriedTensor {
  struct Pair {
    /// Indices of tensors. The same: the output has no input, and stays for others to read.
    int input, output;
  };
  std::string name;
  std::map<int, Pair> graphs;  ///< by index of the graph in the model
  /// If not negative, each inference finds the largest elements, as find_largest() does with this
  /// count (delegate/building/largest.hpp).
  int largest = -1;
};

/// Special values of Options::verify; n > 0 means the first inference and every n-th after it.
constexpr int kVerifyOff = 0, kVerifyFirst = -1;

struct Options {
  std::string device;          ///< index, part of a name, or empty for the best
  cl::ContextOptions context;  ///< priority, performance, isolated builds
  passes::Precision precision = passes::Precision::kFp32;
  /// With kMixed: the plan that the option has; null: the one of the cache.
  std::shared_ptr<const passes::PrecisionPlan> mixed;
  bool core_only = false;         ///< ops="core"
  plan::PlanOptions plan;         ///< forced candidates, sharing of memory
  std::set<std::string> exclude;  ///< node indexes and operation names left on the CPU
  int min_nodes = 1;              ///< smaller partitions stay on the CPU
  bool warm_up = true;
  bool pool_of_process = false;  ///< arenas are shared with other delegates
  std::string cache = "auto";    ///< as store::Store::of_option
  Tuning tuning = Tuning::kAuto;
  bool half_io = false;  ///< with fp16 or a plan: inputs and outputs are half on the device, too
  bool half_weights = false;  ///< without fp16: large weights are half on the device
  bool half_sums = false;     ///< with fp16 and mixed: products are added in half, block by block
  passes::DynamicRange dynamic_range = passes::DynamicRange::kDequantize;
  passes::Experts experts = passes::Experts::kSparse;
  bool profile = false;  ///< events of every launch and transfer are recorded
  Placement placement = Placement::kAll;
  Chain chain = Chain::kAuto;                     ///< launches run as stages of one kernel
  CommandList command_list = CommandList::kAuto;  ///< launches are recorded once by the driver
  std::vector<CarriedTensor> carry;               ///< that the runtime neither gives nor gets
  int verify = kVerifyOff;  ///< which inferences are computed by the CPU's kernels, too
};

/// Which values an option takes.
struct OptionType {
  /// "choice" of words, "switch", "count", "choice or count", "choice or number", "choice or plan",
  /// "bytes", "path", "device", "engines", "nodes", "carried".
  const char* kind;
  std::vector<std::string> words;  ///< for choices and switches; other kinds have another form
  int least, most;                 ///< of counts
  std::string allowed;             ///< for messages
  std::function<bool(Options&, const std::string& value)> read;  ///< false: not allowed
};

struct OptionInfo {
  const char* key;
  const char* default_value;
  OptionType type;
  const char* help;  ///< a phrase in plain words, for the command line and tables
  const char* more;  ///< sentences that follow it in Python's documentation, with its marks
};

/// All options.
const std::vector<OptionInfo>& option_table();

/// Adds a pair that a C caller gives. Throws OptionError for null, and for a key given twice.
void add_option(std::map<std::string, std::string>& options, const char* key, const char* value);

/// Parses key-value pairs; an empty `device` is taken from the environment variable CLGPU_DEVICE.
/// Throws OptionError naming the key, the value and what is allowed.
Options parse_options(const std::map<std::string, std::string>& values);

}  // namespace clgpu::delegate
