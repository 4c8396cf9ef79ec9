#include "delegate/building/partition.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/index.hpp"
#include "base/join.hpp"
#include "delegate/building/estimate.hpp"
#include "delegate/int_array.hpp"
#include "ops/families/dequantize.hpp"
#include "ops/families/expert_matmul.hpp"
#include "ops/families/fully_connected_fused.hpp"
#include "ops/families/layer_norm.hpp"
#include "ops/families/pooled.hpp"
#include "ops/families/quantize.hpp"
#include "ops/families/separable_conv2d.hpp"
#include "ops/families/squeeze_excite.hpp"
#include "passes/pass.hpp"
#include "plan/choose.hpp"
#include "plan/roads.hpp"
#include "tfl/node_view.hpp"

namespace clgpu::delegate {
namespace {

// Executors of a partition that is loaded, resized and reset. One that needs more gets new shapes
// again and again.
constexpr int kFewBuilds = 4;

// Each engine that the options name must have a node.
bool names_a_part(const plan::Engines& engines, const ops::Family& fused) {
  return std::any_of(fused.fuses.begin(), fused.fuses.end(),
                     [&](const ops::Family* family) { return engines.count(family->name) > 0; });
}

passes::Separable separable(const plan::Engines& engines) {
  const ops::Family& fused = ops::kSeparableConv2dFamily;
  if (const auto wish = engines.find(fused.name); wish != engines.end()) {
    const std::vector<std::string> names = plan::alternatives(wish->second);
    const bool inverted = std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return plan::goes_by(name, ops::kInvertedEngine);
    });
    return inverted ? passes::Separable::kBlocks : passes::Separable::kPairs;
  }
  return names_a_part(engines, fused) ? passes::Separable::kNever : passes::Separable::kWherePays;
}

passes::Pooling pooling(const plan::Engines& engines) {
  if (engines.count(ops::kPooledFamily.name) > 0) return passes::Pooling::kAlways;
  return names_a_part(engines, ops::kPooledFamily) ? passes::Pooling::kNever
                                                   : passes::Pooling::kWherePays;
}

bool is_value_of(const Known& known, const TfLiteTensor& tensor) {
  return known.constant != nullptr && known.constant->bytes == tensor.bytes &&
         known.dims == to_vector(tensor.dims) &&
         (tensor.bytes == 0 || std::memcmp(known.constant->data, tensor.data, tensor.bytes) == 0);
}

template <class Meter>
std::vector<Meter> meters_of(std::vector<Measured> all) {
  std::vector<Meter> meters;
  for (Measured& measured : all) meters.push_back({std::move(measured)});
  return meters;
}

// Also in the graphs that nodes run.
void want_exact_sums(ir::Graph& graph) {
  graph.allows_tf32 = graph.allows_half = false;
  for (ir::Node& node : graph.nodes) {
    node.allows_tf32 = node.bf16_pairs = node.half_sums = false;
    for (auto& old : node.graphs) {
      auto inner = std::make_shared<ir::Graph>(*old);
      want_exact_sums(*inner);
      old = std::move(inner);
    }
  }
}

// The number of nodes, and the most frequent operations.
std::string contents_of(const ir::Graph& graph, std::size_t nodes) {
  constexpr std::size_t kShown = 6;
  std::vector<std::pair<std::string, int>> sorted;
  for (const ir::Node& node : graph.nodes) {
    const auto known = std::find_if(sorted.begin(), sorted.end(),
                                    [&](const auto& entry) { return entry.first == node.op; });
    if (known == sorted.end()) {
      sorted.emplace_back(node.op, 1);
    } else {
      ++known->second;
    }
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = std::to_string(nodes) + (nodes == 1 ? " node: " : " nodes: ");
  for (std::size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + sorted[i].first;
    if (sorted[i].second > 1) text += " x" + std::to_string(sorted[i].second);
  }
  return sorted.size() > kShown ? text + ", ..." : text;
}

}  // namespace

Partition::Partition(std::shared_ptr<State> state, std::shared_ptr<Session> session,
                     Extract extract, std::vector<int> nodes, int index,
                     std::shared_ptr<StageTensors> stages, int stage_of)
    : state_(std::move(state)),
      session_(std::move(session)),
      model_(std::move(extract.graph)),
      specialization_(std::move(extract.specialization)),
      states_(std::move(extract.states)),
      awaited_(std::move(extract.awaited)),
      meters_(meters_of<Meter>(std::move(extract.measured))),
      stages_(std::move(stages)),
      stage_of_(stage_of),
      carriers_(session_->carriers != nullptr || !awaits()
                    ? session_->carriers
                    : std::make_shared<Carriers>(state_->target, std::vector<std::string>())),
      original_(std::make_shared<const ir::Graph>(model_)),
      nodes_(std::move(nodes)),
      contents_(contents_of(*original_, nodes_.size())),
      index_(index) {
  if (stages_ != nullptr) {
    for (const int id : model_.inputs) lent_in_.push_back(model_.tensor(id).tflite_id);
    for (const int id : model_.outputs) lent_out_.push_back(model_.tensor(id).tflite_id);
  }
  cpu_.inner = std::move(extract.inner);
  if (state_->target.options.verify != kVerifyOff) trust_ = std::make_unique<Trust>();
  if (specialization_ == nullptr) graph_ = pass(*original_, Level::kAsAsked);
}

void Partition::specialize() {
  if (specialization_ == nullptr) return;
  ir::Graph graph = model_;
  specialization_->apply(graph, session_->known);
  original_ = std::make_shared<const ir::Graph>(std::move(graph));
  graph_ = pass(*original_, Level::kAsAsked);
}

ir::Graph Partition::pass(ir::Graph graph, Level level) const {
  const Options& options = state_->target.options;
  const bool fp32 = level >= Level::kFp32;
  passes::PipelineOptions wanted;
  wanted.separable = separable(options.plan.engines);
  // Weights of nodes that stay apart can be divided and streamed. What may end a product includes
  // all that may be fused with one.
  wanted.products = options.plan.memory_budget == 0 &&
                    !names_a_part(options.plan.engines, ops::kEndedFullyConnectedFamily);
  wanted.norms = !names_a_part(options.plan.engines, ops::kLayerNormFamily);
  wanted.gates = options.plan.memory_budget == 0 &&
                 !names_a_part(options.plan.engines, ops::kSqueezeExciteFamily);
  // Nodes that stay apart are computed in bands of rows.
  wanted.blocks =
      options.plan.memory_budget == 0 && options.plan.row_band == 0 && !options.plan.reuse;
  wanted.pooling = wanted.blocks ? pooling(options.plan.engines) : passes::Pooling::kNever;
  // Regions of rows end at views.
  wanted.borders = options.plan.memory_budget == 0 && !options.plan.reuse &&
                   !names_a_part(options.plan.engines, ops::kFusedQuantizeFamily) &&
                   !names_a_part(options.plan.engines, ops::kFusedDequantizeFamily);
  // Chains take no tensors that move, and bands are the nodes' own order.
  wanted.chains = options.chain != Chain::kOff && options.plan.memory_budget == 0 &&
                  options.plan.row_band == 0 && !options.plan.reuse;
  wanted.dynamic_range = options.dynamic_range;
  wanted.experts = options.experts;
  wanted.inlines_branches = options.plan.memory_budget == 0;
  // Matrices of all experts cannot be divided and streamed.
  wanted.grouped_experts = options.plan.memory_budget == 0 &&
                           !names_a_part(options.plan.engines, ops::kExpertMatmulFamily);
  if (!fp32) {
    wanted.precision = options.precision;
    wanted.half_io = options.half_io;
    wanted.half_weights = options.half_weights;
    wanted.half_sums = options.half_sums;
    wanted.plan = session_->mixed.plan;
    // Verification may ask for floats in one graph later.
    wanted.half_carried =
        options.precision == passes::Precision::kFp16 && options.verify == kVerifyOff;
  }
  passes::run_pipeline(graph, wanted, state_->target.device());
  if (level >= Level::kExactSums) want_exact_sums(graph);
  return graph;
}

void Partition::take_inputs(ir::Graph& graph) const {
  for (const int id : graph.inputs) {
    ir::Tensor& tensor = graph.tensor(id);
    if (tensor.state >= 0) continue;  // its shape does not change
    for (const int now : model_.inputs) {
      if (model_.tensor(now).tflite_id == tensor.tflite_id) tensor.shape = model_.tensor(now).shape;
    }
  }
}

ir::Graph Partition::pass_anew(Level level) const {
  ir::Graph graph = *original_;
  take_inputs(graph);
  passes::infer_shapes(graph);
  graph = pass(std::move(graph), level);
  passes::infer_shapes(graph);
  return graph;
}

void Partition::infer_shapes(Level level) {
  if (ir::has_shapes_of_passes(graph_)) {
    try {
      return passes::infer_shapes(graph_);
    } catch (const ShapeError&) {  // what fits the model may not fit what passes have made of it
    }
  }
  graph_ = pass_anew(level);
}

// A caller that measures the executor may keep it longer than the runtime keeps its tensors.
Partition::~Partition() {
  session_->holdings->leave(*this);
  if (executor_ != nullptr) executor_->forget_tensors();
}

bool Partition::is_dynamic(const TfLiteContext& context) const {
  return std::any_of(model_.inputs.begin(), model_.inputs.end(), [&](int id) {
    const ir::Tensor& tensor = model_.tensor(id);
    return tensor.state < 0 && leaves_size_open(context.tensors[tensor.tflite_id].dims_signature);
  });
}

void Partition::unbuild() {
  release();
  if (specialization_ != nullptr) specialization_->withdraw(session_->known);
  cpu_.shadow.reset();
  cpu_.reason.clear();
  problem_.clear();
}

void Partition::build_as_it_is() {
  if (keeps_plans()) {
    set_aside();
    key_ = key();
    if (take_up()) return;
  }
  unbuild();  // first: the old plan is now wrong, and freeing its arena makes room for the new one
  specialize();
  if (trust_ != nullptr) return recall();
  infer_shapes(Level::kAsAsked);
  rebuild(allowance());
}

void Partition::rebuild(std::int64_t budget) {
  release();
  const Level level = trust_ == nullptr ? Level::kAsAsked : trust_->verdict.level;
  const bool lasts = !awaits() && ++builds_ <= kFewBuilds;
  Built built = build_within(budget, level, lasts);
  published_ = std::move(built.graph);
  executor_ = std::move(built.executor);
  session_->held[index_] = executor_->plan().peak_bytes;
  session_->holdings->enter(*this);
  for (const plan::Carry& c : executor_->plan().carries) {
    const int number = executor_->plan().buffers[uz(c.buffer)].carried;
    carriers_->tell_copied(number, session_->graph, c.reason);
  }
}

void Partition::build_again() {
  build();
  publish();
}

std::int64_t Partition::allowance() const {
  std::int64_t left = state_->target.options.plan.memory_budget;
  if (left == 0) return 0;
  if (const auto share = session_->share.find(index_); share != session_->share.end())
    return share->second;
  for (const auto& [partition, bytes] : session_->held) {
    if (partition != index_) left -= bytes;  // freeing ours makes room
  }
  return std::max<std::int64_t>(left, 1);
}

plan::Cost Partition::expected(int threads) {
  specialize();
  infer_shapes(Level::kAsAsked);
  return expected(graph_, allowance(), static_cast<int>(nodes_.size()), threads);
}

plan::Cost Partition::expected(const ir::Graph& graph, std::int64_t budget, int nodes,
                               int threads) const {
  const plan::Fitted fitted = state_->builder.plan(graph, budget);
  const Target& target = state_->target;
  const plan::Load load = plan::load_of(fitted.graph, fitted.plan, target.device(), nodes);
  plan::Cost cost = expected_cost(target, load, threads);
  for (const ir::Node& node : graph.nodes) {
    // How many rounds there are, or which branch is taken, is unknown.
    for (const auto& inner : node.graphs) {
      const plan::Cost once = expected(*inner, 0, static_cast<int>(inner->nodes.size()), threads);
      cost.device_seconds += once.device_seconds;
      cost.cpu_seconds += once.cpu_seconds;
    }
  }
  return cost;
}

std::int64_t Partition::smallest_budget() {
  specialize();
  infer_shapes(Level::kAsAsked);
  return state_->builder.smallest_budget(graph_);
}

void Partition::publish() {
  PartitionReport report;
  report.nodes = nodes_;
  report.awaits = awaits();
  report.stage_of = stage_of_;
  if (trust_ != nullptr) report.verification = trust_->verdict;
  if (executor_ == nullptr) {
    if (!is_on_cpu()) {
      report.unplanned = unplanned();
    } else {
      report.on_cpu =
          !cpu_.reason.empty() ? cpu_.reason : "verification has failed: " + trust_->verdict.reason;
    }
    return state_->ledger.set_partition(session_->report, index_, report,
                                        {nullptr, nullptr, original_});
  }
  const plan::Plan& plan = executor_->plan();
  report.launches = static_cast<int>(plan.run.size());
  report.load_launches = static_cast<int>(plan.load.size());
  report.arena_bytes = plan.arena_bytes;
  report.weights_bytes = plan.weights_bytes + plan.kept_bytes + plan.inner_bytes;
  report.naive_bytes = plan.naive_bytes;
  report.bound_bytes = plan.bound_bytes;
  report.load_peak_bytes = plan.load_peak_bytes;
  report.peak_bytes = plan.peak_bytes;
  report.layout = plan.layout;
  report.steps = published_->steps;
  report.objects = plan.objects;
  for (const ir::Node& node : published_->nodes) {
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const int id : *ids) {
        if (id < 0 || published_->tensor(id).tflite_id < 0) continue;
        const ir::Tensor& tensor = published_->tensor(id);
        report.storages[tensor.tflite_id] = name_of(tensor.storage);
      }
    }
  }
  const auto add = [&](const std::vector<plan::Transfer>& transfers, std::int64_t& bytes,
                       std::vector<PartitionReport::Border>& borders) {
    for (const plan::Transfer& t : transfers) {
      const ir::Tensor& tensor = published_->tensor(t.tensor);
      const bool is_lent = stages_ != nullptr && stages_->is_on_device(tensor.tflite_id);
      if (t.road != plan::Road::kHostPointer && !is_lent) bytes += t.bytes;
      borders.push_back({tensor.tflite_id, tensor.name, t.bytes, tensor.shape.dims(),
                         is_lent ? "lent" : plan::name_of(t.road)});
    }
  };
  add(plan.uploads, report.bytes_up, report.inputs);
  add(plan.downloads, report.bytes_down, report.outputs);
  for (const plan::Move& move : plan.moves) {
    report.moves.push_back({move.kind == plan::Move::Kind::kOut, plan.buffers[uz(move.buffer)].name,
                            move.bytes, move.start, move.finish});
  }
  state_->ledger.set_partition(session_->report, index_, report,
                               {executor_, published_, original_});
  state_->ledger.set_totals(session_->holdings->report, session_->holdings->totals());
  tell_shapes();
}

std::string Partition::unplanned() const {
  if (!problem_.empty()) return "its present shapes do not fit: " + problem_;
  if (!awaits()) return "the shapes of its inputs follow from an inference";
  std::vector<std::string> names;
  for (const ir::Tensor& tensor : model_.tensors) {
    if (std::find(awaited_.begin(), awaited_.end(), tensor.tflite_id) != awaited_.end())
      names.push_back("'" + tensor.name + "'");
  }
  for (const Meter& meter : meters_)
    names.push_back("'" + meter.measured.graph.tensor(0).name + "'");
  return "it depends on values that an inference has: " + join(names);
}

void Partition::tell_shapes() const {
  // The graph of the plan lacks the tensors that passes have removed.
  ir::Graph graph = *original_;
  take_inputs(graph);
  passes::infer_shapes(graph);
  std::map<int, ShapeReport> shapes;
  for (const ir::Tensor& tensor : graph.tensors) {
    const bool is_inner =
        cpu_.inner != nullptr && tensor.tflite_id >= static_cast<int>(cpu_.inner->first());
    if (tensor.tflite_id < 0 || is_inner || tensor.is_constant() || tensor.state >= 0) continue;
    const std::int64_t bytes =
        tensor.shape.elements() * static_cast<std::int64_t>(size_of(tensor.dtype));
    shapes[tensor.tflite_id] = {tensor.shape.dims(), bytes};
  }
  state_->ledger.set_shapes(session_->report, shapes);
}

void Partition::tell_shapes_of_cpu(const TfLiteContext& context) const {
  if (session_->untold == 0) return;
  std::map<int, ShapeReport> shapes;
  const auto add = [&](int id) {
    const TfLiteTensor& tensor = context.tensors[id];
    shapes[id] = {to_vector(tensor.dims), static_cast<std::int64_t>(tensor.bytes)};
  };
  for (const int id : state_->ledger.tensors_of_cpu(session_->report)) add(id);
  if (is_on_cpu()) {
    for (const int id : output_ids()) add(id);
  }
  state_->ledger.set_shapes(session_->report, shapes);
}

std::string Partition::find_type_problem(const TfLiteContext& context) const {
  for (const int id : model_.inputs) {
    const ir::Tensor& tensor = model_.tensor(id);
    if (tensor.state >= 0) continue;
    const std::int32_t type = context.tensors[tensor.tflite_id].type;
    if (tfl::dtype_of(type) != tensor.dtype) {
      return "its input '" + tensor.name + "' is " + tfl::type_name(type) + "; the model says " +
             name_of(tensor.dtype);
    }
  }
  return {};
}

void Partition::prepare(TfLiteContext& context) {
  // The runtime allocates anew after this.
  if (executor_ != nullptr) executor_->forget_tensors();
  for (const Meter& meter : meters_) {
    if (meter.executor != nullptr) meter.executor->forget_tensors();
  }
  // Shapes that were left to the CPU are tried again: missing memory may be free now. The same
  // holds for all shapes after a problem, whatever was known of them.
  bool changed =
      !problem_.empty() || (executor_ == nullptr && !(trust_ != nullptr && trust_->on_cpu()));
  changed = take_shapes(context) || changed;
  changed = changed ||
            (specialization_ != nullptr && specialization_->has_changed(model_, session_->known));
  take_inputs(graph_);
  if (awaits()) {
    if (changed) unbuild();
    stale_ = stale_ || changed;
    for (const int id : output_ids()) open_shape(context, id);
    waiting_ = true;
    session_->untold = 2;
    if (changed) publish();
    state_->ledger.unplan_after(session_->report, index_,
                                "its inputs follow from partition " + std::to_string(index_) +
                                    ", whose results have their shapes in an inference");
    return;
  }
  settle_shapes(context, changed);
  if (problem_.empty()) announce(context);
}

void Partition::settle_shapes(TfLiteContext& context, bool changed, std::string problem) {
  if (problem.empty()) problem = find_type_problem(context);
  if (!problem.empty()) {
    unbuild();
    if (!leave_to_cpu_or_later(context, problem)) throw ShapeError(problem);
  } else if (changed) {
    try {
      build();
    } catch (const ShapeError& error) {
      if (!leave_to_cpu_or_later(context, error.what())) throw;
    } catch (const plan::NoCandidate& error) {
      if (!leave_to_cpu(context, error.what())) throw;
    } catch (const plan::BudgetError& error) {
      if (!leave_stage_to_cpu(context, error.what())) throw;
    } catch (const OptionError&) {
      throw;
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      if (!leave_stage_to_cpu(context, error.what())) throw;
    }
  }
  session_->untold = 2;
  publish();
  if (!problem_.empty()) return;
  if (!cpu_.reason.empty()) return give_shapes_of_cpu(context);
  for (const int id : graph_.outputs) {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.state < 0 && tensor.largest_of < 0)
      give_shape(context, tensor.tflite_id, tensor.shape.dims());
  }
}

bool Partition::take_shapes(const TfLiteContext& context) {
  bool changed = false;
  for (const int id : model_.inputs) {
    ir::Tensor& tensor = model_.tensor(id);
    if (tensor.state >= 0) continue;
    const ir::Shape now(to_vector(context.tensors[tensor.tflite_id].dims));
    changed = changed || now != tensor.shape;
    tensor.shape = now;
  }
  return changed;
}

void Partition::take_awaited(TfLiteContext& context) {
  bool changed = stale_ || (executor_ == nullptr && !is_on_cpu());
  // build() gives graph_ the new shapes: the old plan may be kept with the old ones.
  if (stage_of_ >= 0 && take_shapes(context)) changed = true;
  for (const int id : awaited_) {
    const TfLiteTensor& tensor = context.tensors[id];
    if (tensor.data == nullptr && tensor.bytes != 0)
      throw Error("tensor " + std::to_string(id) +
                  ", whose value planning needs, has no memory on the host");
    Known& known = session_->known[id];
    if (is_value_of(known, tensor)) continue;
    known = known_value(tensor);
    known.is_awaited = true;
  }
  std::string problem;
  try {
    changed = take_numbers(context) || changed;
  } catch (const OptionError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    changed = true;
    problem = error.what();
    for (Meter& meter : meters_) meter.number = -1;  // the next inference tries again
  }
  // Another partition may have taken the new value first.
  changed = changed ||
            (specialization_ != nullptr && specialization_->has_changed(model_, session_->known) &&
             !specialization_->take(model_, session_->known));
  if (!changed && !waiting_) return;
  waiting_ = stale_ = true;  // also if an error prevents the rest
  settle_shapes(context, changed, std::move(problem));
  waiting_ = stale_ = !problem_.empty();
}

void Partition::announce(TfLiteContext& context) {
  if (state_->lender == nullptr || !others_ || awaits()) return;
  lent_in_.clear();
  lent_out_.clear();
  const auto add = [&](int id, std::vector<int>& lent, bool is_input) {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.state >= 0 || tensor.carried >= 0 || tensor.largest_of >= 0) return;
    const TfLiteTensor& tflite = context.tensors[tensor.tflite_id];
    // The memory of other kinds is the runtime's own.
    const bool is_own = tflite.is_variable || tflite.allocation_type == kTfLiteDynamic ||
                        tflite.allocation_type == kTfLiteMmapRo ||
                        tflite.allocation_type == kTfLitePersistentRo;
    if (is_own || others_->count(tensor.tflite_id) > 0) return;
    std::size_t bytes = tflite.bytes;
    // A larger buffer than the tensor, if kernels read and write whole vectors.
    if (const plan::Plan* built = plan()) {
      for (const auto* transfers : {&built->uploads, &built->downloads}) {
        for (const plan::Transfer& t : *transfers) {
          if (published_->tensor(t.tensor).tflite_id == tensor.tflite_id)
            bytes = std::max(bytes, static_cast<std::size_t>(built->buffers[uz(t.buffer)].bytes));
        }
      }
    }
    state_->lender->announce(context, tensor.tflite_id, bytes, is_input);
    lent.push_back(tensor.tflite_id);
  };
  for (const int id : graph_.inputs) add(id, lent_in_, true);
  for (const int id : graph_.outputs) add(id, lent_out_, false);
}

std::unique_ptr<Loan> Partition::borrow(TfLiteContext& context) const {
  if (lent_in_.empty() && lent_out_.empty()) return nullptr;
  if (stages_ != nullptr) return stages_->borrow(context, lent_in_, lent_out_);
  return state_->lender->borrow(context, state_->target.context, lent_in_, lent_out_);
}

void Partition::invoke(TfLiteContext& context) {
  const cl::Counters before = cl::counters();
  state_->target.context->end_builds();
  if (index_ == 0 && state_->target.options.profile) begin_recording();
  if (index_ == 0 && session_->untold > 0) {
    if (session_->untold == 1) tell_shapes_of_cpu(context);
    --session_->untold;
  }
  if (awaits()) take_awaited(context);
  if (!is_on_cpu()) {
    if (!problem_.empty()) throw ShapeError(problem_);
    if (executor_ == nullptr) build_again();  // verification may have left these shapes to the CPU
    if (states_ != nullptr) states_->fetch(context, model_);
  }
  forget_found();
  const std::unique_ptr<Loan> loan = borrow(context);
  const bool verifies = !is_on_cpu() && trust_ != nullptr && due();
  if (loan != nullptr && (is_on_cpu() || verifies)) {
    for (const auto* tensors : {&lent_in_, &lent_out_}) {
      for (const int tensor : *tensors) loan->map(tensor);
    }
  }
  if (is_on_cpu()) {
    lower_carried(context, graph_.inputs);
    compute_on_cpu(context);
    lift_carried(context, graph_.outputs);
  } else {
    if (verifies) {
      lower_carried(context, graph_.inputs);
      executor_->forget_kept();  // the CPU's kernels compute all of it
    }
    run(context, loan.get());
    tell_found();
    if (verifies) {
      lower_carried(context, graph_.outputs);
      verify(context);
    }
  }
  if (loan != nullptr) loan->end();
  tell_shapes_of_cpu(context);
  if (trust_ != nullptr) ++trust_->inferences;
  state_->ledger.count_invoke(session_->invoke, index_ == 0, cl::counters() - before);
}

void Partition::begin_recording() {
  if (executor_ != nullptr) session_->pace.ask(executor_->recorder()->take_asked());
  session_->pace.next();
}

void Partition::run(TfLiteContext& context, Loan* loan) {
  try {
    run_once(context, loan);
  } catch (const cl::OpenCLError& error) {
    if (!error.out_of_memory() || !executor_->plan().repeats) throw;
    // Some devices report only now that they lack the memory they have allocated. If other plans
    // had some of it, there is enough for the same plan.
    const std::int64_t less = std::max<std::int64_t>(executor_->plan().peak_bytes / 10 * 7, 1);
    rebuild(drop_aside() ? allowance() : less);
    publish();
    run_once(context, loan);
  }
}

void Partition::run_once(TfLiteContext& context, Loan* loan) {
  const plan::Plan& plan = executor_->plan();
  const auto state_of = [&](const plan::Transfer& t) { return published_->tensor(t.tensor).state; };
  const auto data_of = [&](const plan::Transfer& t) {
    const ir::Tensor& tensor = published_->tensor(t.tensor);
    const TfLiteTensor& tflite = context.tensors[tensor.tflite_id];
    if (tflite.data == nullptr || tflite.bytes < static_cast<std::size_t>(t.host_bytes)) {
      throw Error("tensor '" + tensor.name + "' has " + std::to_string(tflite.bytes) +
                  " bytes on the host; " + std::to_string(t.host_bytes) + " are needed");
    }
    return tflite.data;
  };
  runtime::Executor::Lent lent;
  if (loan != nullptr) {
    for (const auto* transfers : {&plan.uploads, &plan.downloads}) {
      for (const plan::Transfer& t : *transfers) {
        lent.buffers.push_back(
            state_of(t) >= 0 ? nullptr : loan->buffer(published_->tensor(t.tensor).tflite_id));
      }
    }
    const std::vector<cl::cl_mem> given = lent.buffers;
    for (std::size_t i = 0; i < given.size(); ++i) {
      // A buffer of several tensors would be written while it is read.
      const bool is_alone = std::count(given.begin(), given.end(), given[i]) == 1;
      if (given[i] != nullptr && is_alone && executor_->takes(i, given[i])) continue;
      lent.buffers[i] = nullptr;
      const std::size_t inputs = plan.uploads.size();
      const plan::Transfer& t = i < inputs ? plan.uploads[i] : plan.downloads[i - inputs];
      if (state_of(t) < 0) loan->map(published_->tensor(t.tensor).tflite_id);
    }
    lent.ready = loan->ready();
    lent.may_fly = loan->may_fly();
  }
  const auto is_lent = [&](std::size_t i) { return loan != nullptr && lent.buffers[i] != nullptr; };
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const plan::Transfer& t : plan.uploads) {
    const bool lent_now = is_lent(inputs.size());
    const void* const data = state_of(t) >= 0 ? states_->before(state_of(t)) : nullptr;
    inputs.push_back(data != nullptr || lent_now ? data : data_of(t));
  }
  for (const plan::Transfer& t : plan.downloads) {
    const bool lent_now = is_lent(inputs.size() + outputs.size());
    const auto bytes = static_cast<std::size_t>(t.host_bytes);
    const ir::Tensor& tensor = published_->tensor(t.tensor);
    if (tensor.largest_of >= 0) {
      outputs.push_back(
          session_->carriers->place_for_found(tensor.largest_of, tensor.dtype, bytes));
      continue;
    }
    void* const data = state_of(t) >= 0 ? states_->after(state_of(t), bytes) : nullptr;
    outputs.push_back(data != nullptr || lent_now ? data : data_of(t));
  }
  runtime::Recorder* const recorder = executor_->recorder().get();
  if (recorder == nullptr) {
    cl::EventHandle done = executor_->run(inputs, outputs, lent);
    if (done) loan->deliver(std::move(done));
    if (loan != nullptr && !loan->may_be_kept()) executor_->return_lent();
    if (states_ != nullptr) states_->deliver(context, *published_);
    return;
  }
  runtime::Pace& pace = session_->pace;
  recorder->set_next(pace.number(), pace.is_recorded());
  const auto start = std::chrono::steady_clock::now();
  executor_->run(inputs, outputs, lent);
  if (loan != nullptr && !loan->may_be_kept()) executor_->return_lent();
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
  pace.add(taken.count(), recorder->commands().size());
  if (states_ != nullptr) states_->deliver(context, *published_);
}

}  // namespace clgpu::delegate
