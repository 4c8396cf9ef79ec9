#include "delegate/claim/mixed.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "base/sha256.hpp"
#include "ir/text.hpp"

namespace clgpu::delegate {
namespace {

// Appends the attributes of a node and, of a loop or a branch, of those it computes. Operands, and
// attributes that follow from values of an inference, are left out: shapes may decide on them.
void add_attributes(const ModelNode& node, ir::Graph& graph) {
  ir::Node copy;
  copy.op = node.op;
  if (node.family != nullptr && !node.reads_values) {
    copy.kind = node.family;
    copy.attrs = node.imported.attrs;
    copy.epilogue = node.imported.epilogue;
  }
  graph.nodes.push_back(std::move(copy));
  for (const ModelNode& inner : node.inner) add_attributes(inner, graph);
}

// A short text of long bytes: SHA-256 of all weights would take much of the time of a load. Each
// step is a bijection of the word and of the lane, so two texts of the same size that differ in one
// word have different results.
std::string folded(const char* bytes, std::size_t size) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + sizeof lanes <= size; at += sizeof lanes) {
    std::array<std::uint64_t, 4> words{};
    std::memcpy(words.data(), bytes + at, sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      lanes[i] = (lanes[i] ^ words[i]) * kOdd;
      lanes[i] ^= lanes[i] >> 32U;
    }
  }
  std::string text(sizeof lanes, '\0');
  std::memcpy(text.data(), lanes.data(), sizeof lanes);
  return text.append(bytes + at, size - at);
}

// SHA-256 over operations, their attributes and operands, and constants.
std::string digest_of(const TfLiteContext& context, const Model& model) {
  Sha256 hash;
  const auto add = [&](const std::string& field) { hash.update(field).update({"\0", 1}); };
  std::set<int> constants;
  ir::Graph attributes;
  for (const ModelNode& node : model.nodes) {
    add_attributes(node, attributes);
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const int id : *ids) {
        add(std::to_string(id));
        if (id >= 0 && context.tensors[id].allocation_type == kTfLiteMmapRo) constants.insert(id);
      }
      add("");
    }
  }
  add(ir::write_text(attributes));
  for (const int id : constants) {
    const TfLiteTensor& tensor = context.tensors[id];
    add(std::to_string(id) + " " + std::to_string(tensor.type) + " " +
        std::to_string(tensor.bytes));
    for (int i = 0; tensor.dims != nullptr && i < tensor.dims->size; ++i)
      add(std::to_string(tensor.dims->data[i]));
    if (tensor.data != nullptr)
      hash.update(folded(static_cast<const char*>(tensor.data), tensor.bytes));
  }
  constexpr std::size_t kDigits = 32;
  return hex(hash.digest()).substr(0, kDigits);
}

std::string key_of(const State& state, const std::string& model) {
  return state.target.key("precision " + model);
}

}  // namespace

void find_mixed(const TfLiteContext& context, const State& state, const Model& model, bool is_main,
                Session& session) {
  const Options& options = state.target.options;
  if (options.precision != passes::Precision::kMixed) return;
  MixedReport& mixed = session.mixed;
  mixed.model = digest_of(context, model);
  if (options.mixed != nullptr) {
    if (options.mixed->model == mixed.model) {
      mixed.plan = options.mixed;
      mixed.source = "given";
    } else if (is_main) {
      throw OptionError("the plan of option 'precision' is of another model: it is of " +
                        options.mixed->model + ", this one is " + mixed.model);
    }
    return;
  }
  const auto kept = kept_mixed(state, mixed.model);
  const auto plan = kept ? passes::read_precision_plan(*kept) : std::nullopt;
  if (!plan || plan->model != mixed.model) return;
  mixed.plan = std::make_shared<const passes::PrecisionPlan>(*plan);
  mixed.source = "kept";
}

bool keep_mixed(const State& state, const std::string& plan, const std::string& label) {
  const auto read = passes::read_precision_plan(plan);
  if (!read) throw OptionError("'" + plan + "' is no plan of precisions");
  state.target.store->put(store::kPrecision, key_of(state, read->model), plan, label);
  return state.target.store->is_on() && !state.target.store->is_for_programs();
}

std::optional<std::string> kept_mixed(const State& state, const std::string& model) {
  return state.target.store->get(store::kPrecision, key_of(state, model));
}

void tell_mixed(const State& state, const Session& session, Report& report) {
  if (state.target.options.precision != passes::Precision::kMixed) return;
  report.mixed = session.mixed;
  if (session.mixed.plan == nullptr)
    report.notes.push_back(
        "precision mixed is fp32 here: no plan is kept for this model on this device; clgpu tune "
        "MODEL --max-error ERROR --samples FILE makes one");
}

}  // namespace clgpu::delegate
