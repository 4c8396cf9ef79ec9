// Runs a plan on a device. Everything is created in the constructor; run() only enqueues.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "cl/flusher.hpp"
#include "plan/plan.hpp"
#include "runtime/run/addresses.hpp"
#include "runtime/run/bundles.hpp"
#include "runtime/run/carried.hpp"
#include "runtime/run/chains.hpp"
#include "runtime/run/command_list.hpp"
#include "runtime/run/graph_runner.hpp"
#include "runtime/run/images.hpp"
#include "runtime/run/mover.hpp"
#include "runtime/run/pool.hpp"
#include "runtime/run/recorder.hpp"
#include "runtime/run/transfers.hpp"
#include "runtime/run/weights.hpp"

namespace clgpu::runtime {

/// A candidate cannot be built or launched on this device; the caller plans again, without it or
/// with work-groups that its kernels allow.
class CandidateFailure : public Error {
 public:
  CandidateFailure(std::string family, std::string candidate, plan::Fault fault)
      : Error(fault.why),
        family_(std::move(family)),
        candidate_(std::move(candidate)),
        fault_(std::move(fault)) {}
  const std::string& family() const { return family_; }
  const std::string& candidate() const { return candidate_; }

  bool allows_smaller_groups() const { return fault_.group > 0; }

  /// Adds it to what is known; false when it was.
  bool learn(plan::Broken& broken) const {
    return plan::learn(broken, family_, candidate_, fault_);
  }

 private:
  std::string family_, candidate_;
  plan::Fault fault_;
};

using GraphRunners = std::map<int, std::shared_ptr<GraphRunner>>;

class Executor {
 public:
  /// Builds programs or takes them from the store, allocates buffers, uploads constants, runs the
  /// load-time launches. A call that may succeed later is made once more before a candidate is
  /// blamed for it. With `warm_up`, each distinct kernel runs once, so that a driver's late
  /// compilation and its failures happen here; without it, only those that may need too much local
  /// memory. Throws CandidateFailure and cl::OpenCLError (out of
  /// memory). The arena is in `pool`, where executors take turns; null: a separate one.
  /// With `record`, inferences are recorded. With `chaining`, launches run as stages of chains
  /// while an inference is waited for and not recorded; what was measured is kept in the store.
  /// With `bundles`, one launch computes neighbouring small ones that do not depend on each other,
  /// unless an inference is recorded.
  /// `listing` is for launches that run in no chain, in inferences that are not recorded.
  /// `carried` has the memory of plan().carries; it may be null if there are none. Weights that
  /// `weights` has are not loaded again; null: each executor has its own. `runners` has those of
  /// the steps that run graphs, by plan::Step::position.
  Executor(std::shared_ptr<cl::Context> context, std::shared_ptr<store::Store> store,
           plan::Plan plan, bool warm_up, std::shared_ptr<Pool> pool = nullptr, bool record = false,
           const std::optional<Chaining>& chaining = std::nullopt, bool bundles = false,
           Listing listing = Listing::kNever, std::shared_ptr<CarriedSet> carried = nullptr,
           std::shared_ptr<Weights> weights = nullptr, GraphRunners runners = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Stores the binaries of this executor's programs that the store does not have.
  void save_programs() { context_->save_programs(programs_, *store_); }

  const plan::Plan& plan() const { return plan_; }

  /// As runtime::weight_keys; empty if it shares no weights.
  const std::vector<std::string>& shared_keys() const { return keys_; }

  /// Null unless inferences are recorded.
  const std::shared_ptr<Recorder>& recorder() const { return recorder_; }

  /// Transfer methods of the inputs, then of the outputs. Thread-safe, also during run().
  std::vector<RoadTaken> roads() const { return transfers_.roads(); }

  /// Thread-safe, also during run().
  ChainsTaken chains() const;
  BundlesTaken bundles() const;
  ListTaken command_list() const;

  /// To be called before the runtime's tensors move or are destroyed: the executor does not use
  /// their memory any more, and the next run() looks up their addresses again.
  void forget_tensors();

  /// One inference: `inputs[i]` holds the bytes of plan().uploads[i], `outputs[i]` receives those
  /// of plan().downloads[i]. Returns when the outputs are written. If a chain gives up, it computes
  /// twice. Not reentrant.
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);

  /// Buffers of an application, instead of host memory.
  struct Lent {
    /// By input, then output; null where the host's memory is given. They hold the runtime's form.
    std::vector<cl::cl_mem> buffers;
    std::vector<cl::cl_event> ready;  ///< of the context; the inference begins after them
    bool may_fly = false;             ///< the caller waits for the event
  };
  /// Whether such a buffer can be lent for input or output `index` (inputs first).
  bool takes(std::size_t index, cl::cl_mem buffer) const { return transfers_.takes(index, buffer); }
  /// The same with lent buffers, where `inputs` and `outputs` have null. With `may_fly` and only
  /// lent buffers, it does not wait if it can do without, and returns an event of the end;
  /// otherwise an empty one, and the outputs are written.
  cl::EventHandle run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                      const Lent& lent);

  /// Releases the buffers that the last run() was lent, which has ended.
  void return_lent();

  /// Enqueues one inference on memory of the caller, in the order of calls and of run(), and does
  /// not wait for it: when `ready` is done, `inputs[i]` is copied to where plan().uploads[i] goes;
  /// the event returned is done when plan().downloads[i] has been copied to `outputs[i]`. All in
  /// the form that they have on the device. For plans without Road::kHostPointer.
  cl::EventHandle enqueue(const std::vector<cl::cl_mem>& inputs,
                          const std::vector<cl::cl_mem>& outputs, cl::cl_event ready);
  /// The same with memory of the host, which must exist until then.
  cl::EventHandle enqueue(const std::vector<const void*>& inputs,
                          const std::vector<void*>& outputs);
  /// Waits for all that was enqueued.
  void settle() noexcept;
  /// The next inference computes everything, as if it were the first (plan::Reuse). Thread-safe,
  /// also during run().
  void forget_kept() { remembers_ = false; }

  /// Of all inferences so far, without those that were forgotten before they ended.
  struct Reused {
    std::int64_t inferences = 0;
    double computed = 0;  ///< share of the arithmetic of plan().reuse's launches that they ran
  };
  /// Waits for inferences in flight. Zeros if nothing is reused.
  Reused reused();

  /// Seconds per inference with many in flight: the launches of `runs` inferences are enqueued back
  /// to back, without transfers, and waited for once. They compute with the contents of the arena.
  /// If `node` is not negative, of this node of the model alone; 0 if it has no launches.
  double device_time(int runs, int node);

  /// Seconds of each launch of plan().run and of each of plan().moves.
  struct Times {
    std::vector<double> launches, moves;
  };
  /// Medians over `rounds` inferences, from the events of queues with profiling.
  Times launch_times(int rounds);

 private:
  struct BoundLaunch {
    cl::KernelHandle kernel;  ///< none of a step that runs graphs
    const plan::Step* step;
    std::vector<int> addresses{};  ///< numbers of the arguments that are addresses; they ascend
    /// According to the driver, the kernel needs more local memory than the device has. NVIDIA's
    /// driver adds 128 bytes even to kernels that fit, so only a launch can tell.
    bool must_try = false;

    bool runs_graphs() const { return step->launch.runs_graphs; }
  };

  /// While it exists, nobody else runs on the device, and launches work on memory that stands in
  /// for the runtime's.
  class StandIn {
   public:
    explicit StandIn(Executor& executor);
    ~StandIn();
    StandIn(const StandIn&) = delete;
    StandIn& operator=(const StandIn&) = delete;

   private:
    Executor& executor_;
    const std::unique_lock<std::mutex> alone_;
  };

  void allocate(int buffer);
  void allocate_rest();
  std::vector<bool> take_shared();
  void offer_shared();
  void provide_carried();
  std::vector<int> carried_numbers() const;
  /// Calls what launches for other reasons than an inference. Carried tensors keep their values.
  void without_traces(const std::function<void()>& launching);
  /// At the end of an inference.
  void carry_on();
  /// The turn of the arena, whose memory is there.
  std::unique_lock<std::mutex> take_turn();
  void set_buffers(const BoundLaunch& bound);
  void upload_constant(int buffer);
  cl::cl_mem memory(int buffer) const;
  cl::cl_mem image(int buffer, DType texel);
  void poison_arena();
  void keep_programs() noexcept;
  void make_all(bool warm_up, std::shared_ptr<Pool> pool, bool record,
                const std::optional<Chaining>& chaining, bool bundles, Listing listing);
  /// `addresses`: numbers of arguments that may be addresses.
  BoundLaunch bind(plan::Step& step, const std::vector<int>& addresses = {});
  BoundLaunch try_bind(plan::Step& step, const std::vector<int>& addresses);
  void learn_addresses();
  void try_launch(const BoundLaunch& bound, const char* where);
  void launch(const BoundLaunch& bound);
  void launch(const BoundLaunch& bound, const cl::QueueHandle& queue, cl::cl_event* event);
  std::size_t launch_bundle(std::size_t step, std::size_t end = SIZE_MAX);
  /// `runs_graphs`: on real inputs. With others, loops may never end, so graphs are left out.
  void launch_all(Recording* recording = nullptr, bool runs_graphs = false);
  bool is_due(const plan::Step& step);
  void run_graphs(const BoundLaunch& bound);
  /// `seconds`, if not null, gets those of the chain that begins at each run step.
  void launch_chained(std::vector<double>* seconds = nullptr);
  bool overlap(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
               const Lent& lent) const;
  std::vector<std::size_t> local_bytes() const;
  void make_bundles(bool may_run);
  void make_chains(const Chaining& chaining, bool may_run);
  std::unique_ptr<Chains> chains_with(const Chaining& chaining, const std::set<int>& cuts) const;
  std::string cuts_key() const;
  std::optional<std::set<int>> known_cuts() const;
  void keep_cuts(const std::set<int>& cuts);
  std::vector<double> each_seconds();
  std::vector<double> chain_seconds();
  /// Chains whose launches are faster, and the launches at which no chain begins or continues.
  struct Slower {
    std::set<int> launches;
    int chains = 0;
    bool is_final = false;  ///< measured twice, or there is none
  };
  std::string slower_key() const;
  std::optional<Slower> known_slower() const;
  void keep_slower(const Slower& slower, bool again, const std::string& reason);
  /// `among`: what was slower before; null: all chains.
  Slower find_slower(const std::optional<Slower>& among);
  /// Whether an inference takes less time if this chain's launches run one by one. False if a chain
  /// gave up.
  bool is_slower_with(int chain);
  void leave_long_chains(const std::vector<double>& seconds);
  double time_of(int runs, int node, const std::vector<const BoundLaunch*>& timed);
  Times times_of(int rounds);
  std::set<int> try_chains(bool divides);
  double seconds_of(int runs, const std::function<void()>& enqueue);
  void take_chains(const ChainsTaken& taken);
  /// The least of several inferences.
  double launches_seconds();
  std::optional<ChainVerdict> measure_chains();
  /// Tells why no launch is a stage.
  void leave_chains_out(std::string reason, bool is_noted = false);
  void leave_chains(ChainVerdict verdict);
  void clear_counters();
  /// Whether enqueueing by `other` takes less than a share of the time by `launches`, in turns,
  /// with the contents of the arena; none where it does not matter. With a share above 1 it may
  /// take as much longer. `check` is called when `other` has been timed, and may throw.
  std::optional<bool> is_faster(double share, const std::function<void()>& launches,
                                const std::function<void()>& other,
                                const std::function<void()>& check);
  /// With `is_reversible`, only the second time as final: another process may have been on the
  /// device once.
  void store_verdict(const std::string& key, const std::string& label, const std::string& verdict,
                     bool is_reversible);
  void make_list(Listing listing, bool may_run);
  void measure_list(const std::string& key);
  std::string list_key() const;
  void find_replaced();
  void record_list();
  bool has_list();
  /// The same for an inference that nobody waits for.
  bool has_flying_list();
  void launch_listed(bool waits);
  void take_list(const ListTaken& taken);
  void leave_list(const std::string& reason);
  /// Before objects are released that its arguments may be. Thread-safe.
  void forget_list() noexcept;
  /// Before the launches of an inference: tells them to compute everything, if they have to.
  void remind();
  void run_load_steps();
  /// Launches each distinct kernel once: all, or those that must be tried.
  void warm_up_kernels(bool all);
  std::vector<std::size_t> scratch_writers(std::size_t launch) const;
  /// To be called before launches, when all objects exist: sets the kernel arguments that have
  /// changed.
  void give_buffers();
  bool uses_changed(const BoundLaunch& bound) const;
  void write(int buffer, const void* data, std::size_t bytes, bool blocking, std::size_t to = 0);
  cl::EventHandle mark(const std::vector<cl::cl_event>& events);
  void finish(const char* where);
  void finish_all() noexcept;
  void abandon_run() noexcept;
  template <class Up, class Down>
  cl::EventHandle enqueue_all(Up up, Down down);

  std::mutex busy_;  // timing may come from another thread than inference
  std::shared_ptr<cl::Context> context_;
  std::shared_ptr<store::Store> store_;
  plan::Plan plan_;
  cl::QueueHandle queue_;
  cl::Flusher flusher_;
  cl::QueueHandle recording_queue_;            // takes its place while an inference is recorded
  const std::shared_ptr<CarriedSet> carried_;  // null if nothing is carried
  const std::shared_ptr<Weights> weights_;     // null if none are shared
  const GraphRunners runners_;
  cl::Context::Programs programs_;  // of the launches
  // Assembled, by file and whether with a predicate, while loading.
  std::map<std::string, std::string> sources_;
  std::map<const plan::Step*, cl::FirstLaunch> first_launches_;  // while loading
  std::unique_ptr<Lease> arena_;                                 // empty while loading
  // One per plan buffer; null for those of the arena.
  std::vector<std::shared_ptr<cl::Memory>> buffers_;
  std::vector<std::string> keys_;  // of the weights that are shared; empty: none are
  Images images_;                  // over what buffers_ and transfers_ hold
  std::unique_ptr<Addresses> addresses_;
  std::vector<BoundLaunch> launches_;  // one per plan_.run step
  std::unique_ptr<Bundles> bundles_;   // null: every launch by itself
  std::unique_ptr<Chains> chains_;     // null: no launch is a stage
  std::string chains_key_;             // of the verdict in the store
  std::set<int> as_launches_;          // chains, by their first step, that run so for a measurement
  int untimed_ = 0;  // inferences until the one that tells how long chains take; 0: that is known
  mutable std::mutex taken_mutex_;
  ChainsTaken taken_;
  std::string bundles_error_;  // of the attempt at them; guarded as taken_
  ListTaken list_taken_;
  std::mutex list_mutex_;
  std::unique_ptr<CommandList> list_;            // null: launches are enqueued one by one
  std::vector<CommandList::Argument> replaced_;  // given to each start of it
  bool list_replaces_ = false;                   // arguments; otherwise it is recorded again
  std::optional<store::Attempt> list_attempt_;   // until the first one has ended
  bool list_tried_ = false;
  bool steady_ = false;  // the kernels have the arguments of the last inference
  // Set before an object that is a kernel argument is created or released, and cleared when all
  // arguments are set: whatever fails in between, no launch uses a released object.
  bool stale_ = false;
  // Whether what launches remember of earlier inferences (plan::Reuse::state) is true: all launches
  // of the last inference have been enqueued, and none is known to have failed.
  std::atomic<bool> remembers_{false};
  std::unique_ptr<Mover> mover_;  // null if nothing moves
  Transfers transfers_;
  std::shared_ptr<Recorder> recorder_;
};

}  // namespace clgpu::runtime
