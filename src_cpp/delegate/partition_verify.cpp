// How a partition's results are compared with those of the CPU's kernels, and what follows.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/sha256.hpp"
#include "delegate/difference.hpp"
#include "delegate/partition.hpp"
#include "plan/signature.hpp"

namespace clgpu::delegate {
namespace {

// Stock kernels of integers differ by roundings, which a network may blow up: beyond this no more.
constexpr double kMostOfIntegers = 0.5;
constexpr std::size_t kHashed = 4096;  // bytes of a constant, from its start and from its end

std::atomic<bool> always_fails{false};

std::string node_name(const ir::Node& node) {
  return "node " + std::to_string(node.tflite_index) + " (" + node.op + ")";
}

bool has_quantized(const ir::Graph& graph) {
  return std::any_of(graph.tensors.begin(), graph.tensors.end(),
                     [](const ir::Tensor& t) { return t.is_quantized() && !t.is_constant(); });
}

// A row of the store: level and numbers, reason, and engines, one a line.
std::string to_record(const Judgement& verdict) {
  std::ostringstream text;
  text.precision(9);
  text << static_cast<int>(verdict.level) << ' ' << verdict.relative_l2 << ' ' << verdict.max_abs
       << '\n'
       << verdict.engine << '\n'
       << verdict.reason;
  return text.str();
}

bool from_record(const std::string& record, Judgement& verdict) {
  std::istringstream text(record);
  int level = 0;
  if (!(text >> level >> verdict.relative_l2 >> verdict.max_abs)) return false;
  if (level < 0 || level > static_cast<int>(Level::kCpu)) return false;
  verdict.level = static_cast<Level>(level);
  text.ignore();
  std::getline(text, verdict.engine);
  std::getline(text, verdict.reason, '\0');
  return true;
}

void append(std::string& text, const std::string& more, const char* separator) {
  if (text.find(more) == std::string::npos) text += (text.empty() ? "" : separator) + more;
}

}  // namespace

void always_fail(bool fail) { always_fails = fail; }

struct Partition::Finding {
  Difference worst;
  std::string problem;
  bool lenient = true;  // stock kernels may be as far apart
};

struct Partition::Suspects {
  struct Engine {
    std::string family, candidate, why;
  };
  std::vector<Engine> engines;  // wrong where another one of the same node is right
  std::string hopeless;         // a node without an engine that is right
};

void Partition::verify_by(std::vector<CpuNode> nodes) {
  if (trust_ != nullptr) trust_->nodes = std::move(nodes);
}

bool Partition::due() const {
  if (!trust_->possible) return false;
  const int every = state_->options.verify;
  return every == kVerifyFirst ? trust_->inferences == 0 : trust_->inferences % every == 0;
}

// SHA-256 over all that a verdict depends on but the device; empty where it cannot be told.
std::string Partition::signature() const {
  Sha256 hash;
  const auto add = [&](const std::string& field) { hash.update(field).update({"\0", 1}); };
  const Options& options = state_->options;
  add(passes::name_of(options.precision));
  add(std::to_string(options.half_io) + std::to_string(options.half_weights));
  for (const auto& [family, engine] : options.plan.engines) {
    add(family);
    add(engine);
  }
  add(ir::print(graph_));
  for (const ir::Tensor& tensor : graph_.tensors) {
    if (!tensor.is_constant()) continue;
    const auto* bytes = static_cast<const char*>(tensor.constant->data);
    const std::size_t size = tensor.constant->bytes, part = std::min(size, kHashed);
    hash.update({bytes, part}).update({bytes + size - part, part});
  }
  try {
    for (const ir::Node& node : graph_.nodes) {
      const ops::Family& family = ops::family_of(node);
      if (family.candidates == nullptr || node.kind->is_view) continue;
      add(plan::signature(family.name,
                          family.candidates(ops::NodeContext(graph_, node), state_->device()), {}));
    }
  } catch (const Error&) {
    return {};
  }
  return hex(hash.digest());
}

// Sets the graph of the level, with the shapes of the moment.
void Partition::lower(Level level) {
  ir::Graph graph = pass(trust_->original, level);
  for (const int id : graph.inputs) {
    ir::Tensor& tensor = graph.tensor(id);
    for (const int old : graph_.inputs) {
      if (graph_.tensor(old).tflite_id == tensor.tflite_id) tensor.shape = graph_.tensor(old).shape;
    }
  }
  graph_ = std::move(graph);
  passes::infer_shapes(graph_);
  trust_->verdict.level = level;
}

// Builds for new shapes, at the level that was found right before.
void Partition::recall() {
  Trust& trust = *trust_;
  trust.shadow.reset();
  trust.inferences = 0;
  trust.possible = true;
  const std::int64_t checked = trust.verdict.checked;
  trust.verdict = {};
  trust.verdict.checked = checked;
  lower(Level::kAsAsked);
  trust.signature = signature();
  Judgement kept;
  const auto record =
      trust.signature.empty() ? std::nullopt : state_->kept_verdict(trust.signature);
  if (!record || !from_record(*record, kept)) {
    rebuild(allowance());
    return;
  }
  kept.checked = checked;
  kept.source = "kept";
  trust.verdict = kept;
  std::istringstream engines(kept.engine);
  for (std::string engine; std::getline(engines, engine, ',');) {
    const std::size_t start = engine.find_first_not_of(' '), slash = engine.find('/');
    if (slash == std::string::npos) continue;
    state_->distrust(kept.level == Level::kExactSums ? Level::kAsAsked : kept.level,
                     engine.substr(start, slash - start), engine.substr(slash + 1),
                     "computed wrong numbers before");
  }
  settle(kept.level);
}

void Partition::keep() const {
  const Trust& trust = *trust_;
  if (trust.signature.empty()) return;
  if (trust.verdict.level == Level::kAsAsked && trust.verdict.engine.empty()) return;
  state_->keep_verdict(trust.signature, to_record(trust.verdict),
                       state_->device().name + ": " + name_of(trust.verdict.level) +
                           (trust.verdict.engine.empty() ? "" : ", without ") +
                           trust.verdict.engine);
}

// Builds at a level, or at the first one below it that can be built.
void Partition::settle(Level level) {
  for (; level != Level::kCpu; level = static_cast<Level>(static_cast<int>(level) + 1)) {
    try {
      lower(level);
      rebuild(allowance());
      return;
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      append(trust_->verdict.reason, error.what(), "; ");
    }
  }
  executor_.reset();
  session_->held.erase(index_);
  lower(Level::kCpu);
}

bool Partition::run_shadow(TfLiteContext& context, bool all) {
  Trust& trust = *trust_;
  std::set<int> wanted;
  for (const int id : graph_.outputs) wanted.insert(graph_.tensor(id).tflite_id);
  try {
    if (trust.shadow == nullptr) {
      trust.shadow = std::make_unique<Shadow>(
          context, trust.nodes, state_->options.dynamic_range == passes::DynamicRange::kDequantize);
    }
    trust.shadow->run(context, wanted, all);
    for (const int id : wanted) {
      const TfLiteTensor& tensor = trust.shadow->tensor(id);
      if (tensor.data == nullptr || tensor.bytes != context.tensors[id].bytes ||
          tensor.type != context.tensors[id].type)
        throw ShadowError("the CPU's kernels give tensor " + std::to_string(id) +
                          " another size than the delegate");
    }
    return true;
  } catch (const ShadowError& error) {
    trust.shadow.reset();
    trust.possible = false;
    trust.verdict.reason = std::string("not verified: ") + error.what();
    return false;
  }
}

// Whether an output that holds indices names elements as large as the right ones.
bool Partition::is_tie(int tensor, const void* got, double slack) const {
  for (const CpuNode& node : trust_->nodes) {
    if (std::count(node.outputs.begin(), node.outputs.end(), tensor) == 0) continue;
    const TfLiteTensor& values = trust_->shadow->tensor(node.inputs.at(0));
    if (values.data == nullptr) return false;
    const TfLiteTensor& want = trust_->shadow->tensor(tensor);
    if (node.op == "TOPK_V2" && node.outputs.back() == tensor)
      return are_ties(values, -1, want, got, slack);
    if (node.op != "ARG_MAX" && node.op != "ARG_MIN") return false;
    const TfLiteTensor& axis = trust_->shadow->tensor(node.inputs.at(1));
    if (axis.data == nullptr || axis.type != kTfLiteInt32) return false;
    int value = 0;
    std::memcpy(&value, axis.data, sizeof value);
    return are_ties(values, value, want, got, slack);
  }
  return false;
}

Partition::Finding Partition::compare(const TfLiteContext& context) const {
  const Options& options = state_->options;
  const Tolerance allowed =
      tolerance_of(options.precision, options.half_weights, trust_->verdict.level, false);
  Finding finding;
  const bool integers = has_quantized(graph_);
  for (const int id : graph_.outputs) {
    const ir::Tensor& tensor = graph_.tensor(id);
    const TfLiteTensor& want = trust_->shadow->tensor(tensor.tflite_id);
    const void* got = context.tensors[tensor.tflite_id].data;
    const Difference difference = difference_of(want, got);
    std::string problem = problem_of(want, difference, allowed);
    if (!problem.empty() && is_tie(tensor.tflite_id, got, allowed.peak)) problem.clear();
    if (!problem.empty()) {
      finding.lenient = finding.lenient && integers && difference.odd == 0 &&
                        difference.relative_l2 <= kMostOfIntegers;
      append(finding.problem, "output '" + tensor.name + "': " + problem, "; ");
    }
    if (difference.relative_l2 >= finding.worst.relative_l2) finding.worst = difference;
  }
  if (always_fails) finding.problem = "a test wants it to fail";
  finding.lenient = finding.lenient && !finding.problem.empty();
  return finding;
}

// How far one candidate is off on the right inputs: nothing where that cannot be told, empty where
// it is right.
std::optional<std::string> Partition::problem_alone(std::size_t position,
                                                    const std::string& candidate) const {
  const Options& options = state_->options;
  const Level level = trust_->verdict.level;
  const Tolerance allowed = tolerance_of(options.precision, options.half_weights, level, true);
  const auto input = [&](const ir::Tensor& tensor, std::int64_t bytes) {
    const TfLiteTensor* right =
        tensor.tflite_id < 0 ? nullptr : &trust_->shadow->tensor(tensor.tflite_id);
    if (right == nullptr || right->data == nullptr ||
        right->bytes != static_cast<std::size_t>(bytes))
      throw Error("an input is unknown");
    return static_cast<const void*>(right->data);
  };
  try {
    bool any = false;
    for (const runtime::AloneResult& result :
         state_->run_alone(graph_, position, candidate, level, input)) {
      if (result.tflite_id < 0) continue;
      const TfLiteTensor& want = trust_->shadow->tensor(result.tflite_id);
      if (want.data == nullptr || want.bytes != result.bytes.size()) continue;
      const std::string problem =
          problem_of(want, difference_of(want, result.bytes.data()), allowed);
      if (!problem.empty() && !is_tie(result.tflite_id, result.bytes.data(), allowed.peak))
        return problem;
      any = true;
    }
    if (any) return std::string();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    // It cannot be built alone, say.
  }
  return std::nullopt;
}

Partition::Suspects Partition::find_suspects() const {
  Suspects suspects;
  std::set<std::pair<std::size_t, std::string>> seen;
  for (const plan::Choice& choice : executor_->plan().choices) {
    const auto node = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const auto& n) {
      return n.tflite_index == choice.node && choice.family == n.kind->name;
    });
    if (node == graph_.nodes.end()) continue;
    const auto position = static_cast<std::size_t>(node - graph_.nodes.begin());
    if (!seen.emplace(position, choice.candidate).second) continue;
    const auto problem = problem_alone(position, choice.candidate);
    if (!problem || problem->empty()) continue;
    std::vector<Suspects::Engine> wrong{
        {choice.family, choice.candidate,
         "computes wrong numbers at " + node_name(*node) + ": " + *problem}};
    bool any_right = false;
    for (const std::string& other : choice.candidates) {
      if (other == choice.candidate) continue;
      const auto found = problem_alone(position, other);
      if (!found) continue;
      if ((any_right = found->empty())) break;
      wrong.push_back(
          {choice.family, other, "computes wrong numbers at " + node_name(*node) + ": " + *found});
    }
    if (any_right) {
      suspects.engines.insert(suspects.engines.end(), wrong.begin(), wrong.end());
    } else if (suspects.hopeless.empty()) {
      suspects.hopeless = "no engine of " + choice.family + " is right at " + node_name(*node) +
                          " (" + choice.candidate + ": " + *problem + ")";
    }
  }
  return suspects;
}

void Partition::take_from_shadow(TfLiteContext& context) const {
  for (const int id : graph_.outputs) {
    const int tensor = graph_.tensor(id).tflite_id;
    const TfLiteTensor& right = trust_->shadow->tensor(tensor);
    if (right.bytes > 0) std::memcpy(context.tensors[tensor].data, right.data, right.bytes);
  }
}

void Partition::compute_on_cpu(TfLiteContext& context) {
  if (!run_shadow(context, false)) throw Error(trust_->verdict.reason);
  take_from_shadow(context);
}

void Partition::verify(TfLiteContext& context) {
  Trust& trust = *trust_;
  Judgement& verdict = trust.verdict;
  if (!run_shadow(context, false)) return publish();
  ++verdict.checked;
  bool lowered = false, has_all = false;
  while (true) {
    Finding finding = compare(context);
    if (!finding.problem.empty() && !has_all) {
      has_all = run_shadow(context, true);
      if (!has_all) return publish();
      finding = compare(context);  // ties show now
    }
    verdict.relative_l2 = finding.worst.relative_l2;
    verdict.max_abs = finding.worst.max_abs;
    if (finding.problem.empty()) break;
    const Suspects suspects =
        always_fails ? Suspects{{}, "a test wants it to fail"} : find_suspects();
    if (suspects.engines.empty() && suspects.hopeless.empty() && finding.lenient) {
      verdict.reason =
          finding.problem + ", which kernels of integers differ by: each node alone is right";
      break;
    }
    lowered = true;
    if (!suspects.engines.empty()) {
      for (const Suspects::Engine& engine : suspects.engines) {
        state_->distrust(verdict.level, engine.family, engine.candidate, engine.why);
        append(verdict.engine, engine.family + "/" + engine.candidate, ", ");
        append(verdict.reason, engine.family + "/" + engine.candidate + " " + engine.why, "; ");
      }
      settle(verdict.level);
    } else {
      append(verdict.reason,
             std::string(name_of(verdict.level)) + ": " +
                 (suspects.hopeless.empty() ? finding.problem + "; each node alone is right"
                                            : suspects.hopeless),
             "; ");
      settle(static_cast<Level>(static_cast<int>(verdict.level) + 1));
    }
    if (trust.on_cpu()) {
      take_from_shadow(context);
      break;
    }
    run(context);
  }
  verdict.source = lowered || verdict.source.empty() ? "checked now" : verdict.source;
  if (lowered) keep();
  const bool again = state_->options.verify != kVerifyFirst || trust.on_cpu();
  if (!again) trust.shadow.reset();
  publish();
}

}  // namespace clgpu::delegate
