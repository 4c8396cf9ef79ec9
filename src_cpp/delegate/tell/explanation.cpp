// The outcome of each node of a model.
#include <algorithm>
#include <utility>

#include "base/bfloat.hpp"
#include "delegate/tell/telling.hpp"

namespace clgpu::delegate {
namespace {

// Null if the node is not refused.
void write(Writer& to, const std::optional<Refusal>& refusal) {
  if (!refusal) {
    to.null();
    return;
  }
  write_object(to, [&] {
    field(to, "code", code_of(refusal->why));
    field(to, "what", refusal->what);
    field(to, "has", refusal->has);
    field(to, "supported", refusal->supported);
  });
}

void write(Writer& to, const NodeReport& node) {
  write_object(to, [&] {
    field(to, "index", node.index);
    field(to, "op", node.op);
    field(to, "claimed", node.claimed);
    field(to, "reason", node.refusal ? sentence_of(*node.refusal) : node.reason);
    to.key("refusal");
    write(to, node.refusal);
    field(to, "fused_into", node.fused_into);
    field(to, "is_view", node.is_view);
    field(to, "computed", node.computed);
    field(to, "partition",
          node.partition < 0 ? std::optional<int>() : std::optional<int>(node.partition));
    field(to, "family", node.family);
    field(to, "candidate", node.candidate);
    field(to, "chosen", node.chosen);
    field(to, "candidates", node.candidates);
    to.key("refused");
    write_object(to, [&] {
      for (const auto& [name, why] : node.refused) field(to, name, why);
    });
    field(to, "inputs", node.inputs);
    field(to, "outputs", node.outputs);
    field(to, "input_ids", node.input_ids);
    field(to, "output_ids", node.output_ids);
    field(to, "flops", node.work.flops);
    field(to, "bytes_read", node.work.bytes_read);
    field(to, "bytes_written", node.work.bytes_written);
    field(to, "adds_halves", node.adds_halves);
    field(to, "rounds_factors", node.rounds_factors);
    field(to, "precision", node.precision);
  });
}

// Null if nothing has failed.
void write(Writer& to, const std::optional<Failure>& failure) {
  if (!failure) {
    to.null();
    return;
  }
  write_object(to, [&] {
    field(to, "class", failure->kind);
    field(to, "call", failure->call);
    field(to, "code", failure->code);
  });
}

void write(Writer& to, const TensorReport& tensor) {
  write_object(to, [&] {
    field(to, "id", tensor.id);
    field(to, "name", tensor.name);
    field(to, "type", tensor.type);
    field(to, "bytes", tensor.bytes);
    field(to, "constant", tensor.constant);
    field(to, "storage", tensor.storage);
  });
}

void write(Writer& to, const PartitionReport::Move& move) {
  write_object(to, [&] {
    field(to, "kind", move.out ? "out" : "in");
    field(to, "tensor", move.tensor);
    field(to, "bytes", move.bytes);
    field(to, "start", move.start);
    field(to, "finish", move.finish);
  });
}

void write(Writer& to, const PartitionReport::Border& border) {
  write_object(to, [&] {
    field(to, "id", border.id);
    field(to, "tensor", border.tensor);
    field(to, "bytes", border.bytes);
    field(to, "shape", border.shape);
    field(to, "road", border.road);
  });
}

// `node`, `into` and `tensor` are null if there is none.
void write(Writer& to, const ir::Step& step) {
  const auto index = [](int number) {
    return number < 0 ? std::optional<int>() : std::optional<int>(number);
  };
  write_object(to, [&] {
    field(to, "pass", step.pass);
    field(to, "outcome", name_of(step.outcome));
    field(to, "node", index(step.node));
    field(to, "into", index(step.into));
    field(to, "tensor", index(step.tensor));
    field(to, "detail", step.detail);
  });
}

void write(Writer& to, const PartitionReport& partition) {
  write_object(to, [&] {
    field(to, "nodes", partition.nodes);
    field(to, "stage_of",
          partition.stage_of < 0 ? std::optional<int>() : std::optional<int>(partition.stage_of));
    field(to, "on_cpu", partition.on_cpu);
    field(to, "unplanned", partition.unplanned);
    field(to, "launches", partition.launches);
    field(to, "load_launches", partition.load_launches);
    field(to, "arena_bytes", partition.arena_bytes);
    field(to, "naive_bytes", partition.naive_bytes);
    field(to, "weights_bytes", partition.weights_bytes);
    field(to, "bound_bytes", partition.bound_bytes);
    field(to, "load_peak_bytes", partition.load_peak_bytes);
    field(to, "peak_bytes", partition.peak_bytes);
    field(to, "layout", partition.layout);
    field(to, "bytes_up", partition.bytes_up);
    field(to, "bytes_down", partition.bytes_down);
    write_list(to, "steps", partition.steps, [&](const auto& step) { write(to, step); });
    write_list(to, "moves", partition.moves, [&](const auto& move) { write(to, move); });
    write_list(to, "inputs", partition.inputs, [&](const auto& border) { write(to, border); });
    write_list(to, "outputs", partition.outputs, [&](const auto& border) { write(to, border); });
  });
}

void write(Writer& to, const PlacementReport& placement) {
  write_object(to, [&] {
    field(to, "mode", placement.mode);
    field(to, "choice", placement.choice);
    field(to, "threads", placement.threads);
    field(to, "runtime", placement.runtime);
    field(to, "source", placement.source);
    write_list(to, "candidates", placement.candidates, [&](const auto& candidate) {
      write_object(to, [&] {
        field(to, "name", candidate.first);
        field(to, "ms", candidate.second);
      });
    });
    write_list(to, "expected", placement.judged, [&](const PlacementReport::Judged& judged) {
      write_object(to, [&] {
        field(to, "nodes", judged.nodes);
        field(to, "device_ms", judged.device_seconds * 1e3);
        field(to, "cpu_ms", judged.cpu_seconds * 1e3);
        field(to, "claimed", judged.claimed);
      });
    });
  });
}

// Four digits for each number, as a plan has them.
std::string digits_of(const std::vector<float>& means) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const float mean : means) {
    const std::uint16_t bits = float_to_bfloat(mean);
    for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[(bits >> shift) & 0xf];
  }
  return text;
}

// Null with another precision.
void write(Writer& to, const std::optional<MixedReport>& mixed) {
  if (!mixed) {
    to.null();
    return;
  }
  static const passes::PrecisionPlan none;
  const passes::PrecisionPlan& plan = mixed->plan == nullptr ? none : *mixed->plan;
  write_object(to, [&] {
    field(to, "model", mixed->model);
    field(to, "source", mixed->source);
    field(to, "error", plan.bound);
    field(to, "half", std::vector<int>(plan.half.begin(), plan.half.end()));
    field(to, "bfloat", std::vector<int>(plan.bfloat.begin(), plan.bfloat.end()));
    field(to, "int8", std::vector<int>(plan.int8.begin(), plan.int8.end()));
    field(to, "tf32", std::vector<int>(plan.tf32.begin(), plan.tf32.end()));
    field(to, "bf16_pairs", std::vector<int>(plan.bf16_pairs.begin(), plan.bf16_pairs.end()));
    field(to, "half_sums", std::vector<int>(plan.half_sums.begin(), plan.half_sums.end()));
    field(to, "integers", std::vector<int>(plan.integers.begin(), plan.integers.end()));
    write_list(to, "scales", plan.scales, [&](const auto& entry) {
      write_object(to, [&] {
        field(to, "tensor", entry.first);
        field(to, "scale", entry.second.scale);
        field(to, "zero_point", entry.second.zero_point);
      });
    });
    write_list(to, "means", plan.means, [&](const auto& entry) {
      write_object(to, [&] {
        field(to, "tensor", entry.first);
        field(to, "bits", digits_of(entry.second));
      });
    });
  });
}

void write(Writer& to, std::size_t partition, const Judgement& verdict) {
  write_object(to, [&] {
    field(to, "partition", partition);
    field(to, "checked", verdict.checked);
    field(to, "level", name_of(verdict.level));
    field(to, "outcome", name_of(verdict.outcome));
    field(to, "relative_l2", verdict.relative_l2);
    field(to, "bound_l2", verdict.bound_l2);
    field(to, "max_abs", verdict.max_abs);
    field(to, "engine", verdict.engine);
    field(to, "reason", verdict.reason);
    field(to, "source", verdict.source);
  });
}

// Null if nothing is verified.
void write_verification(Writer& to, const std::vector<PartitionReport>& partitions) {
  std::int64_t checked = -1;
  for (const PartitionReport& partition : partitions) {
    if (partition.verification) checked = std::max(checked, partition.verification->checked);
  }
  if (checked < 0) {
    to.null();
    return;
  }
  write_object(to, [&] {
    field(to, "checked", checked);
    to.key("partitions");
    to.begin_list();
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      if (partitions[i].verification) write(to, i, *partitions[i].verification);
    }
    to.end_list();
  });
}

}  // namespace

Explanation explain(const Target& target, Report report) {
  const Options& options = target.options;
  const MemoryTotals totals =
      report.totals ? *report.totals : memory_totals(report.partitions, options.plan.share_memory);
  return {target.device().name, target.device().platform, passes::name_of(options.precision),
          std::move(report), totals};
}

void write(Writer& to, const Explanation& explanation) {
  const Report& report = explanation.report;
  write_object(to, [&] {
    field(to, "device", explanation.device);
    field(to, "platform", explanation.platform);
    field(to, "precision", explanation.precision);
    field(to, "has_state", report.has_state);
    write_list(to, "nodes", report.nodes, [&](const auto& node) { write(to, node); });
    write_list(to, "tensors", report.tensors, [&](const auto& tensor) { write(to, tensor); });
    write_list(to, "partitions", report.partitions, [&](const auto& part) { write(to, part); });
    to.key("placement");
    write(to, report.placement);
    to.key("mixed");
    write(to, report.mixed);
    field(to, "arena_bytes", explanation.totals.arena_bytes);
    field(to, "weights_bytes", explanation.totals.weights_bytes);
    field(to, "carried_bytes", explanation.totals.carried_bytes);
    field(to, "peak_bytes", explanation.totals.peak_bytes);
    write_list(to, "faults", report.faults, [&](const EngineFault& fault) {
      write_object(to, [&] {
        field(to, "kernel", fault.kernel);
        field(to, "kind", fault.kind);
        field(to, "why", fault.why);
      });
    });
    field(to, "notes", report.notes);
    to.key("failure");
    write(to, report.failure);
    to.key("verification");
    write_verification(to, report.partitions);
  });
}

}  // namespace clgpu::delegate
