// Compares a partition's results with those of the CPU's kernels, and acts on the result.
#include <algorithm>
#include <cstring>
#include <functional>
#include <locale>
#include <set>
#include <sstream>
#include <utility>

#include "base/join.hpp"
#include "base/sha256.hpp"
#include "delegate/building/partition.hpp"
#include "ir/text.hpp"
#include "ops/families/unary.hpp"
#include "ops/shared/conversions.hpp"
#include "plan/signature.hpp"

namespace clgpu::delegate {
namespace {

// A row of the store: level and numbers, reason, and engines, one per line.
std::string to_record(const Judgement& verdict) {
  std::ostringstream text;
  text.imbue(std::locale::classic());  // a store may be read under another locale
  text.precision(9);
  text << static_cast<int>(verdict.level) << ' ' << verdict.relative_l2 << ' ' << verdict.max_abs
       << '\n'
       << verdict.engine << '\n'
       << verdict.reason;
  return text.str();
}

bool from_record(const std::string& record, Judgement& verdict) {
  std::istringstream text(record);
  text.imbue(std::locale::classic());
  int level = 0;
  if (!(text >> level >> verdict.relative_l2 >> verdict.max_abs)) return false;
  if (level < 0 || level > static_cast<int>(Level::kCpu)) return false;
  verdict.level = static_cast<Level>(level);
  text.ignore();
  std::getline(text, verdict.engine);
  std::getline(text, verdict.reason, '\0');
  return true;
}

// Stock kernels compute fused activations that are a range, and silently ignore others.
void check_stock_kernels(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    for (const auto& inner : node.graphs) check_stock_kernels(*inner);
    if (const auto mistake = ops::family_of(node).stock_mistake; mistake != nullptr) {
      const std::string what = mistake(ops::NodeContext(graph, node));
      if (!what.empty())
        throw ShadowError("stock kernels " + what + " at node " +
                          std::to_string(node.tflite_index) + " (" + node.op + ")");
    }
    const ir::Activation fused = node.epilogue.activation;
    if (fused != ir::Activation::kTanh && fused != ir::Activation::kSignBit) continue;
    if (!ops::as_epilogue(node))  // otherwise the activation is the operation itself
      throw ShadowError("stock kernels leave out the activation of node " +
                        std::to_string(node.tflite_index) + " (" + node.op + ")");
  }
}

bool contains(const std::string& list, const std::string& item) {
  return (", " + list + ", ").find(", " + item + ", ") != std::string::npos;
}

}  // namespace

bool Partition::due() const {
  if (!trust_->possible) return false;
  const int every = state_->target.options.verify;
  return every == kVerifyFirst ? trust_->inferences == 0 : trust_->inferences % every == 0;
}

// SHA-256 over everything that a verdict depends on except the device; empty if it cannot be
// computed.
std::string Partition::signature() const {
  Sha256 hash;
  const auto add = [&](const std::string& field) { hash.update(field).update({"\0", 1}); };
  const Options& options = state_->target.options;
  add(passes::name_of(options.precision));
  if (const auto& plan = session_->mixed.plan; plan != nullptr && plan->bound)
    add("bound " + std::to_string(*plan->bound * 1e9));
  add(std::to_string(options.half_io) + std::to_string(options.half_weights));
  for (const auto& [family, engine] : options.plan.engines) {
    add(family);
    add(engine);
  }
  ir::TextOptions text;
  text.complete = text.digests = text.steps = false;
  add(ir::write_text(graph_, text));
  const auto add_constants = [&](const ir::Graph& graph) {
    for (const ir::Tensor& tensor : graph.tensors) {
      if (!tensor.is_constant()) continue;
      hash.update_ends({static_cast<const char*>(tensor.constant->data), tensor.constant->bytes});
    }
  };
  const std::function<void(const ir::Graph&)> add_graph = [&](const ir::Graph& graph) {
    add_constants(graph);
    for (const ir::Node& node : graph.nodes) {
      for (const auto& inner : node.graphs) add_graph(*inner);
      const ops::Family& family = ops::family_of(node);
      if (family.candidates == nullptr || node.kind->is_view) continue;
      add(plan::signature(
          family.name, ops::candidates_of(ops::NodeContext(graph, node), state_->target.device()),
          {}));
    }
  };
  try {
    add_graph(graph_);
  } catch (const Error&) {
    return {};
  }
  return hex(hash.digest());
}

// Sets the graph of the level, with the current shapes.
void Partition::lower(Level level) {
  ir::Graph graph = pass(*original_, level);
  take_inputs(graph);
  graph_ = std::move(graph);
  infer_shapes(level);
  trust_->verdict.level = level;
}

// Builds for new shapes, at the level that was found right earlier.
void Partition::recall() {
  Trust& trust = *trust_;
  cpu_.shadow.reset();
  trust.inferences = 0;
  trust.possible = true;
  trust.is_lasting = true;
  const std::int64_t checked = trust.verdict.checked;
  trust.verdict = {};
  trust.verdict.checked = checked;
  lower(Level::kAsAsked);
  trust.signature = signature();
  Judgement kept;
  const auto record =
      trust.signature.empty()
          ? std::nullopt
          : state_->target.store->get(store::kVerification, state_->target.key(trust.signature));
  if (!record || !from_record(*record, kept)) {
    rebuild(allowance());
    return;
  }
  kept.checked = checked;
  kept.source = "kept";
  trust.verdict = kept;
  settle(kept.level);
}

void Partition::keep() const {
  const Trust& trust = *trust_;
  if (trust.signature.empty() || !trust.is_lasting) return;
  if (trust.verdict.level == Level::kAsAsked && trust.verdict.engine.empty()) return;
  const Target& target = state_->target;
  target.store->put(store::kVerification, target.key(trust.signature), to_record(trust.verdict),
                    target.device().name + ": " + name_of(trust.verdict.level) +
                        (trust.verdict.engine.empty() ? "" : ", without ") + trust.verdict.engine);
}

// Builds at a level, or at the first lower one that can be built.
void Partition::settle(Level level) {
  for (; level != Level::kCpu; level = static_cast<Level>(static_cast<int>(level) + 1)) {
    try {
      lower(level);
      rebuild(allowance());
      return;
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      // The failure may pass: for example, the device may have enough memory later.
      trust_->is_lasting = false;
      append_item(trust_->verdict.reason, error.what(), "; ");
    }
  }
  release();
  lower(Level::kCpu);
}

bool Partition::run_shadow(TfLiteContext& context, bool all) {
  Trust& trust = *trust_;
  const std::set<int> wanted = output_ids();
  try {
    if (cpu_.shadow == nullptr) check_stock_kernels(*original_);
    shadow(context).run(context, wanted, all);
    for (const int id : wanted) {
      const TfLiteTensor& tensor = cpu_.shadow->tensor(id);
      if (tensor.data == nullptr || tensor.bytes != context.tensors[id].bytes ||
          tensor.type != context.tensors[id].type)
        throw ShadowError("the CPU's kernels give tensor " + std::to_string(id) +
                          " another size than the delegate");
    }
    return true;
  } catch (const ShadowError& error) {
    cpu_.shadow.reset();
    trust.possible = false;
    trust.verdict.outcome = Judgement::Outcome::kUnchecked;
    trust.verdict.reason = std::string("not verified: ") + error.what();
    return false;
  }
}

Comparison Partition::comparison() const {
  return {state_->target.options,
          trust_->verdict.level,
          session_->mixed.plan.get(),
          session_->model_outputs,
          *original_,
          graph_,
          cpu_};
}

Suspects Partition::find_suspects() const {
  const Builder& builder = state_->builder;
  return comparison().find_suspects(executor_->plan(), [&](auto&&... asked) {
    return builder.run_alone(std::forward<decltype(asked)>(asked)...);
  });
}

// The CPU's kernels begin with the states with which the device began, and change them as well.
bool Partition::run_shadow_too(TfLiteContext& context, bool all) {
  if (states_ != nullptr) states_->take_back(context, model_);
  const bool ran = run_shadow(context, all);
  if (states_ != nullptr) states_->deliver(context, model_);
  return ran;
}

// Distrusts engines; returns whether any of them is not in `left_out` yet.
bool Partition::leave_out(const std::vector<Suspects::Engine>& wrong,
                          std::set<std::string>& left_out) {
  Judgement& verdict = trust_->verdict;
  bool any_new = false;
  for (const Suspects::Engine& engine : wrong) {
    state_->engines.distrust(engine.engine, engine.name, engine.why);
    any_new = left_out.insert(engine.engine).second || any_new;
    if (contains(verdict.engine, engine.name)) continue;
    append_item(verdict.engine, engine.name);
    append_item(verdict.reason, engine.name + " " + engine.why, "; ");
  }
  return any_new;
}

void Partition::verify(TfLiteContext& context) {
  Trust& trust = *trust_;
  Judgement& verdict = trust.verdict;
  if (!run_shadow_too(context, false)) return publish();
  ++verdict.checked;
  bool lowered = false, has_all = false;
  Judgement::Outcome outcome = Judgement::Outcome::kRight;
  std::set<std::string> left_out;  // others may know them by now, but this build did not
  while (true) {
    Finding finding = comparison().compare(context);
    if (!finding.problem.empty() && !has_all) {
      has_all = run_shadow_too(context, true);
      if (!has_all) return publish();
      finding = comparison().compare(context);  // ties are visible now
    }
    verdict.relative_l2 = finding.worst.relative_l2;
    verdict.max_abs = finding.worst.max_abs;
    verdict.bound_l2 = finding.bound_l2;
    if (finding.problem.empty()) break;
    const Suspects suspects = find_suspects();
    if (suspects.engines.empty() && suspects.hopeless.empty() && finding.lenient) {
      outcome = Judgement::Outcome::kRounding;
      verdict.reason = finding.problem +
                       "; each node alone is right, and integer kernels may differ by this much";
      break;
    }
    lowered = true;
    if (leave_out(suspects.engines, left_out)) {
      settle(verdict.level);
    } else {
      append_item(verdict.reason,
                  std::string(name_of(verdict.level)) + ": " +
                      (suspects.hopeless.empty() ? finding.problem + "; each node alone is right"
                                                 : suspects.hopeless),
                  "; ");
      settle(static_cast<Level>(static_cast<int>(verdict.level) + 1));
    }
    if (trust.on_cpu()) {
      if (states_ != nullptr) {  // theirs become those of the CPU's kernels
        states_->take_back(context, model_);
        if (!run_shadow(context, false)) throw Error(verdict.reason);
      }
      take_from_shadow(context);
      lift_carried(context, graph_.outputs);
      break;
    }
    lift_carried(context, graph_.inputs);  // as they were before the wrong inference
    run(context);
    lower_carried(context, graph_.outputs);
  }
  verdict.outcome = lowered ? Judgement::Outcome::kReplaced : outcome;
  verdict.source = lowered || verdict.source.empty() ? "checked now" : verdict.source;
  if (lowered) keep();
  const bool again = state_->target.options.verify != kVerifyFirst || trust.on_cpu();
  if (!again) cpu_.shadow.reset();
  publish();
}

}  // namespace clgpu::delegate
