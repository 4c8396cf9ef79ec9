#include "delegate/options.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/byte_size.hpp"
#include "base/join.hpp"
#include "ops/family.hpp"
#include "plan/choose.hpp"

namespace clgpu::delegate {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!part.empty()) parts.push_back(part);
      part.clear();
    } else if (c != ' ') {
      part += c;
    }
  }
  return parts;
}

[[noreturn]] void bad_value(const char* key, const std::string& value, const std::string& allowed) {
  throw OptionError(std::string("option '") + key + "' is '" + value + "'; allowed: " + allowed);
}

void parse_device(Options& options, const std::string& value) { options.device = value; }

void parse_precision(Options& options, const std::string& value) {
  if (value == "fp32") {
    options.precision = passes::Precision::kFp32;
  } else if (value == "fp16") {
    options.precision = passes::Precision::kFp16;
  } else if (value == "tf32") {
    options.precision = passes::Precision::kTf32;
  } else {
    bad_value("precision", value, "fp32, fp16, tf32");
  }
}

void parse_ops(Options& options, const std::string& value) {
  if (value != "all" && value != "core") bad_value("ops", value, "all, core");
  options.core_only = value == "core";
}

void parse_engines(Options& options, const std::string& value) {
  options.plan.engines.clear();
  for (const std::string& item : split(value)) {
    const auto equals = item.find('=');
    const std::string family = item.substr(0, equals);
    const auto& families = ops::all_families();
    const bool known = std::any_of(families.begin(), families.end(),
                                   [&](const auto* f) { return family == f->name; });
    const std::string engine = equals == std::string::npos ? "" : item.substr(equals + 1);
    const std::vector<std::string> names_asked = plan::alternatives(engine);
    const bool complete = std::none_of(names_asked.begin(), names_asked.end(),
                                       [](const std::string& name) { return name.empty(); });
    if (!complete || !known) {
      bad_value("engines", value,
                "family=engine|engine|auto, comma-separated, with a family of " +
                    join(families, ", ", [](const auto* f) { return f->name; }));
    }
    options.plan.engines[family] = engine;
  }
}

void parse_exclude(Options& options, const std::string& value) {
  const std::vector<std::string> items = split(value);
  options.exclude = {items.begin(), items.end()};
}

// A whole number from `least` to 999999.
int parse_count(const char* key, const std::string& value, int least) {
  const bool digits = !value.empty() && value.size() < 7 &&
                      value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(value) < least)
    bad_value(key, value, std::to_string(least) + " to 999999");
  return std::stoi(value);
}

void parse_min_nodes(Options& options, const std::string& value) {
  options.min_nodes = parse_count("min_nodes", value, 1);
}

void parse_row_band(Options& options, const std::string& value) {
  options.plan.row_band = parse_count("row_band", value, 0);
}

bool parse_switch(const char* key, const std::string& value) {
  if (value != "on" && value != "off") bad_value(key, value, "on, off");
  return value == "on";
}

void parse_warm_up(Options& options, const std::string& value) {
  options.warm_up = parse_switch("warm_up", value);
}

void parse_cache(Options& options, const std::string& value) {
  if (value.empty()) bad_value("cache", value, "auto, off, or the path of a file");
  options.cache = value;
}

void parse_tuning(Options& options, const std::string& value) {
  if (value == "auto") {
    options.tuning = Tuning::kAuto;
  } else if (value == "off") {
    options.tuning = Tuning::kOff;
  } else if (value == "exhaustive") {
    options.tuning = Tuning::kExhaustive;
  } else {
    bad_value("tuning", value, "auto, off, exhaustive");
  }
}

void parse_memory_pool(Options& options, const std::string& value) {
  if (value != "interpreter" && value != "process")
    bad_value("memory_pool", value, "interpreter, process");
  options.pool_of_process = value == "process";
}

void parse_share_memory(Options& options, const std::string& value) {
  options.plan.share_memory = parse_switch("share_memory", value);
}

std::int64_t parse_bytes(const char* key, const std::string& value) {
  const auto bytes = parse_byte_size(value);
  if (!bytes) bad_value(key, value, kByteSizeForm);
  return *bytes;
}

void parse_memory_budget(Options& options, const std::string& value) {
  options.plan.memory_budget = parse_bytes("memory_budget", value);
}

void parse_max_object(Options& options, const std::string& value) {
  options.plan.max_object = parse_bytes("max_object", value);
}

void parse_half_io(Options& options, const std::string& value) {
  options.half_io = parse_switch("half_io", value);
}

void parse_half_weights(Options& options, const std::string& value) {
  options.half_weights = parse_switch("half_weights", value);
}

void parse_dynamic_range(Options& options, const std::string& value) {
  if (value != "dequantize" && value != "hybrid")
    bad_value("dynamic_range", value, "dequantize, hybrid");
  options.dynamic_range =
      value == "hybrid" ? passes::DynamicRange::kHybrid : passes::DynamicRange::kDequantize;
}

void parse_zero_copy(Options& options, const std::string& value) {
  if (value != "auto" && value != "off") bad_value("zero_copy", value, "auto, off");
  options.plan.zero_copy = value == "auto";
}

void parse_profile(Options& options, const std::string& value) {
  options.profile = parse_switch("profile", value);
}

void parse_placement(Options& options, const std::string& value) {
  if (value == "all") {
    options.placement = Placement::kAll;
  } else if (value == "auto") {
    options.placement = Placement::kAuto;
  } else if (value == "measured") {
    options.placement = Placement::kMeasured;
  } else {
    bad_value("placement", value, "all, auto, measured");
  }
}

void parse_verify(Options& options, const std::string& value) {
  if (value == "off") {
    options.verify = kVerifyOff;
  } else if (value == "first") {
    options.verify = kVerifyFirst;
  } else {
    const bool is_count = value.size() < 7 && value.find_first_not_of("0123456789") == value.npos &&
                          value.find_first_not_of('0') != value.npos;
    if (!is_count) bad_value("verify", value, "off, first, 1 to 999999");
    options.verify = parse_count("verify", value, 1);
  }
}

}  // namespace

const std::vector<OptionInfo>& option_table() {
  static const std::vector<OptionInfo> table = {
      {"device", "", "index, or part of a device's or platform's name",
       "OpenCL device; empty takes CLGPU_DEVICE, else the first GPU, accelerator or CPU",
       parse_device},
      {"precision", "fp32", "fp32, fp16, tf32",
       "storage of float tensors on the device: float, half, or float with factors of products "
       "rounded to TF32 where it can; sums are kept in float",
       parse_precision},
      {"ops", "all", "all, core",
       "operations to claim; core is convolution, fully connected, matrix multiply, transpose, add",
       parse_ops},
      {"engines", "", "family=engine|engine|auto, comma-separated",
       "kernels to use for families of operations; auto as the last engine leaves the other nodes "
       "to the delegate's choice",
       parse_engines},
      {"exclude", "", "node indexes or operation names, comma-separated",
       "nodes to leave on the CPU", parse_exclude},
      {"min_nodes", "1", "1 to 999999", "partitions with fewer nodes stay on the CPU",
       parse_min_nodes},
      {"warm_up", "on", "on, off",
       "run each kernel once at load time, so that the first inference is not slower",
       parse_warm_up},
      {"cache", "auto", "auto, off, or the path of a file",
       "where tuned choices and program binaries are kept; auto takes CLGPU_CACHE, else the user's "
       "cache folder",
       parse_cache},
      {"tuning", "auto", "auto, off, exhaustive",
       "use the kernels measured as the fastest; exhaustive measures at load time those that have "
       "not been measured before",
       parse_tuning},
      {"half_io", "off", "on, off",
       "with fp16, store the model's float inputs and outputs as half too; the host converts them",
       parse_half_io},
      {"memory_budget", "", kByteSizeForm,
       "device memory that a model may take, weights included; empty: what the device has",
       parse_memory_budget},
      {"max_object", "", kByteSizeForm, "largest single buffer; empty: what the device allows",
       parse_max_object},
      {"row_band", "0", "0 to 999999",
       "rows computed at a time, through chains of nodes; 0: bands only where memory is short",
       parse_row_band},
      {"memory_pool", "interpreter", "interpreter, process",
       "who takes turns in one arena: the partitions of an interpreter, or all with this option in "
       "the process, whose inferences then wait for each other",
       parse_memory_pool},
      {"half_weights", "off", "on, off",
       "store large weights as half where they fit; arithmetic and other tensors stay as they are",
       parse_half_weights},
      {"dynamic_range", "dequantize", "dequantize, hybrid",
       "how floats are multiplied by int8 weights: the weights are dequantised on the fly, or the "
       "floats are quantised row by row, as the stock runtime does",
       parse_dynamic_range},
      {"zero_copy", "auto", "auto, off",
       "auto: where device and host share memory, the device works on the runtime's inputs and "
       "outputs in place, or they are copied by way of mapped objects; off: the driver copies them",
       parse_zero_copy},
      {"share_memory", "on", "on, off",
       "let intermediate tensors share memory; off helps to debug kernels", parse_share_memory},
      {"profile", "off", "on, off",
       "record when each launch and transfer was queued, submitted, started and ended",
       parse_profile},
      {"placement", "all", "all, auto, measured",
       "which nodes the device computes: all that it can, those that a cost model expects to be "
       "faster there, or those measured as the fastest",
       parse_placement},
      {"verify", "off", "off, first, 1 to 999999",
       "compare the first inference, or every Nth one, with the CPU's kernels, and replace what is "
       "wrong",
       parse_verify},
  };
  return table;
}

void add_option(std::map<std::string, std::string>& options, const char* key, const char* value) {
  if (key == nullptr) throw OptionError("the key of an option is null");
  if (value == nullptr) throw OptionError(std::string("option '") + key + "' is null");
  if (!options.emplace(key, value).second)
    throw OptionError(std::string("option '") + key + "' is given twice");
}

Options parse_options(const std::map<std::string, std::string>& values) {
  Options options;
  options.plan.zero_copy = true;
  for (const auto& entry : values) {
    const std::string& key = entry.first;
    const auto& table = option_table();
    const auto info =
        std::find_if(table.begin(), table.end(), [&](const OptionInfo& o) { return key == o.key; });
    if (info == table.end()) {
      throw OptionError("unknown option '" + key + "'; options are: " +
                        join(table, ", ", [](const OptionInfo& o) { return o.key; }));
    }
    if (entry.second.find_first_of(":;") != std::string::npos) {
      // TFLite's command line tools split "key:value;key:value" at these.
      throw OptionError("option '" + key + "' is '" + entry.second +
                        "'; ':' and ';' are not allowed");
    }
    info->parse(options, entry.second);
  }
  options.half_io = options.half_io && options.precision == passes::Precision::kFp16;
  if (options.device.empty()) {
    if (const char* device = std::getenv("CLGPU_DEVICE"); device != nullptr)
      options.device = device;
  }
  return options;
}

}  // namespace clgpu::delegate
