#include "plan/choose.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/join.hpp"
#include "ops/family.hpp"
#include "plan/signature.hpp"
#include "plan/work_groups.hpp"

namespace clgpu::plan {
namespace {

using kernel::Candidate;

// Texels of the image through which a launch reads an operand.
std::int64_t texels(const kernel::Operand& operand, const Candidate& candidate,
                    const ops::NodeContext& node) {
  const std::int64_t bytes = operand.kind == kernel::Operand::Kind::kScratch
                                 ? candidate.scratch.at(uz(operand.index)).bytes
                                 : node.input(operand.index).storage_bytes();
  return bytes / kernel::texel_bytes(*operand.image);
}

// Whether a launch of a candidate is within the limits that a device reports.
std::string limit_exceeded(const kernel::Launch& launch, const Candidate& candidate,
                           const ops::NodeContext& node, const DeviceInfo& device) {
  if (std::string problem = group_exceeded(launch, device); !problem.empty()) return problem;
  std::size_t local_bytes = 0;
  for (const kernel::Arg& arg : launch.args) {
    if (const auto* local = std::get_if<kernel::LocalMemory>(&arg)) local_bytes += local->bytes;
    const auto* operand = std::get_if<kernel::Operand>(&arg);
    if (operand == nullptr || !operand->image) continue;
    if (device.image_buffer_texels == 0) return "needs images; the device has none";
    const auto size = static_cast<std::uint64_t>(texels(*operand, candidate, node));
    if (size > device.image_buffer_texels) {
      return "needs an image of " + std::to_string(size) + " texels; the device allows " +
             std::to_string(device.image_buffer_texels);
    }
  }
  if (local_bytes > device.local_bytes) {
    return "needs " + std::to_string(local_bytes) + " bytes of local memory; the device has " +
           std::to_string(device.local_bytes);
  }
  return {};
}

// Why a candidate cannot be used; empty if it can.
std::string problem_of(const Candidate& candidate, const std::string& family,
                       const ops::NodeContext& node, const DeviceInfo& device,
                       const PlanOptions& options, const Broken& broken) {
  if (!candidate.refusal.empty()) return candidate.refusal;
  if (options.exact_sums && candidate.adds_halves)
    return "adds halves, and verification asks for exact sums";
  if (options.distrusted) {
    std::string why = options.distrusted(family, candidate);
    if (!why.empty()) return why;
  }
  if (const auto found = broken.find({family, candidate.name});
      found != broken.end() && demanded_items(candidate) > found->second.group)
    return found->second.why;
  for (const kernel::Launch& launch : candidate.launches) {
    std::string problem = limit_exceeded(launch, candidate, node, device);
    if (!problem.empty()) return problem;
  }
  return {};
}

std::string joined(const std::vector<Refused>& refused) {
  return join(refused, "; ", [](const Refused& one) { return one.first + ": " + one.second; });
}

// The first candidate that works among those that match a name; none if no name matches. The name
// of one candidate may be a prefix of another: an exact match wins.
const Candidate* find(const std::vector<Candidate>& candidates, const Choice& choice,
                      const std::string& engine) {
  const auto named = [&](const std::string& name) {
    return std::find_if(candidates.begin(), candidates.end(),
                        [&](const Candidate& c) { return c.name == name; });
  };
  const bool exact = named(engine) != candidates.end();
  for (const std::string& name : choice.candidates) {
    if (exact ? name == engine : goes_by(name, engine)) return &*named(name);
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> alternatives(const std::string& engine) {
  std::vector<std::string> names(1);
  for (const char c : engine) {
    if (c == '|') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  return names;
}

bool goes_by(const std::string& candidate, const std::string& engine) {
  return candidate == engine || candidate.rfind(engine + "_", 0) == 0;
}

Chosen choose(const ir::Graph& graph, const ir::Node& node, const DeviceInfo& device,
              const PlanOptions& options, const Broken& broken,
              const std::vector<bool>& static_inputs) {
  const ops::Family& family = ops::family_of(node);
  const ops::NodeContext context(graph, node);
  const std::vector<Candidate> candidates = offered(family, context, device, broken);
  Choice choice;
  choice.node = node.tflite_index;
  choice.family = family.name;
  for (const kernel::Form form : {kernel::Form::kReference, kernel::Form::kPlain}) {
    for (const Candidate& candidate : candidates) {
      if (candidate.form == form) choice.plainest.push_back(candidate.name);
    }
  }
  for (const Candidate& candidate : candidates) {
    std::string problem = problem_of(candidate, family.name, context, device, options, broken);
    if (problem.empty()) {
      choice.candidates.push_back(candidate.name);
    } else {
      choice.refused.emplace_back(candidate.name, std::move(problem));
    }
  }
  const auto done = [&](const Candidate& candidate, Choice::Origin origin) {
    choice.candidate = candidate.name;
    choice.adds_halves = candidate.adds_halves;
    choice.tensor_cores = candidate.tensor_cores;
    choice.makes_halves = candidate.makes_halves;
    if (options.distrusted) choice.engine = engine_signature(family.name, candidate);
    choice.origin = origin;
    return Chosen{candidate, std::move(choice)};
  };
  if (const auto wish = options.engines.find(family.name); wish != options.engines.end()) {
    bool free = false;
    for (const std::string& engine : alternatives(wish->second)) {
      if ((free = engine == "auto")) break;
      if (const Candidate* found = find(candidates, choice, engine))
        return done(*found, Choice::Origin::kForced);
    }
    if (!free) {
      std::vector<Refused> why;
      for (const std::string& engine : alternatives(wish->second)) {
        const std::size_t before = why.size();
        for (const Refused& refused : choice.refused) {
          if (goes_by(refused.first, engine)) why.push_back(refused);
        }
        if (why.size() == before)
          why.emplace_back(engine, "not offered; this node offers " + join(choice.candidates));
      }
      throw OptionError("engine '" + wish->second + "' cannot compute " + node.op + " (node " +
                        std::to_string(node.tflite_index) + ", output '" +
                        graph.tensor(node.outputs.at(0)).name + "'): " + joined(why));
    }
  }
  if (choice.candidates.empty()) {
    throw NoCandidate(node.tflite_index, family.name,
                      "no kernel of " + std::string(family.name) + " works on " + device.name +
                          ": " + joined(choice.refused));
  }
  if (options.tuned && choice.candidates.size() + choice.refused.size() > 1) {
    choice.signature = signature(family.name, candidates, static_inputs);
    const std::string winner = options.tuned(choice.signature);
    if (std::count(choice.candidates.begin(), choice.candidates.end(), winner) != 0)
      return done(*find(candidates, choice, winner), Choice::Origin::kTuned);
    choice.dropped = winner;
  }
  return done(*find(candidates, choice, choice.candidates.front()), Choice::Origin::kDefault);
}

}  // namespace clgpu::plan
