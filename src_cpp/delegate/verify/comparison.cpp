#include "delegate/verify/comparison.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/index.hpp"
#include "base/join.hpp"

namespace clgpu::delegate {
namespace {

// Largest relative L2 error of integer networks. Stock integer kernels differ from each other in
// rounding, and a network may amplify the difference up to this.
constexpr double kMostOfIntegers = 0.5;

bool has_quantized(const ir::Graph& graph) {
  return std::any_of(graph.tensors.begin(), graph.tensors.end(),
                     [](const ir::Tensor& t) { return t.is_quantized() && !t.is_constant(); });
}

}  // namespace

std::optional<double> Comparison::bound_of(const passes::PrecisionPlan& mixed,
                                           const std::set<int>& model_outputs,
                                           const ir::Graph& graph) {
  if (!mixed.bound) return std::nullopt;
  const bool ends_model = std::all_of(graph.outputs.begin(), graph.outputs.end(), [&](int id) {
    const ir::Tensor& tensor = graph.tensor(id);
    return tensor.state >= 0 || model_outputs.count(tensor.tflite_id) != 0;
  });
  return ends_model ? *mixed.bound : std::max(*mixed.bound, kMixedL2);
}

// The runtimes' kernels compute some functions of bfloat16 in bfloat16, step by step.
Tolerance Comparison::tolerance(bool of_node) const {
  const Tolerance due = tolerance_of(precision_, options_.half_weights, level_, of_node, named_);
  const bool has_bfloats =
      std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const ir::Node& node) {
        return std::any_of(node.outputs.begin(), node.outputs.end(), [&](int id) {
          return graph_.tensor(id).dtype == DType::kBF16 && !graph_.tensor(id).is_constant();
        });
      });
  if (!has_bfloats) return due;
  const Tolerance rough =
      tolerance_of(passes::Precision::kFp16, false, Level::kAsAsked, of_node, std::nullopt);
  return rough.relative_l2 > due.relative_l2 ? rough : due;
}

// Whether an output that holds indices refers to elements as large as the right ones.
bool Comparison::is_tie(int tensor, const void* got, double slack) const {
  for (const CpuNode& node : cpu_.nodes) {
    if (std::count(node.outputs.begin(), node.outputs.end(), tensor) == 0) continue;
    if (node.inputs.empty()) return false;
    const TfLiteTensor& values = cpu_.shadow->tensor(node.inputs[0]);
    if (values.data == nullptr) return false;
    const TfLiteTensor& want = cpu_.shadow->tensor(tensor);
    if (node.family == nullptr) return false;
    const ops::Indices& indices = node.family->indices;
    if (indices.output < 0 || node.outputs.at(uz(indices.output)) != tensor) return false;
    if (indices.axis < 0) return are_ties(values, -1, want, got, slack);
    const TfLiteTensor& axis = cpu_.shadow->tensor(node.inputs.at(uz(indices.axis)));
    if (axis.data == nullptr || axis.type != kTfLiteInt32) return false;
    int value = 0;
    std::memcpy(&value, axis.data, sizeof value);
    return are_ties(values, value, want, got, slack);
  }
  return false;
}

Finding Comparison::compare(const TfLiteContext& context) const {
  const Tolerance allowed = tolerance(false);
  Finding finding;
  finding.lenient = has_quantized(model_);
  for (const int id : graph_.outputs) {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (tensor.state >= 0) continue;  // later inferences show whether it is right
    const TfLiteTensor& want = cpu_.shadow->tensor(tensor.tflite_id);
    const void* got = context.tensors[tensor.tflite_id].data;
    const Difference difference = difference_of(want, got);
    std::string problem = problem_of(want, difference, allowed);
    if (!problem.empty() && is_tie(tensor.tflite_id, got, allowed.peak)) problem.clear();
    if (!problem.empty()) {
      finding.lenient =
          finding.lenient && difference.odd == 0 && difference.relative_l2 <= kMostOfIntegers;
      append_item(finding.problem, "output '" + tensor.name + "': " + problem, "; ");
    }
    if (difference.relative_l2 >= finding.worst.relative_l2) {
      finding.worst = difference;
      finding.bound_l2 = l2_bound(want, allowed);
    }
  }
  return finding;
}

// The result of one candidate on the right inputs: empty if it cannot be determined, no `why` if it
// is right.
std::optional<Suspects::Engine> Comparison::judge_alone(std::size_t position,
                                                        const std::string& candidate,
                                                        const RunAlone& run_alone) const {
  const Tolerance allowed = tolerance(true);
  const auto input = [&](const ir::Tensor& tensor, std::int64_t bytes) {
    const TfLiteTensor* right =
        tensor.tflite_id < 0 ? nullptr : &cpu_.shadow->tensor(tensor.tflite_id);
    if (right == nullptr || right->data == nullptr ||
        right->bytes != static_cast<std::size_t>(bytes))
      throw Error("an input is unknown");
    return static_cast<const void*>(right->data);
  };
  try {
    const runtime::Alone alone = run_alone(graph_, position, candidate, level_, input);
    Suspects::Engine found{alone.engine, graph_.nodes[position].kind->name, {}};
    found.name += "/" + candidate;
    bool any = false;
    for (const runtime::Alone::Result& result : alone.results) {
      if (result.tflite_id < 0) continue;
      const TfLiteTensor& want = cpu_.shadow->tensor(result.tflite_id);
      if (want.data == nullptr || want.bytes != result.bytes.size()) continue;
      any = true;
      const void* got = result.bytes.data();
      const std::string problem = problem_of(want, difference_of(want, got), allowed);
      if (!problem.empty() && !is_tie(result.tflite_id, got, allowed.peak)) found.why = problem;
    }
    if (any) return found;
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    // For example, it cannot be built alone.
  }
  return std::nullopt;
}

// Finds out whether another engine of the node is right if the chosen one is wrong.
void Comparison::judge(const plan::Choice& choice, std::size_t position, const RunAlone& run_alone,
                       Suspects& suspects) const {
  const auto engine = judge_alone(position, choice.candidate, run_alone);
  if (!engine || engine->why.empty()) return;
  const ir::Node& node = graph_.nodes[position];
  const std::string where = "node " + std::to_string(node.tflite_index) + " (" + node.op + ")";
  // Other numbers may fit half sums: no other model is to do without the engine.
  if (choice.adds_halves) {
    if (suspects.hopeless.empty())
      suspects.hopeless =
          "half sums are off at " + where + " (" + engine->name + ": " + engine->why + ")";
    return;
  }
  std::vector<Suspects::Engine> wrong{*engine};
  // In the plan its tensors may have other types or storage.
  wrong.push_back({choice.engine, engine->name, engine->why});
  bool any_right = false;
  for (const std::string& other : choice.candidates) {
    if (other == choice.candidate) continue;
    const auto found = judge_alone(position, other, run_alone);
    if (!found) continue;
    if ((any_right = found->why.empty())) break;
    wrong.push_back(*found);
  }
  if (any_right) {
    for (Suspects::Engine& one : wrong) {
      one.why = "computes wrong numbers at " + where + ": " + one.why;
      suspects.engines.push_back(std::move(one));
    }
  } else if (suspects.hopeless.empty()) {
    suspects.hopeless = "no engine of " + choice.family + " is right at " + where + " (" +
                        choice.candidate + ": " + engine->why + ")";
  }
}

Suspects Comparison::find_suspects(const plan::Plan& plan, const RunAlone& run_alone) const {
  Suspects suspects;
  std::set<std::pair<std::size_t, std::string>> seen;
  // The nodes of a loop have one index, and the plan has them in the order of the graph. Of a node
  // that is computed band by band, the graph has one and the plan several.
  std::map<std::pair<int, std::string>, std::size_t> met;
  for (const plan::Choice& choice : plan.choices) {
    std::vector<std::size_t> same;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ir::Node& node = graph_.nodes[i];
      if (node.tflite_index == choice.node && choice.family == node.kind->name) same.push_back(i);
    }
    if (same.empty()) continue;
    const std::size_t before = met[{choice.node, choice.family}]++;
    const std::size_t position = same[std::min(before, same.size() - 1)];
    if (seen.emplace(position, choice.candidate).second)
      judge(choice, position, run_alone, suspects);
  }
  return suspects;
}

}  // namespace clgpu::delegate
