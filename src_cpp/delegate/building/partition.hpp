// One partition of one interpreter: its graph, and the executor for the current shapes.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/building/extract.hpp"
#include "delegate/building/holdings.hpp"
#include "delegate/building/session.hpp"
#include "delegate/building/stage_tensors.hpp"
#include "delegate/building/state.hpp"
#include "delegate/verify/comparison.hpp"
#include "delegate/verify/shadow.hpp"
#include "delegate/verify/trust.hpp"
#include "ir/graph.hpp"
#include "plan/budget/cost.hpp"

namespace clgpu::delegate {

class Partition : private Holder {
 public:
  /// The passes run here. `index` counts the partitions of a session. `stages`: null unless it is
  /// a stage of several; `stage_of`: the index of the first of them, if it is not the first.
  Partition(std::shared_ptr<State> state, std::shared_ptr<Session> session, Extract extract,
            std::vector<int> nodes, int index, std::shared_ptr<StageTensors> stages = nullptr,
            int stage_of = -1);
  ~Partition() override;
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  const std::vector<int>& nodes() const { return nodes_; }
  /// For the runtimes' profilers: "3 nodes: CONV_2D x2, SOFTMAX".
  const std::string& contents() const { return contents_; }
  Ledger& ledger() { return state_->ledger; }
  /// Null before build().
  const plan::Plan* plan() const { return executor_ == nullptr ? nullptr : &executor_->plan(); }
  /// True if the model leaves a dimension of an input open: then shapes that do not fit together
  /// are not an error before resize_tensor_input is called.
  bool is_dynamic(const TfLiteContext& context) const;

  /// Whether it computes values from the shapes of its inputs while planning.
  bool is_specialized() const { return specialization_ != nullptr; }

  /// Whether planning needs values that only an inference has: invoke() builds it.
  bool awaits() const { return stage_of_ >= 0 || !awaited_.empty() || !meters_.empty(); }

  /// The CPU's nodes for the same computation. To be called before build().
  void stand_by(std::vector<CpuNode> nodes) { cpu_.nodes = std::move(nodes); }

  /// From now on the runtime may lend buffers for inputs and outputs, except for `others`: tensors
  /// that nodes outside of the delegate's partitions use. `entry` is what Lender::enter returned.
  /// To be called before the runtime asks what it may lend.
  void lend_all_but(std::set<int> others, std::shared_ptr<void> entry) {
    others_ = std::move(others);
    entry_ = std::move(entry);
  }
  /// Results that wait for values keep the memory that the runtime or the application gives them
  /// until an inference needs more, except for `others`: tensors that nodes outside of this
  /// partition use. To be called for the main graph only: nodes that run another graph, such as
  /// WHILE, have to see that its results are dynamic. `context` has the shapes of the file.
  void keep_memory_of_all_but(const std::set<int>& others, const TfLiteContext& context);
  /// Tells the runtime what it may lend.
  void announce(TfLiteContext& context);

  /// Infers shapes from the current shapes of the graph's inputs; plans and builds.
  void build();

  /// Infers shapes and plans without building; the cost of an inference.
  plan::Cost expected(int threads);

  /// Bytes of the smallest memory budget with which build() succeeds.
  std::int64_t smallest_budget();

  /// Takes the inputs' shapes from the runtime, builds again if they have changed, and sets the
  /// outputs' shapes. Shapes that our kernels do not support are left to the CPU's kernels, with a
  /// note. If these do not support them either and the model is dynamic, invoke() reports it.
  void prepare(TfLiteContext& context);

  /// Adds what was built, if anything, to the session's report.
  void publish();

  /// One inference.
  void invoke(TfLiteContext& context);

 private:
  /// Of a graph and of each graph that its nodes run, once.
  plan::Cost expected(const ir::Graph& graph, std::int64_t budget, int nodes, int threads) const;
  void begin_recording();
  /// Why the graph does not fit the runtime's tensors; empty if it fits. Kernels of the CPU may
  /// give results another type than the model has.
  std::string find_type_problem(const TfLiteContext& context) const;
  /// If the inputs have changed, builds again or leaves them to the CPU's kernels. Then reports
  /// what was built and gives the outputs their shapes, unless invoke() will report a problem.
  /// `problem`: why the device cannot, if that is known; otherwise empty.
  void settle_shapes(TfLiteContext& context, bool changed, std::string problem = {});
  /// Why it is neither planned nor left to the CPU.
  std::string unplanned() const;
  /// Reports the shapes of its tensors.
  void tell_shapes() const;
  /// Reports the shapes of the tensors of nodes on the CPU, if they may have changed.
  void tell_shapes_of_cpu(const TfLiteContext& context) const;
  /// Before an inference: builds again if awaited values have changed.
  void take_awaited(TfLiteContext& context);
  /// Whether the shapes of inputs have changed, which it takes.
  bool take_shapes(const TfLiteContext& context);
  /// Computes a number of a tensor that planning needs.
  struct Meter {
    Measured measured;
    std::shared_ptr<runtime::Executor> executor{};  ///< for the tensor's last shape
    std::int32_t number = -1;  ///< the last one; the executor may write it in place
  };
  /// Whether a number has changed, which it measures.
  bool take_numbers(TfLiteContext& context);
  std::int64_t measure(TfLiteContext& context, Meter& meter);

  // Plans for earlier values, in partition_plans.cpp.

  /// All that the plan for the present values depends on.
  std::string key() const;
  bool keeps_plans() const;
  /// Keeps the present plan for later, if there is one.
  void set_aside();
  /// Frees the memory of the kept plans; returns whether there were any.
  bool drop_aside();
  /// Takes the plan for the present values, if it was kept.
  bool take_up();
  /// Releases everything that depends on the current shapes.
  void unbuild();
  /// Builds for the current shapes what an error has left unbuilt.
  void build_again();
  void rebuild(std::int64_t budget);

  // Among the graphs of the interpreter, in partition_budget.cpp.

  const void* graph() const override { return session_.get(); }
  void add_to(HeldBytes& held) const override;
  std::int64_t least_bytes() const override;
  plan::Plan plan_within(std::int64_t bytes) const override;
  void add_planned_to(HeldBytes& held, const plan::Plan& plan) const override;
  void release() override;
  void build_again_within(std::int64_t bytes) override;
  void add_to(HeldBytes& held, const plan::Plan& plan, const std::vector<std::string>& keys) const;
  /// Bytes by which the graphs would exceed the memory budget with this plan.
  std::int64_t excess(const plan::Plan& plan) const;
  /// Builds so that all graphs together stay within the memory budget; plans the others again if
  /// this one needs more than they leave. Throws as Builder::build.
  Built build_within(std::int64_t budget, Level level, bool lasts);
  /// Builds the other graphs again, so that they leave enough; returns this one's bytes. Throws
  /// plan::BudgetError.
  std::int64_t share_with_graphs();
  std::unique_ptr<Loan> borrow(TfLiteContext& context) const;
  /// Without `loan`, the memory of all tensors is their data.
  void run(TfLiteContext& context, Loan* loan = nullptr);
  void run_once(TfLiteContext& context, Loan* loan);
  /// Whether the CPU's kernels compute this partition with the current shapes.
  bool is_on_cpu() const { return !cpu_.reason.empty() || (trust_ != nullptr && trust_->on_cpu()); }

  // Carried tensors, in partition_carried.cpp.

  std::shared_ptr<runtime::CarriedSet> carried() const {
    return session_->carriers == nullptr ? nullptr : session_->carriers->set();
  }
  /// Their tensors in `ids`, inputs or outputs of graph_.
  std::vector<ir::Tensor> carried_of(const std::vector<int>& ids) const;
  /// Copies the values on the device to the runtime's inputs or outputs, and the reverse.
  void lower_carried(TfLiteContext& context, const std::vector<int>& ids);
  void lift_carried(TfLiteContext& context, const std::vector<int>& ids);
  /// The largest elements of carried tensors that the graph writes: not true any more, or found.
  void forget_found() const;
  void tell_found() const;
  /// Builds what the graph has.
  void build_as_it_is();

  // The CPU's side, in partition_cpu.cpp.
  Shadow& shadow(const TfLiteContext& context);
  std::set<int> output_ids() const;
  /// For a result whose shape only an inference knows: makes it dynamic, as the runtime's own
  /// kernels do, unless it keeps its memory; then it gets the file's shape until the inference.
  void open_shape(TfLiteContext& context, int id);
  /// Gives a result another shape, and memory of its size. Throws Error if the runtime refuses or
  /// the application's memory is too small.
  void give_shape(TfLiteContext& context, int id, const std::vector<int>& dims);
  /// Leaves the current shapes to the CPU's kernels, because of `reason`; returns false and changes
  /// nothing if these do not support them either.
  bool leave_to_cpu(const TfLiteContext& context, const std::string& reason);
  /// The same, but if the model is dynamic, waits for resize_tensor_input with shapes that neither
  /// supports; invoke() reports it.
  bool leave_to_cpu_or_later(const TfLiteContext& context, const std::string& reason);
  /// Whether the CPU's kernels compute a stage where the device cannot.
  bool leave_stage_to_cpu(const TfLiteContext& context, const std::string& reason);
  void give_shapes_of_cpu(TfLiteContext& context);
  void compute_on_cpu(TfLiteContext& context);
  void take_from_shadow(TfLiteContext& context) const;

  /// Sets original_ for the current shapes, if it depends on them, and graph_. Throws ShapeError.
  void specialize();
  /// The graph after the passes of a level.
  ir::Graph pass(ir::Graph graph, Level level) const;
  /// Sets the inputs of another graph of this partition to the current shapes.
  void take_inputs(ir::Graph& graph) const;
  /// The original graph with the current shapes after the passes. Throws ShapeError if the model
  /// does not support these shapes.
  ir::Graph pass_anew(Level level) const;
  /// Sets the shapes of graph_ from those of its inputs. If a pass relied on shapes that
  /// have changed since, graph_ is made again.
  void infer_shapes(Level level);

  // Verification, in partition_verify.cpp: trust_ is not null.
  bool due() const;
  void recall();
  void keep() const;
  void lower(Level level);
  void settle(Level level);
  bool run_shadow(TfLiteContext& context, bool all);
  bool run_shadow_too(TfLiteContext& context, bool all);
  void verify(TfLiteContext& context);
  Comparison comparison() const;
  Suspects find_suspects() const;
  bool leave_out(const std::vector<Suspects::Engine>& wrong, std::set<std::string>& left_out);
  std::string signature() const;
  /// Bytes that the memory budget leaves for this partition; 0: there is no budget.
  std::int64_t allowance() const;

  std::shared_ptr<State> state_;
  std::shared_ptr<Session> session_;
  ir::Graph model_;  ///< as Model::extract made it, with the current shapes of its inputs
  const std::unique_ptr<Specialization> specialization_;  ///< null if no value follows from shapes
  const std::unique_ptr<States> states_;                  ///< null if it has none
  const std::vector<int> awaited_;  ///< TFLite's ids of inputs with values that planning needs
  std::vector<Meter> meters_;       ///< fixed size, as executors refer to it
  const std::shared_ptr<StageTensors> stages_;  ///< null if the partition is one stage
  const int stage_of_;                          ///< -1: it is not behind another stage
  /// A plan for other values.
  struct AsidePlan {
    std::string key;
    std::shared_ptr<const ir::Graph> original, published;
    ir::Graph graph;
    std::shared_ptr<runtime::Executor> executor;
  };
  std::vector<AsidePlan> aside_;              ///< the last used is the last
  std::string key_;                           ///< of the present plan
  const std::shared_ptr<Carriers> carriers_;  ///< shares weights among plans; null if it carries
  bool stale_ = true;                         ///< it is not built for the current shapes and values
  bool waiting_ = false;                      ///< such values decide on the outputs' shapes
  std::shared_ptr<const ir::Graph> original_;  ///< specialized, before any pass
  ir::Graph graph_;
  std::vector<int> nodes_;
  const std::string contents_;
  int index_;
  std::optional<std::set<int>> others_;  ///< tensors that are not lent; none: no tensor is
  std::shared_ptr<void> entry_;          ///< of the lender
  /// A result that keeps its memory: the file's shape, for which the runtime checks the size of
  /// the application's memory and LiteRT creates buffers, and the bytes of that.
  struct KeptMemory {
    std::vector<int> shape;
    std::size_t bytes = 0;
  };
  std::map<int, KeptMemory> kept_;
  std::vector<int> lent_in_, lent_out_;          ///< tensors that the runtime may lend
  std::shared_ptr<const ir::Graph> published_;   ///< the executor's graph, for tuning
  int builds_ = 0;                               ///< of executors, so far
  std::shared_ptr<runtime::Executor> executor_;  ///< shared with timing in other threads
  Standby cpu_;
  std::unique_ptr<Trust> trust_;  ///< null if nothing is verified
  /// Why a dynamic model has no executor for the current shapes. If it is empty and there is no
  /// executor, an error has prevented it, and the next inference builds again.
  std::string problem_;
};

}  // namespace clgpu::delegate
