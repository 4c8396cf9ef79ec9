// The plan of one partition: every launch, every buffer, every transfer, as plain data. It is made
// without touching a device and can be printed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/device_info.hpp"
#include "base/error.hpp"
#include "ir/graph.hpp"
#include "kernel/launch.hpp"
#include "ops/work.hpp"

namespace clgpu::plan {

struct Buffer {
  enum class Place {
    kArena,    ///< in an object of the arena, shared by lifetime
    kWeights,  ///< kept on the device between runs
    kLoad,     ///< needed at load time only, then freed
    kHost,     ///< the runtime's memory of an input or output
    kCarried,  ///< kept on the device between runs, for all partitions of an interpreter
    kKept,     ///< kept on the device between runs, written by launches of each
    kNowhere,  ///< not needed at all
  };
  std::string name;
  Place place = Place::kArena;
  std::int64_t bytes = 0;
  int object = 0;           ///< arena only: index into Plan::objects
  std::int64_t offset = 0;  ///< arena only: bytes from the object's start
  std::int64_t span = 0;    ///< arena only: bytes kept for it there, `bytes` or more
  /// Arena only: tensors lie in different places of the object, so kernels get sub-buffers for all
  /// of them: a kernel must not have an object and a part of it as arguments if it writes one.
  bool is_part = false;
  int first = 0, last = -1;  ///< arena only: run steps that need it; uploads are -1
  int carried = -1;          ///< carried only: its number, ir::Tensor::carried
  bool scratch = false;      ///< a candidate's own memory
  std::shared_ptr<const ir::Constant> upload;  ///< written at load time; null if a launch writes it
  DType storage = DType::kF32;
};

/// One launch with its buffers bound.
struct Step {
  int node = -1;  ///< index of the node in the model
  std::string op, family, candidate;
  kernel::Launch launch;
  std::vector<int> buffers;   ///< one per Operand argument of the launch, in order
  bool tensor_cores = false;  ///< as kernel::Candidate has it
  bool bundled = false;       ///< as ir::OpKind has it
  /// Of a launch that runs graphs: the node in the graph that was planned; else -1.
  int position = -1;
};

/// The transfer method of an input or output; the fallback of each is the next one.
enum class Road {
  kHostPointer,  ///< not at all: the device works on the runtime's memory
  kMapped,       ///< the host copies or converts them in a mapped object
  kCopy,         ///< the driver copies them
};

struct Transfer {
  int tensor;  ///< index in the graph's tensors
  int buffer;
  std::int64_t bytes;       ///< on the device, and over the bus
  std::int64_t host_bytes;  ///< differs where the host converts between float and half
  Road road = Road::kCopy;  ///< the best that this device and the options allow
  std::string reason{};     ///< why not a better one
  bool pinned = false;      ///< the runtime's memory may be locked in place for copies
  /// By the road kCopy to pinned memory of ours first, because of few bytes: the host copies them
  /// in less time than a driver takes to read into other memory, which NVIDIA's does command by
  /// command (20 us and more of each but the last).
  bool by_block = false;
};

/// What the graphs say of a carried tensor. All of them must say the same.
struct CarriedForm {
  ir::Shape shape;
  DType dtype = DType::kF32;    ///< that the host sees
  DType storage = DType::kF32;  ///< in device memory

  std::size_t host_bytes() const {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(shape.elements()) * size_of(storage);
  }
};

/// A tensor that stays on the device between inferences.
struct Carry {
  int input,
      output;  ///< indices in the graph's tensors: before and after an inference; -1: not read, or
               ///< not written
  int buffer;  ///< the memory that stays
  int result;  ///< buffer with the next value; another one is copied after an inference
  CarriedForm form;
  std::string reason{};  ///< why it is copied; empty if it is not
};

/// What a plan computes only where inputs have changed (passes/reuse_rows.hpp).
struct Reuse {
  /// The buffer of what launches remember (kernel::Scratch::remembers); -1: nothing is left out.
  int state = -1;
  int launches = 0;  ///< of an inference, those that may be left out
};

/// Host memory for contents that are not on the device all the time.
struct HostSlot {
  std::int64_t bytes = 0;
  DType storage = DType::kF32;
  std::shared_ptr<const ir::Constant> constant;  ///< its contents, if they belong to the model
  int loaded_from = -1;  ///< buffer of a load-time launch's result that is kept here, else -1
};

/// A copy between the device and a host slot, in the middle of an inference. Contents that
/// return have a separate buffer, to which the steps after the gap refer.
struct Move {
  enum class Kind { kOut, kIn };
  Kind kind = Kind::kOut;
  int buffer = -1;
  int slot = -1;           ///< index into Plan::slots
  std::int64_t bytes = 0;  ///< all of the buffer
  int start = 0;           ///< it may begin once the run steps before this one are done
  int finish = 0;          ///< run step that waits for it; the number of steps: the downloads do
};

/// A candidate that cannot compute a node on this device, and why.
using Refused = std::pair<std::string, std::string>;

/// The candidate that computes a node, and the alternatives.
struct Choice {
  enum class Origin {
    kDefault,  ///< the first that works
    kForced,   ///< forced by the option 'engines'
    kTuned,    ///< the fastest measured
  };
  int node = -1;      ///< index of the node in the model
  int position = -1;  ///< ... and in the graph that was planned
  std::string family, candidate;
  bool adds_halves = false, tensor_cores = false;  ///< the candidate, as kernel::Candidate has it
  bool makes_halves = false;
  Origin origin = Origin::kDefault;
  std::string engine;     ///< as plan::engine_signature; empty without PlanOptions::distrusted
  std::string signature;  ///< as plan::signature; empty without PlanOptions::tuned
  std::string dropped;    ///< a tuned candidate that no longer works
  std::vector<std::string> candidates;  ///< those that work, in order of preference
  std::vector<Refused> refused;
  std::vector<std::string> plainest;  ///< of both, those of a kernel::Form that is plain, in order
  ops::Work work;                     ///< of one inference
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<Step> load;  ///< launches that depend on constants only: run once
  std::vector<Step> run;   ///< launches of every inference
  std::vector<Transfer> uploads, downloads;
  std::vector<Carry> carries;
  bool repeats = true;  ///< launches of an inference may run twice, with the results of once
  std::vector<HostSlot> slots;
  std::vector<Move> moves;  ///< by start; they run in this order, one at a time
  std::vector<Choice> choices;
  bool poison = false;                ///< fill the arena with NaN before the first run
  std::vector<std::int64_t> objects;  ///< bytes of the buffers that make up the arena
  std::int64_t arena_bytes = 0;       ///< their sum
  std::int64_t weights_bytes = 0;     ///< kept between runs
  std::int64_t carried_bytes = 0;     ///< of `carries`
  std::int64_t kept_bytes = 0;        ///< of tensors that inferences leave for the next one
  std::int64_t inner_bytes = 0;       ///< peaks of the plans of graphs that its nodes run
  Reuse reuse;
  std::int64_t naive_bytes = 0;      ///< arena if no memory were shared
  std::int64_t bound_bytes = 0;      ///< lower bound of all layouts of the arena
  std::string layout;                ///< strategy that has placed the arena's buffers
  std::int64_t load_peak_bytes = 0;  ///< the most while the load steps run
  std::int64_t peak_bytes = 0;       ///< device memory at its worst moment, loading included
};

/// family -> value of the option 'engines': a candidate or the part of its name before an
/// underscore; alternatives are separated by `|`, and the last may be "auto", the choice of the
/// plan.
using Engines = std::map<std::string, std::string>;

/// A fault of a candidate on this device.
struct Fault {
  std::string why;
  std::size_t group = 0;  ///< work-items of the work-groups that its kernels allow; 0: it fails
};

/// By family and candidate.
using Broken = std::map<std::pair<std::string, std::string>, Fault>;

/// Adds a fault; returns false if it changes no plan.
bool learn(Broken& broken, const std::string& family, const std::string& candidate, Fault fault);

/// Why a candidate of a family is excluded because of wrong numbers; empty if it is trusted.
using Distrusted =
    std::function<std::string(const std::string& family, const kernel::Candidate& candidate)>;

/// The candidate measured as the fastest for a signature; empty if there is none.
using Tuned = std::function<std::string(const std::string& signature)>;

struct PlanOptions {
  Engines engines;
  Tuned tuned;  ///< null: nothing is looked up
  /// If off, every tensor has a separate buffer filled with NaN, which exposes kernels that read
  /// unwritten elements. Tools that check memory then also find reads beyond a tensor's end.
  bool share_memory = true;
  Distrusted distrusted;    ///< null: all are trusted
  bool exact_sums = false;  ///< candidates that add halves are excluded
  bool in_place = true;     ///< results may be written over an input
  /// What has been computed from rows of the inputs is kept until an element of them changes by
  /// more than this; none: everything is computed each time.
  std::optional<float> reuse{};
  bool zero_copy = false;    ///< if device and host share memory: Road::kHostPointer and kMapped
  bool pin_tensors = false;  ///< Transfer::pinned, where they do not
  /// Bytes of device memory that a plan may hold, and of the largest object; 0: what the device
  /// allows.
  std::int64_t memory_budget = 0, max_object = 0;
  // The measures that plan::fit takes to stay within them.
  bool swap = false;            ///< intermediate tensors may move to the host between uses
  bool stream_weights = false;  ///< weights may be uploaded during an inference
  /// Steps that do not read each other's results may run at the same time, as stages of a chain:
  /// what they use lies apart if it is small.
  bool side_by_side = false;
  /// Rows of a band, for nodes that run band by band; 0: none do, or with `reuse`: chosen.
  int row_band = 0;
};

/// No candidate of a node's family works on this device.
class NoCandidate : public Error {
 public:
  NoCandidate(int node, std::string family, const std::string& why)
      : Error(why), node_(node), family_(std::move(family)) {}
  int node() const { return node_; }
  const std::string& family() const { return family_; }

 private:
  int node_;
  std::string family_;
};

/// A tensor or scratch buffer is larger than the largest object allowed.
class ObjectTooLarge : public DeviceError {
 public:
  ObjectTooLarge(std::string tensor, std::int64_t bytes, const std::string& why)
      : DeviceError(why), tensor_(std::move(tensor)), bytes_(bytes) {}
  const std::string& tensor() const { return tensor_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::string tensor_;
  std::int64_t bytes_;
};

}  // namespace clgpu::plan
