#include "delegate/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <locale>
#include <optional>
#include <sstream>
#include <utility>

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

// Setters, one for each kind of value.
template <typename T>
using Set = void (*)(Options&, T);

[[noreturn]] void bad_value(const char* key, const std::string& value, const std::string& allowed) {
  throw OptionError(std::string("option '") + key + "' is '" + value + "'; allowed: " + allowed);
}

constexpr int kMostCount = 999'999;

std::string range_from(int least) {
  return std::to_string(least) + " to " + std::to_string(kMostCount);
}

// An integer from `least` to kMostCount.
std::optional<int> parse_count(const std::string& value, int least) {
  const bool digits = !value.empty() && value.size() < 7 &&
                      value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(value) < least) return std::nullopt;
  return std::stoi(value);
}

OptionType free_text(const char* kind, const char* allowed,
                     bool (*read)(Options&, const std::string&)) {
  return {kind, {}, 0, 0, allowed, read};
}

OptionType a_switch(Set<bool> set) {
  return {
      "switch", {"on", "off"}, 0, 0, "on, off", [set](Options& options, const std::string& value) {
        if (value != "on" && value != "off") return false;
        set(options, value == "on");
        return true;
      }};
}

OptionType a_count(int least, Set<int> set) {
  return {"count",
          {},
          least,
          kMostCount,
          range_from(least),
          [least, set](Options& options, const std::string& value) {
            const auto count = parse_count(value, least);
            if (count) set(options, *count);
            return count.has_value();
          }};
}

OptionType a_size(Set<std::int64_t> set) {
  return {"bytes", {}, 0, 0, kByteSizeForm, [set](Options& options, const std::string& value) {
            const auto bytes = parse_byte_size(value);
            if (bytes) set(options, *bytes);
            return bytes.has_value();
          }};
}

template <typename T>
OptionType one_of(const std::vector<std::pair<const char*, T>>& words, Set<T> set) {
  OptionType type{"choice", {}, 0, 0, "", nullptr};
  for (const auto& word : words) {
    type.words.push_back(word.first);
    type.allowed += (type.allowed.empty() ? "" : ", ") + type.words.back();
  }
  type.read = [words, set](Options& options, const std::string& value) {
    for (const auto& word : words) {
      if (value != word.first) continue;
      set(options, word.second);
      return true;
    }
    return false;
  };
  return type;
}

// One of the words, or an integer not less than `least`.
OptionType one_of_or_count(const std::vector<std::pair<const char*, int>>& words, int least,
                           Set<int> set) {
  OptionType type = one_of<int>(words, set);
  type.kind = "choice or count";
  type.least = least;
  type.most = kMostCount;
  type.allowed += ", " + range_from(least);
  type.read = [word = type.read, number = a_count(least, set).read](Options& options,
                                                                    const std::string& value) {
    return word(options, value) || number(options, value);
  };
  return type;
}

// "off", or a number that is not negative.
OptionType off_or_number(Set<std::optional<float>> set) {
  OptionType type{"choice or number", {"off"}, 0, 0, "off, or a number from 0 on", nullptr};
  type.read = [set](Options& options, const std::string& value) {
    std::optional<float> number;
    if (value != "off") {
      std::istringstream text(value);
      text.imbue(std::locale::classic());
      float read = 0;
      text >> std::noskipws >> read;
      if (text.fail() || !text.eof() || !(read >= 0) || std::isinf(read)) return false;
      number = read;
    }
    set(options, number);
    return true;
  };
  return type;
}

OptionType a_level(Set<cl::Level> set) {
  return one_of<cl::Level>({{"default", cl::Level::kDefault},
                            {"low", cl::Level::kLow},
                            {"normal", cl::Level::kNormal},
                            {"high", cl::Level::kHigh}},
                           set);
}

constexpr const char* kPlanForm = "a plan";

// One of the words, or a plan of precisions.
OptionType a_precision() {
  using passes::Precision;
  OptionType type = one_of<Precision>({{"fp32", Precision::kFp32},
                                       {"fp16", Precision::kFp16},
                                       {"tf32", Precision::kTf32},
                                       {"mixed", Precision::kMixed}},
                                      [](Options& o, Precision value) {
                                        o.precision = value;
                                        o.mixed.reset();
                                      });
  type.kind = "choice or plan";
  type.allowed += std::string(", ") + kPlanForm;
  type.read = [word = type.read](Options& options, const std::string& value) {
    if (word(options, value)) return true;
    const auto plan = passes::read_precision_plan(value);
    if (!plan) return false;
    options.precision = Precision::kMixed;
    options.mixed = std::make_shared<const passes::PrecisionPlan>(*plan);
    return true;
  };
  return type;
}

bool read_engines(Options& options, const std::string& value) {
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
  return true;
}

// "kv_0=0/5/12+1/6/13": in graph 0 the input is tensor 5 and the output 12, in graph 1 6 and 13.
// "logits=0/9/9/0": an output that stays, of which each inference finds the largest element.
bool read_carried(Options& options, const std::string& value) {
  options.carry.clear();
  for (const std::string& item : split(value)) {
    const auto equals = item.find('=');
    if (equals == 0 || equals == std::string::npos) return false;
    CarriedTensor tensor{item.substr(0, equals), {}, -1};
    const bool known = std::any_of(options.carry.begin(), options.carry.end(),
                                   [&](const CarriedTensor& t) { return t.name == tensor.name; });
    if (known) return false;
    std::string rest = item.substr(equals + 1) + "+";
    while (!rest.empty()) {
      const auto end = rest.find('+');
      std::string numbers = rest.substr(0, end) + "/";
      rest.erase(0, end + 1);
      std::vector<int> parts;
      while (!numbers.empty()) {
        const auto slash = numbers.find('/');
        const auto part = parse_count(numbers.substr(0, slash), 0);
        if (!part) return false;
        parts.push_back(*part);
        numbers.erase(0, slash + 1);
      }
      const int largest = parts.size() == 4 ? parts[3] : -1;
      if (parts.size() != 3 && (parts.size() != 4 || parts[1] != parts[2])) return false;
      if (!tensor.graphs.empty() && largest != tensor.largest) return false;
      tensor.largest = largest;
      if (!tensor.graphs.emplace(parts[0], CarriedTensor::Pair{parts[1], parts[2]}).second)
        return false;
    }
    options.carry.push_back(std::move(tensor));
  }
  return true;
}

}  // namespace

// Order, names, defaults, allowed values and meaning. All other places are generated from this
// table or compared with it (CONTRIBUTING.md, "A new option").
const std::vector<OptionInfo>& option_table() {
  static const std::vector<OptionInfo> table = {
      {"device", "",
       free_text("device", "index, or part of a device's or platform's name",
                 [](Options& o, const std::string& value) { return o.device = value, true; }),
       "OpenCL device: its index, or part of its own or its platform's name; empty: the variable "
       "CLGPU_DEVICE, or without it the first GPU, accelerator or CPU",
       "`clgpu_delegate.devices` lists indices and names; upper and lower case are the same."},
      {"precision", "fp32", a_precision(),
       "how float tensors are stored on the device: as float, as half, as float, but with factors "
       "of products rounded to TF32 where that is faster, or each as a plan says; sums are "
       "kept in float unless sums says otherwise",
       R"(``"tf32"`` rounds the factors to 10 bits of mantissa where the device multiplies such
numbers faster (NVIDIA's tensor cores); ``"fp16"`` may do the same. ``"mixed"``: the plan that
`clgpu_delegate.tune` with ``max_error`` has kept for this model and this device; ``"fp32"`` where
there is none. A plan is also accepted itself: a `clgpu_delegate.PrecisionPlan`, or the path of its
file, which ends in ``.json``.)"},
      {"sums", "float",
       one_of<bool>({{"float", false}, {"half", true}},
                    [](Options& o, bool value) { o.half_sums = value; }),
       "with precision fp16, mixed or a plan: whether products are added in float, or up to 32 at "
       "a time in half and these sums in float, which GPUs of phones do at twice the rate",
       R"(``"half"``: convolutions, FULLY_CONNECTED and BATCH_MATMUL have such kernels, which come first on
Adreno, Mali and PowerVR; other devices take them if `clgpu_delegate.tune` finds them faster or ``engines``
names them. `Node.sums` tells what each node adds. The error of a network is one to three times that of
fp16 with float sums. A sum of 32 products beyond 65504 becomes infinite. With another precision, or on a device without half arithmetic, sums are float, and a note of `Delegate.explain` says
so.)"},
      {"ops", "all",
       one_of<bool>({{"all", false}, {"core", true}},
                    [](Options& o, bool value) { o.core_only = value; }),
       "operations to claim; core has convolutions, fully connected layers, matrix products, "
       "transposes and additions only",
       ""},
      {"engines", "",
       free_text("engines", "family=engine|engine|auto, comma-separated", read_engines),
       "kernels to use, as family=engine,family=engine; auto as the last engine of a family leaves "
       "the other nodes to the delegate's choice",
       R"(In Python also as ``{family: engine}``. An engine is a candidate's name or the part of it
before an underscore. Alternatives are separated by ``|``: with ``{"conv2d": "winograd|auto"}``
Winograd computes every convolution that it supports, and the delegate chooses for the others. A
node that no alternative can compute is an error of the interpreter that names the node and the
reason.)"},
      {"exclude", "",
       free_text("nodes", "node indexes or operation names, comma-separated",
                 [](Options& o, const std::string& value) {
                   const std::vector<std::string> items = split(value);
                   o.exclude = {items.begin(), items.end()};
                   return true;
                 }),
       "nodes to leave on the CPU: indices or operation names, separated by commas",
       "In Python also as a list."},
      {"min_nodes", "1", a_count(1, [](Options& o, int value) { o.min_nodes = value; }),
       "partitions of fewer nodes stay on the CPU", ""},
      {"warm_up", "on", a_switch([](Options& o, bool value) { o.warm_up = value; }),
       "run each kernel once while loading, so that the first inference is as fast as the others",
       ""},
      {"cache", "auto",
       free_text("path", "auto, off, or the path of a file",
                 [](Options& o, const std::string& value) {
                   if (!value.empty()) o.cache = value;
                   return !value.empty();
                 }),
       "where tuned choices and compiled programs are stored for later processes: the path of a "
       "file, off, or auto: the variable CLGPU_CACHE, or without it a file in the user's cache "
       "folder",
       "The file in that folder is ``clgpu_delegate/cache.sqlite``."},
      {"tuning", "auto",
       one_of<Tuning>(
           {{"auto", Tuning::kAuto}, {"off", Tuning::kOff}, {"exhaustive", Tuning::kExhaustive}},
           [](Options& o, Tuning value) { o.tuning = value; }),
       "whether to use the kernels that were measured as the fastest; exhaustive also measures, "
       "while "
       "loading, layers without measurements",
       R"(``"auto"``: use the kernels that `clgpu_delegate.tune` has measured as the fastest.
``"off"``: do not use them. ``"exhaustive"`` may take minutes once.)"},
      {"chain", "auto",
       one_of<Chain>({{"auto", Chain::kAuto}, {"off", Chain::kOff}, {"on", Chain::kOn}},
                     [](Options& o, Chain value) { o.chain = value; }),
       "whether consecutive kernel launches run as the stages of one kernel",
       R"(That saves the time of the launches, which is most of the time of small networks. ``"auto"``: on
NVIDIA's GPUs, where it was measured to be faster while loading, chain by chain. ``"on"``: without
measuring, on every device whose work-groups can wait for each other. A chain whose kernel was measured
to take more than 0.1 s is divided, since displays and phones stop long kernels. Inferences that are
profiled or in flight are launched kernel by kernel. ``"off"`` also launches one by one what is a bundle
otherwise, on CPUs, too: small launches side by side in one. See `Delegate.stats`.)"},
      {"command_list", "auto",
       one_of<CommandList>(
           {{"auto", CommandList::kAuto}, {"off", CommandList::kOff}, {"on", CommandList::kOn}},
           [](Options& o, CommandList value) { o.command_list = value; }),
       "whether the driver records the kernel launches of an inference once and then takes them in "
       "one call",
       R"(That saves host time where a launch costs much. It needs one of the extensions
``cl_khr_command_buffer`` and ``cl_qcom_recordable_queues`` (Adreno). ``"auto"``: where it was measured
to be faster while loading, except on CPUs. ``"on"``: without measuring, wherever a driver has one of
them. Inferences that are profiled, and models whose launches run in chains (see ``chain``), whose
tensors wait on the host, or with a WHILE or IF that the host runs, are launched kernel by kernel. See `Delegate.stats`.)"},
      {"half_io", "off", a_switch([](Options& o, bool value) { o.half_io = value; }),
       "with fp16 or a plan, store the model's float inputs and outputs as half, too",
       "The host converts them, which halves their transfer and rounds the outputs to half. Give "
       "it to "
       "`tune` with ``max_error``, too: the bound of a plan counts these roundings only then. "
       "``precision=\"mixed\"`` without a plan is fp32, where it has no effect."},
      {"memory_budget", "",
       a_size([](Options& o, std::int64_t value) { o.plan.memory_budget = value; }),
       "device memory that a model may take, its weights included, such as 64 MiB or 1.5 GB; "
       "empty: "
       "the memory of the device",
       R"(Bytes, or a text with a unit (of 1024 or of 1000). To stay within it, large tensors are
computed band by band, or wait on the host between their uses, and weights are uploaded when they
are needed. A budget that no plan meets is an error of the interpreter that names the smallest one
that is sufficient. None means the same as empty.)"},
      {"max_object", "", a_size([](Options& o, std::int64_t value) { o.plan.max_object = value; }),
       "largest single buffer, in the form of memory_budget; empty: the limit of the device",
       "It never exceeds the limit of the device. None means the same as empty."},
      {"row_band", "0", a_count(0, [](Options& o, int value) { o.plan.row_band = value; }),
       "rows of an image that nodes in a row compute at a time; 0: bands only if memory_budget or "
       "max_object require them, with as many rows as fit",
       R"(Wherever bands are possible, the tensors between the nodes never exist as a whole. With ``reuse``
these are rows of the inputs, nodes with bands keep their whole results, and 0 means as many rows as
seem worth a launch.)"},
      {"reuse", "off",
       off_or_number([](Options& o, std::optional<float> value) { o.plan.reuse = value; }),
       "for sequences of inputs that are alike, such as frames of a camera: the largest change of "
       "an element of an input that does not count; what depends on rows without changes is kept "
       "from the inference before",
       R"(In units of the inputs, of integers in steps. The results are those of inputs that differ from
the ones given by at most this much in each element; 0 keeps only what equal inputs give. Kept tensors
take device memory of their own. ``"off"``: everything is computed each time.)"},
      {"half_weights", "off", a_switch([](Options& o, bool value) { o.half_weights = value; }),
       "store large weights as half on the device, where they fit, while arithmetic and the other "
       "tensors follow precision",
       R"(With ``"fp16"`` they are half anyway.)"},
      {"dynamic_range", "dequantize",
       one_of<passes::DynamicRange>(
           {{"dequantize", passes::DynamicRange::kDequantize},
            {"hybrid", passes::DynamicRange::kHybrid}},
           [](Options& o, passes::DynamicRange value) { o.dynamic_range = value; }),
       "how a model with int8 weights and float activations is computed: in float, or in integers "
       "as "
       "TensorFlow Lite does",
       R"(``"dequantize"``: the weights stay int8 in memory and are read as the floats they stand for.
``"hybrid"``: TFLite's own arithmetic, which quantises activations to int8 row by row and multiplies
integers.)"},
      {"experts", "sparse",
       one_of<passes::Experts>(
           {{"sparse", passes::Experts::kSparse}, {"dense", passes::Experts::kDense}},
           [](Options& o, passes::Experts value) { o.experts = value; }),
       "whether experts of a mixture that no sample has chosen are skipped on the device, or "
       "computed and multiplied by zero",
       R"(``"sparse"``: kernels of an expert look at its gate, which a TOPK_V2 has made sparse, and return if
it is zero, or compute the experts that were chosen together; matrices of experts that are gathered
by index are read in place; kernels of small graphs of an IF look at its condition. The result is
zero where the gate is zero, even where the expert's own result would be infinite or NaN;
``"dense"`` gives NaN there, as the runtime does, and the host chooses between the graphs of an IF.)"},
      {"zero_copy", "auto",
       one_of<bool>({{"auto", true}, {"off", false}},
                    [](Options& o, bool value) { o.plan.zero_copy = value; }),
       "whether inputs and outputs are used without a copy where device and host share memory",
       R"(``"auto"``: where they do, CPUs work on the interpreter's inputs and outputs in place, and
other devices get them through mapped objects. ``"off"``: the driver always copies them, as it does
for devices with separate memory. See `Delegate.stats`.)"},
      {"pin_tensors", "off", a_switch([](Options& o, bool value) { o.plan.pin_tensors = value; }),
       "lock the memory of the runtime's inputs and outputs in place while it stays where it is, "
       "so "
       "that devices with memory of their own copy it faster",
       R"(For tensors of 64 KiB and more on such devices, from the second inference on, which takes up
to a millisecond longer. The driver keeps the pages: the application must not free, unmap or replace
this memory between inferences except by `allocate_tensors` and by the end of the interpreter, or the
device reads and writes the old pages. See `Delegate.stats`.)"},
      {"share_memory", "on", a_switch([](Options& o, bool value) { o.plan.share_memory = value; }),
       "let intermediate tensors share memory where their lifetimes allow",
       R"(If off, each has a separate buffer filled with NaN, which exposes kernels that read unwritten
elements.)"},
      {"memory_pool", "interpreter",
       one_of<bool>({{"interpreter", false}, {"process", true}},
                    [](Options& o, bool value) { o.pool_of_process = value; }),
       "what shares one pool of memory for intermediate tensors: the partitions of an interpreter, "
       "or "
       "all interpreters of the process with this option",
       R"(``"interpreter"``: its partitions never run at the same time. ``"process"``: all
interpreters of the process whose delegates have this option and use the same device; their
inferences wait for each other.)"},
      {"profile", "off", a_switch([](Options& o, bool value) { o.profile = value; }),
       "record when each kernel launch and each transfer was queued, submitted, started and ended "
       "on "
       "the device",
       "`Delegate.profile` returns these times."},
      {"placement", "all",
       one_of<Placement>({{"all", Placement::kAll},
                          {"auto", Placement::kAuto},
                          {"measured", Placement::kMeasured}},
                         [](Options& o, Placement value) { o.placement = value; }),
       "which supported nodes run on the device: all, those that a cost model expects to be faster "
       "there, or those of the fastest measured placement",
       R"(``"auto"``: without partitions that a cost model expects to be slower than the CPU.
``"measured"``: the nodes of the fastest placement measured for this model on this device, possibly
none; the cache stores the verdict.)"},
      {"priority", "default",
       a_level([](Options& o, cl::Level value) { o.context.priority = value; }),
       "priority of the model's work on the device, before the work of other queues or "
       "applications; default: the driver is not told",
       R"(A hint, for devices that list ``cl_khr_priority_hints`` or ``cl_qcom_priority_hint``; on others, and
where the driver refuses it, a note says that it has no effect. Work of high priority may make a
user interface that the same GPU draws late.)"},
      {"performance", "default",
       a_level([](Options& o, cl::Level value) { o.context.performance = value; }),
       "clock rates of the device while it works on the model, for GPUs of Qualcomm; default: the "
       "driver is not told",
       R"(A hint, for devices that list ``cl_qcom_perf_hint``: a high level takes more power. On others, and
where the driver refuses it, a note says that it has no effect.)"},
      {"isolate_builds", "auto",
       one_of<cl::IsolateBuilds>(
           {{"auto", cl::IsolateBuilds::kAuto},
            {"off", cl::IsolateBuilds::kOff},
            {"on", cl::IsolateBuilds::kOn}},
           [](Options& o, cl::IsolateBuilds value) { o.context.isolate_builds = value; }),
       "whether a child process builds each program first, so that a compiler that ends the "
       "process does not end this one",
       R"(``"auto"``: with drivers whose compilers were not tested, such as Mesa's. A candidate at whose program
the child ends twice is left out. Programs that the cache has need no child. Not on Android, where
apps start no programs of their own.)"},
      {"carry", "",
       free_text("carried",
                 "name=graph/input/output+graph/input/output, or name=graph/output/output/number, "
                 "comma-separated",
                 read_carried),
       "tensors that stay on the device between inferences, as name=graph/input/output with the "
       "indices of a graph, of its input and of the output with the next value, and further graphs "
       "after a plus sign",
       R"(Such as the caches of a language model, see `clgpu_delegate.Generator`, which sets this
option. The interpreter's tensors are neither read nor written: `Delegate.carried` has the values,
which begin as zeros. An output as its own input, such as ``0/9/9``, only stays on the device; with
a number behind it, as in ``0/9/9/40``, each inference also finds so many of the largest elements of
each row, with 0 the index of the largest and the sum. In a graph where other nodes than those of one partition use them, they are
ordinary inputs and outputs.)"},
      {"verify", "off",
       one_of_or_count({{"off", kVerifyOff}, {"first", kVerifyFirst}}, 1,
                       [](Options& o, int value) { o.verify = value; }),
       "compute the first inference, or every Nth one, with the CPU's kernels, too, and replace "
       "wrong "
       "results",
       R"(``"first"``: the first inference of each interpreter; a number N: every Nth one, the first
included. Wrong parts use safer kernels from then on. ``"off"``: nothing is checked.)"},
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
  for (const OptionInfo& info : option_table()) {
    const std::string text = info.default_value;
    if (!text.empty()) info.type.read(options, text);  // empty: the default of Options
  }
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
      // TFLite's command line tools split "key:value;key:value" at these characters.
      throw OptionError("option '" + key + "' is '" + entry.second +
                        "'; ':' and ';' are not allowed");
    }
    if (!info->type.read(options, entry.second))
      bad_value(info->key, entry.second, info->type.allowed);
  }
  options.half_io = options.half_io && (options.precision == passes::Precision::kFp16 ||
                                        options.precision == passes::Precision::kMixed);
  if (options.device.empty()) {
    if (const char* device = std::getenv("CLGPU_DEVICE"); device != nullptr)
      options.device = device;
  }
  return options;
}

}  // namespace clgpu::delegate
