// The report on a model's nodes: the data of Delegate.explain().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/refusal.hpp"
#include "delegate/failure.hpp"
#include "delegate/judgement.hpp"
#include "ir/graph.hpp"
#include "ops/work.hpp"
#include "passes/pass.hpp"

namespace clgpu::delegate {

struct NodeReport {
  int index = 0;
  std::string op;
  bool claimed = false;
  const char* computed = "inference";  ///< when: also "load", "planning"
  std::string reason;                  ///< how it is computed, if on the device
  std::optional<Refusal> refusal;      ///< why it stays on the CPU, if it does
  std::optional<int> fused_into;       ///< index of the node whose kernel computes it, too
  bool is_view = false;                ///< it computes nothing: its output is its input
  int partition = -1;                  ///< index into Report::partitions
  std::string family;     ///< whose kernels compute it; empty for views, folded and fused nodes
  std::string candidate;  ///< chosen kernel; empty for views, folded and fused nodes
  std::string chosen;     ///< why that one: "default", "forced"; empty without a kernel
  std::vector<std::string> candidates;  ///< those that work, in order of preference
  std::vector<std::pair<std::string, std::string>> refused;  ///< those that do not, and why
  std::vector<std::vector<int>> inputs, outputs;             ///< shapes
  std::vector<int> input_ids, output_ids;                    ///< the tensors of these shapes
  ops::Work work;  ///< of one inference; none without a kernel
  /// The kernel, as kernel::Candidate has it.
  bool adds_halves = false, tensor_cores = false;
  bool rounds_factors = false;  ///< tensor cores multiply less exact numbers than the stored floats
  /// Of the numbers that the kernel computes with: "fp32", "fp16" (halves), "tf32" (floats, factors
  /// are rounded), or the type of integers; empty without a kernel.
  const char* precision = "";
};

/// A tensor that nodes of the model read or write.
struct TensorReport {
  int id = 0;  ///< in TFLite's numbering
  std::string name;
  const char* type = "";
  std::int64_t bytes = 0;    ///< in the runtime's memory; 0 until the shape is known
  bool constant = false;     ///< stored in the model
  const char* storage = "";  ///< its type in device memory; empty if it is not there
};

/// A tensor's present shape and its bytes in the runtime's memory.
struct ShapeReport {
  std::vector<int> shape;
  std::int64_t bytes = 0;
};

struct PartitionReport {
  std::vector<int> nodes;
  int launches = 0;       ///< per inference
  int load_launches = 0;  ///< once, at load time
  std::int64_t arena_bytes = 0, weights_bytes = 0, naive_bytes = 0, bound_bytes = 0;
  std::int64_t load_peak_bytes = 0, peak_bytes = 0;  ///< of this partition alone
  std::string layout;                                ///< as plan::Plan has it
  std::vector<std::int64_t> objects;                 ///< bytes of the objects of the arena
  std::int64_t bytes_up = 0, bytes_down = 0;         ///< per inference, moves excluded
  struct Move {
    bool out = false;  ///< to the host; otherwise to the device
    std::string tensor;
    std::int64_t bytes = 0;
    int start = 0, finish = 0;  ///< may begin before launch `start`; launch `finish` waits
  };
  std::vector<Move> moves;  ///< per inference
  struct Border {
    int id = -1;  ///< of the tensor, in TFLite's numbering
    std::string tensor;
    std::int64_t bytes = 0;  ///< on the device
    std::vector<int> shape;
    const char* road = "";  ///< as plan::name_of has it; "host_pointer", "lent": nothing is copied
  };
  std::vector<Border> inputs, outputs;
  std::optional<Judgement> verification;  ///< none with verify="off"
  std::vector<ir::Step> steps;            ///< what the passes have done, in order
  /// Types in device memory of the tensors that its kernels read or write, by TFLite's number.
  std::map<int, const char*> storages;
  bool awaits = false;  ///< values of inputs decide on its plan
  int stage_of = -1;    ///< the partition of which it is a later stage; -1: of none
  /// Why no launches and no memory are known yet; empty once it is planned or left to the CPU.
  std::string unplanned;
  std::string on_cpu;  ///< why the CPU's kernels compute it at present; empty if the device does
};

/// Device memory of partitions that are built one after the other.
struct MemoryTotals {
  std::int64_t arena_bytes = 0, weights_bytes = 0;  ///< after building
  std::int64_t carried_bytes = 0;                   ///< of tensors that inferences hand on
  std::int64_t peak_bytes = 0;                      ///< including load time
};

/// `shared`: their arenas take turns in one pool, as runtime::Pool has it.
MemoryTotals memory_totals(const std::vector<PartitionReport>& partitions, bool shared);

/// A kernel launch of an inference, or a move between device and host, with its time.
struct LaunchTime {
  int node = 0;  ///< index in the model; of a move, the node that waits for it, or -1
  std::string op, candidate, entry;  ///< of a move: SWAP_OUT or SWAP_IN, "", the tensor
  double seconds = 0;
  std::int64_t bytes = 0;  ///< moved
};

/// A tensor in an object of device memory, between two launches of an inference.
struct MemoryBlock {
  std::string tensor;
  std::int64_t offset = 0, bytes = 0;
  int first = 0, last = 0;  ///< launches; -1 is the upload, their number the download
  const char* kind = "";    ///< "arena", "scratch" or "weights"
};

struct MemoryObject {
  const char* kind = "";  ///< "arena" or "weights"
  std::int64_t bytes = 0;
  std::vector<MemoryBlock> blocks;
};

struct PartitionMemory {
  int launches = 0;
  std::string layout;
  std::vector<MemoryObject> objects;
};

/// The result of the option 'placement'.
struct PlacementReport {
  std::string mode;    ///< "all", "auto", "measured"
  std::string choice;  ///< "all", "cpu" or "some"; of a measurement, its name
  std::string source;  ///< "cost model", "measured now", "kept"; empty of "all"
  std::string runtime;
  int threads = 0;
  std::vector<std::pair<std::string, double>> candidates;  ///< and their milliseconds
  /// A partition by the cost model.
  struct Judged {
    std::vector<int> nodes;
    double device_seconds = 0, cpu_seconds = 0;
    bool claimed = false;
  };
  std::vector<Judged> judged;
};

/// A fault of an engine on this device.
struct EngineFault {
  std::string kernel;     ///< "softmax/rows": family and candidate
  const char* kind = "";  ///< "fails", "group": needs smaller work-groups, "numbers": wrong ones
  std::string why;
};

/// The result of the option precision="mixed".
struct MixedReport {
  std::string model;        ///< digest of the model
  const char* source = "";  ///< "given" as the option, "kept" in the cache, or "": there is none
  std::shared_ptr<const passes::PrecisionPlan> plan;  ///< null if there is none
};

struct Report {
  std::string device, platform, precision;
  bool has_state = false;  ///< the model keeps values from one inference to the next
  std::vector<NodeReport> nodes;
  std::vector<TensorReport> tensors;  ///< by id
  std::vector<PartitionReport> partitions;
  /// With those of the interpreter's other graphs; none if memory_totals() of the above tells.
  std::optional<MemoryTotals> totals;
  PlacementReport placement;
  std::optional<MixedReport> mixed;  ///< none with another precision
  std::vector<EngineFault> faults;
  std::vector<std::string> notes;  ///< kernels that did not build, and the like
  std::optional<Failure>
      failure;  ///< the last error that was reported to the runtime for this model
};

}  // namespace clgpu::delegate
