#include "plan/budget/planner.hpp"

#include <algorithm>
#include <iterator>

#include "base/index.hpp"
#include "ops/family.hpp"
#include "plan/arena/in_place.hpp"
#include "plan/arena/load_once.hpp"
#include "plan/arena/memory.hpp"
#include "plan/arena/peak.hpp"
#include "plan/arena/swap.hpp"
#include "plan/choose.hpp"
#include "plan/operands.hpp"
#include "plan/roads.hpp"

namespace clgpu::plan {
namespace {

using kernel::Operand;

// The initial contents of a scratch buffer; null if launches write it.
std::shared_ptr<const ir::Constant> initial(const kernel::Scratch& scratch) {
  auto owner = scratch.contents;
  if (scratch.counters || scratch.remembers) {
    owner = std::make_shared<const std::vector<std::uint8_t>>(
        static_cast<std::size_t>(scratch.bytes), std::uint8_t{0});
  }
  if (owner == nullptr) return nullptr;
  return std::make_shared<const ir::Constant>(
      ir::Constant{owner->data(), owner->size(), DType::kF32, owner});
}

class Planner {
 public:
  Planner(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
          const Broken& broken)
      : graph_(graph), device_(device), options_(options), broken_(broken) {}

  Plan make() {
    bind_tensors();
    for (const ir::Node& node : graph_.nodes) {
      if (!node.kind->is_view) add_node(node);
    }
    for (const int id : graph_.inputs) {
      if (graph_.tensor(id).carried < 0) plan_.uploads.push_back(transfer(id));
    }
    for (const int id : graph_.outputs) {
      if (graph_.tensor(id).carried < 0) plan_.downloads.push_back(transfer(id));
    }
    find_carried();
    choose_roads(plan_, device_, options_, static_);
    if (options_.in_place && options_.share_memory)
      overwritten_bytes_ = write_in_place(plan_, static_, in_place_);
    settle_carried();
    settle_roads(plan_, device_);
    place_static();
    for (const Buffer& buffer : plan_.buffers) {
      if (buffer.place == Buffer::Place::kKept) plan_.kept_bytes += buffer.bytes;
    }
    place_arena();
    if (exceeds_budget()) {
      swap_to_fit(plan_, static_, options_, [this](const auto& blocks, const auto& resident) {
        return peak_of(blocks, resident);
      });
      place_arena();
    }
    plan_.load_peak_bytes = load_peak(plan_);
    plan_.peak_bytes = peak();
    return std::move(plan_);
  }

 private:
  // One buffer per tensor; a view has the buffer of its source, a slice the buffer of the whole.
  void bind_tensors() {
    buffer_of_.assign(graph_.tensors.size(), -1);
    const auto bind = [&](int slice) {
      if (slice < 0 || buffer_of_[uz(slice)] >= 0) return;
      const auto& placement = graph_.tensor(slice).placement;
      const int id = placement ? placement->whole : slice;
      const ir::Tensor& tensor = graph_.tensor(id);
      CLGPU_CHECK(!tensor.placement);
      if (buffer_of_[uz(id)] < 0) {
        Buffer buffer;
        buffer.name = tensor.name;
        buffer.bytes = tensor.storage_bytes();
        buffer.storage = tensor.storage;
        buffer.upload = tensor.constant;
        buffer_of_[uz(id)] = add_buffer(std::move(buffer), tensor.is_constant());
      }
      buffer_of_[uz(slice)] = buffer_of_[uz(id)];
      keep(slice);
      keep(id);
      if (placement) sliced_.insert(buffer_of_[uz(id)]);
    };
    for (const int id : graph_.inputs) bind(id);
    for (const ir::Node& node : graph_.nodes) {
      for (const int id : node.inputs) bind(id);
      bind(node.predicate);
      if (node.kind->is_view) {
        buffer_of_[uz(node.outputs[0])] = buffer_of_[uz(node.inputs[0])];
        keep(node.outputs[0]);
      } else {
        for (const int id : node.outputs) bind(id);
      }
    }
    for (const int id : graph_.outputs) bind(id);  // a constant that is a graph output
  }

  void keep(int id) {
    if (!graph_.tensor(id).is_kept) return;
    const int buffer = buffer_of_[uz(id)];
    CLGPU_CHECK(!static_[uz(buffer)]);
    plan_.buffers[uz(buffer)].place = Buffer::Place::kKept;
  }

  int add_buffer(Buffer buffer, bool is_static) {
    if (static_cast<std::uint64_t>(buffer.bytes) > device_.max_object_bytes) {
      throw ObjectTooLarge(buffer.name, buffer.bytes,
                           "tensor '" + buffer.name + "' needs " + std::to_string(buffer.bytes) +
                               " bytes; the largest object of " + device_.name + " is " +
                               std::to_string(device_.max_object_bytes));
    }
    plan_.buffers.push_back(std::move(buffer));
    static_.push_back(is_static);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void add_node(const ir::Node& node) {
    std::vector<bool> static_inputs;
    for (const int id : node.inputs)
      static_inputs.push_back(id < 0 || static_[uz(buffer_of_[uz(id)])]);
    Chosen chosen = choose(graph_, node, device_, options_, broken_, static_inputs);
    const kernel::Candidate& candidate = chosen.candidate;
    chosen.choice.position = static_cast<int>(&node - graph_.nodes.data());
    plan_.choices.push_back(std::move(chosen.choice));
    std::vector<int> scratch;
    std::set<int> transient;
    for (const kernel::Scratch& s : candidate.scratch) {
      Buffer buffer;
      buffer.name = node.op + " scratch";
      buffer.scratch = true;
      buffer.bytes = s.bytes;
      buffer.upload = initial(s);
      const bool known = buffer.upload != nullptr;
      scratch.push_back(add_buffer(std::move(buffer), known));
      if (s.transient) transient.insert(scratch.back());
      if (!s.remembers) continue;
      plan_.reuse.state = scratch.back();
      changed_ = buffer_of_[uz(node.outputs.back())];
    }
    std::vector<Step> steps;
    for (const kernel::Launch& launch : candidate.launches) {
      Step step{
          node.tflite_index,      node.op,           node.kind->name, candidate.name, launch, {},
          candidate.tensor_cores, node.kind->bundled};
      if (launch.runs_graphs) step.position = plan_.choices.back().position;
      for (const kernel::Arg& arg : launch.args) {
        const auto* operand = std::get_if<Operand>(&arg);
        if (operand == nullptr) continue;
        switch (operand->kind) {
          case Operand::Kind::kInput:
            step.buffers.push_back(buffer_of_[uz(node.inputs.at(uz(operand->index)))]);
            break;
          case Operand::Kind::kOutput:
            step.buffers.push_back(buffer_of_[uz(node.outputs.at(uz(operand->index)))]);
            break;
          case Operand::Kind::kScratch:
            step.buffers.push_back(scratch.at(uz(operand->index)));
            break;
          case Operand::Kind::kPredicate:
            CLGPU_CHECK(false);  // candidates have none
        }
      }
      steps.push_back(std::move(step));
    }
    const int decides = predicate_of(node, candidate.name);
    const int begin = static_cast<int>(plan_.run.size());
    separate(steps, scratch, transient);
    if (decides >= 0) {
      if (decides == changed_) plan_.reuse.launches += static_cast<int>(plan_.run.size()) - begin;
      for (std::size_t i = uz(begin); i < plan_.run.size(); ++i) {
        Step& step = plan_.run[i];
        step.launch.only_if({Operand::Kind::kPredicate, 0, false, true},
                            plan_.buffers[uz(decides)].storage,
                            std::max(node.predicate_element, 0));
        step.buffers.insert(step.buffers.begin(), decides);
      }
    }
    if (static_cast<int>(plan_.run.size()) > begin)
      plan_.choices.back().work = ops::work_of({graph_, node});
    note_in_place(node, candidate, begin);
  }

  // The buffer with the element that decides whether a node's launches run; -1: they always do.
  // Where any of several elements decides, a launch looks through them once.
  int predicate_of(const ir::Node& node, const std::string& candidate) {
    if (node.predicate < 0) return -1;
    const ir::Tensor& tensor = graph_.tensor(node.predicate);
    const int buffer = buffer_of_[uz(node.predicate)];
    if (tensor.shape.elements() == 1 || node.predicate_element >= 0) return buffer;
    const auto [known, is_new] = any_of_.try_emplace(buffer, -1);
    if (is_new) {
      Buffer any;
      any.name = tensor.name + " is not 0";
      any.bytes = size_of(DType::kI32);
      any.storage = DType::kI32;
      any.scratch = true;
      known->second = add_buffer(std::move(any), false);
      kernel::Launch look("predicate/any.cl", "predicate_any");
      look.type("SRC_T", tensor.storage).src(0).dst(0).i32(tensor.shape.elements());
      plan_.run.push_back({node.tflite_index,
                           node.op,
                           node.kind->name,
                           candidate,
                           look,
                           {buffer, known->second},
                           false});
    }
    return known->second;
  }

  // A launch runs once if everything it reads is static and everything it writes is written by such
  // launches only, and not transient. Several nodes write the slices of a tensor, and not all of
  // them once, so it is in the arena.
  void separate(std::vector<Step>& steps, const std::vector<int>& scratch,
                const std::set<int>& transient) {
    std::set<int> written;
    std::map<int, int> writes;  // scratch buffer -> steps that write it
    for (const int buffer : scratch) writes[buffer] = 0;
    for (const Step& step : steps) {
      for_operands(step, [&](int buffer, const Operand& o) {
        if (!o.writes) return;
        written.insert(buffer);
        if (const auto found = writes.find(buffer); found != writes.end()) ++found->second;
      });
    }
    for (const int buffer : written)
      static_[uz(buffer)] = sliced_.count(buffer) == 0 && transient.count(buffer) == 0;
    std::vector<bool> once(steps.size(), true);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].launch.runs_graphs) continue;  // it may take long, and needs the executor
      once[i] = false;
      for_operands(steps[i], [&](int buffer, const Operand& o) {
        if (o.writes) static_[uz(buffer)] = false;
      });
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!once[i]) continue;
        for_operands(steps[i],
                     [&](int buffer, const Operand&) { once[i] = once[i] && static_[uz(buffer)]; });
        if (once[i]) continue;
        changed = true;
        for_operands(steps[i], [&](int buffer, const Operand& o) {
          const bool counters = plan_.buffers[uz(buffer)].upload != nullptr;
          if (o.writes && !counters) static_[uz(buffer)] = false;
        });
      }
    }
    std::vector<Step> load, run;
    for (std::size_t i = 0; i < steps.size(); ++i)
      (once[i] ? load : run).push_back(std::move(steps[i]));
    load_once_.share(load, run, writes, plan_.buffers);
    std::move(load.begin(), load.end(), std::back_inserter(plan_.load));
    std::move(run.begin(), run.end(), std::back_inserter(plan_.run));
  }

  // The output of each number, and the input of the same number if there is one.
  void find_carried() {
    for (const int output : graph_.outputs) {
      const ir::Tensor& tensor = graph_.tensor(output);
      if (tensor.carried < 0) continue;
      int input = -1;
      for (const int id : graph_.inputs) {
        if (graph_.tensor(id).carried == tensor.carried) input = id;
      }
      const int result = buffer_of_[uz(output)];
      int buffer = input < 0 ? -1 : buffer_of_[uz(input)];
      const auto is_result = [&](const Transfer& t) { return t.buffer == result; };
      const bool is_shared =
          static_[uz(result)] || plan_.buffers[uz(result)].carried >= 0 ||
          plan_.buffers[uz(result)].place == Buffer::Place::kKept ||
          std::any_of(plan_.downloads.begin(), plan_.downloads.end(), is_result) ||
          std::any_of(plan_.uploads.begin(), plan_.uploads.end(), is_result);
      if (buffer < 0 && !is_shared) buffer = result;  // nobody needs the old value
      if (buffer < 0) {
        Buffer memory;
        memory.name = tensor.name;
        memory.bytes = tensor.storage_bytes();
        memory.storage = tensor.storage;
        buffer = add_buffer(std::move(memory), false);
      }
      check_carried(tensor, input);
      plan_.carries.push_back(
          {input, output, buffer, result, {tensor.shape, tensor.dtype, tensor.storage}});
      plan_.buffers[uz(buffer)].carried = tensor.carried;
    }
    for (const int input : graph_.inputs) {
      const ir::Tensor& tensor = graph_.tensor(input);
      const bool is_known = std::any_of(
          plan_.carries.begin(), plan_.carries.end(),
          [&](const Carry& c) { return plan_.buffers[uz(c.buffer)].carried == tensor.carried; });
      if (tensor.carried < 0 || is_known) continue;
      const int buffer = buffer_of_[uz(input)];  // only read
      plan_.carries.push_back(
          {input, -1, buffer, buffer, {tensor.shape, tensor.dtype, tensor.storage}});
      plan_.buffers[uz(buffer)].carried = tensor.carried;
    }
    for (const Carry& c : plan_.carries) {
      const int source = plan_.buffers[uz(c.result)].carried;
      if (source >= 0 && c.result != c.buffer)
        throw Error("the next value of '" + plan_.buffers[uz(c.buffer)].name +
                    "' is that of another carried tensor, '" + plan_.buffers[uz(c.result)].name +
                    "'");
    }
  }

  void check_carried(const ir::Tensor& next, int input) const {
    if (input < 0) return;
    const ir::Tensor& before = graph_.tensor(input);
    if (before.shape != next.shape || before.dtype != next.dtype || before.storage != next.storage)
      throw Error("the carried tensor '" + before.name + "' is " + name_of(before.dtype) +
                  before.shape.str() + " before an inference and " + name_of(next.dtype) +
                  next.shape.str() + " after it");
  }

  // When buffers have been merged.
  void settle_carried() {
    for (Carry& c : plan_.carries) {
      Buffer& buffer = plan_.buffers[uz(c.buffer)];
      buffer.place = Buffer::Place::kCarried;
      plan_.carried_bytes += buffer.bytes;
      if (c.result != c.buffer) {
        c.reason = "no kernel updates it in place, or its old value is read after that";
        continue;
      }
      if (c.output < 0) continue;
      // Whoever runs again from the start must not read what the first run has written.
      for (const Step& step : plan_.run) {
        bool reads = false, writes = false;
        for_operands(step, [&](int used, const Operand& o) {
          if (used != c.buffer) return;
          reads = reads || o.reads;
          writes = writes || o.writes;
        });
        if (reads && !writes) plan_.repeats = false;
        if (reads || writes) break;
      }
    }
  }

  // All families with a residual read each of its elements where they write that of the result.
  void note_in_place(const ir::Node& node, const kernel::Candidate& candidate, int begin) {
    const ir::Tensor& result = graph_.tensor(node.outputs.at(0));
    std::vector<int> slots = result.placement ? std::vector<int>{} : candidate.in_place;
    if (node.kind->residual >= 0) slots.push_back(node.kind->residual);
    const int end = static_cast<int>(plan_.run.size());
    for (const int slot : slots) {
      const int id = slot < static_cast<int>(node.inputs.size()) ? node.inputs[uz(slot)] : -1;
      if (id < 0 || graph_.tensor(id).storage != result.storage) continue;
      const int input = buffer_of_[uz(id)];
      bool elsewhere = false;  // the input is also read in another way
      for (int step = begin; step < end; ++step) {
        for_operands(plan_.run[uz(step)], [&](int buffer, const Operand& o) {
          const bool meant = o.kind == Operand::Kind::kInput &&
                             std::find(slots.begin(), slots.end(), o.index) != slots.end();
          elsewhere = elsewhere || (buffer == input && !meant);
        });
      }
      if (elsewhere) continue;
      in_place_.push_back({input, buffer_of_[uz(node.outputs[0])], begin, end});
      if (candidate.over_input && slot == candidate.in_place.front() && end == begin + 1)
        in_place_.back().update = updating(node, candidate, plan_.run[uz(begin)]);
    }
  }

  // What takes the place of `only`, the only step of a node, if its result is in the memory of an
  // input.
  Step updating(const ir::Node& node, const kernel::Candidate& candidate, const Step& only) const {
    Step step{node.tflite_index,     node.op, node.kind->name,        candidate.name,
              *candidate.over_input, {},      candidate.tensor_cores, node.kind->bundled};
    for (const kernel::Arg& arg : step.launch.args) {
      const auto* operand = std::get_if<Operand>(&arg);
      if (operand == nullptr) continue;
      if (operand->kind == Operand::Kind::kScratch) {
        // Packed weights may be those of another node.
        for_operands(only, [&](int buffer, const Operand& o) {
          if (o.kind == operand->kind && o.index == operand->index) step.buffers.push_back(buffer);
        });
        continue;
      }
      const bool is_input = operand->kind == Operand::Kind::kInput;
      CLGPU_CHECK(is_input || operand->kind == Operand::Kind::kOutput);
      step.buffers.push_back(
          buffer_of_[uz((is_input ? node.inputs : node.outputs).at(uz(operand->index)))]);
    }
    return step;
  }

  Transfer transfer(int id) const {
    const ir::Tensor& tensor = graph_.tensor(id);
    const auto host_bytes =
        tensor.shape.elements() * static_cast<std::int64_t>(size_of(tensor.dtype));
    return {id, buffer_of_[uz(id)], tensor.storage_bytes(), host_bytes};
  }

  // Constants and results of load-time launches stay if an inference needs them. Constants that
  // only the import has read, such as a permutation, need no memory.
  void place_static() {
    std::vector<bool> loading(plan_.buffers.size(), false), needed(plan_.buffers.size(), false);
    for (const Step& step : plan_.load) {
      for (const int buffer : step.buffers) loading[uz(buffer)] = true;
    }
    for (const Step& step : plan_.run) {
      for (const int buffer : step.buffers) needed[uz(buffer)] = true;
    }
    for (const Transfer& t : plan_.downloads) needed[uz(t.buffer)] = true;
    for (const Carry& c : plan_.carries) needed[uz(c.result)] = true;
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (!static_[i]) continue;
      plan_.buffers[i].place = needed[i]    ? Buffer::Place::kWeights
                               : loading[i] ? Buffer::Place::kLoad
                                            : Buffer::Place::kNowhere;
      if (needed[i]) plan_.weights_bytes += plan_.buffers[i].bytes;
    }
  }

  struct Range {
    int first, last;  // steps
  };

  // Of each step: those around it that do not read each other's results, as one range; what they
  // use counts as used by all of them. The step alone where it uses something large.
  std::vector<Range> steps_beside() const {
    constexpr std::int64_t kMostBytes = 8 << 20;
    const int end = static_cast<int>(plan_.run.size());
    std::vector<Range> beside;
    for (int step = 0; step < end; ++step) beside.push_back({step, step});
    if (!options_.side_by_side || !plan_.moves.empty()) return beside;
    std::set<int> written;
    int first = 0;
    const auto close = [&](int step) {
      for (int i = first; i < step; ++i) beside[uz(i)] = {first, step - 1};
      first = step;
      written.clear();
    };
    for (int step = 0; step < end; ++step) {
      bool waits = false, is_large = false;
      for_operands(plan_.run[uz(step)], [&](int buffer, const Operand& operand) {
        waits = waits || (operand.reads && written.count(buffer) > 0);
        is_large =
            is_large || (!static_[uz(buffer)] && plan_.buffers[uz(buffer)].bytes > kMostBytes);
      });
      if (waits || is_large) close(step);
      for_operands(plan_.run[uz(step)], [&](int buffer, const Operand& operand) {
        if (operand.writes) written.insert(buffer);
      });
      if (is_large) close(step + 1);
    }
    close(end);
    return beside;
  }

  void place_arena() {
    plan_.naive_bytes = overwritten_bytes_;
    const int end = static_cast<int>(plan_.run.size());
    std::vector<Block> lifetimes(plan_.buffers.size(), Block{0, end, -1});
    const auto touch = [&](int buffer, int step) {
      Block& block = lifetimes[uz(buffer)];
      block.first = std::min(block.first, step);
      block.last = std::max(block.last, step);
    };
    const std::vector<Range> beside = steps_beside();
    for (int step = 0; step < end; ++step) {
      for (const int buffer : plan_.run[uz(step)].buffers) {
        touch(buffer, beside[uz(step)].first);
        touch(buffer, beside[uz(step)].last);
      }
    }
    for_moves(plan_, touch);
    for (const Transfer& t : plan_.uploads) touch(t.buffer, -1);
    for (const Transfer& t : plan_.downloads) touch(t.buffer, end);
    for (const Carry& c : plan_.carries) touch(c.result, end);

    std::vector<std::size_t> members;
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer::Place place = plan_.buffers[i].place;
      if (static_[i] || place == Buffer::Place::kHost || place == Buffer::Place::kCarried) continue;
      if (place == Buffer::Place::kKept) continue;
      if (lifetimes[i].last < lifetimes[i].first) {
        plan_.buffers[i].place = Buffer::Place::kNowhere;
        continue;
      }
      members.push_back(i);
      blocks.push_back({plan_.buffers[i].bytes, lifetimes[i].first, lifetimes[i].last});
      plan_.naive_bytes += plan_.buffers[i].bytes;
    }
    Layout layout;
    if (options_.share_memory) {
      layout = shared(blocks);
    } else {
      plan_.poison = true;
      layout = apart(blocks);
    }
    std::vector<bool> divided(layout.bytes.size());
    for (std::size_t k = 0; k < members.size(); ++k) {
      if (layout.offsets[k] > 0) divided[uz(layout.objects[k])] = true;
    }
    for (std::size_t k = 0; k < members.size(); ++k) {
      Buffer& buffer = plan_.buffers[members[k]];
      buffer.object = layout.objects[k];
      buffer.is_part = divided[uz(layout.objects[k])];
      buffer.offset = layout.offsets[k];
      buffer.span = layout.spans[k];
      buffer.first = blocks[k].first;
      buffer.last = blocks[k].last;
    }
    plan_.arena_bytes = layout.total();
    plan_.bound_bytes = lower_bound(blocks);
    plan_.layout = std::move(layout.strategy);
    plan_.objects = std::move(layout.bytes);
  }

  // If a driver tracks overlapping sub-buffers, they slow every launch. Whole objects need none,
  // blocks of few sizes need few: both may take somewhat more memory, if the budget allows it.
  Layout shared(const std::vector<Block>& blocks) const {
    Layout smallest = lay_out(blocks, limits());
    if (device_.sub_buffers_save == 0) return smallest;
    std::int64_t most = smallest.total() + static_cast<std::int64_t>(device_.sub_buffers_save) - 1;
    if (options_.memory_budget > 0)
      most = std::min(most, options_.memory_budget - plan_.weights_bytes - plan_.carried_bytes -
                                plan_.kept_bytes);
    ObjectLimits undivided = limits();
    undivided.offsets = false;
    if (Layout whole = lay_out(blocks, undivided); whole.total() <= most) return whole;
    constexpr int kClasses = 16;
    ObjectLimits in_classes = limits();
    in_classes.size_classes = kClasses;
    Layout few = lay_out(blocks, in_classes);
    return few.total() <= std::max(most, smallest.total()) ? few : smallest;
  }

  ObjectLimits limits() const {
    const auto max_bytes = std::min(device_.max_object_bytes, std::uint64_t{INT64_MAX});
    return {static_cast<std::int64_t>(max_bytes),
            static_cast<std::int64_t>(device_.base_align_bytes),
            device_.sub_buffer_images || !reads_images(), 0};
  }

  // Whether a launch of an inference reads a buffer of the arena as an image.
  bool reads_images() const {
    bool found = false;
    for (const Step& step : plan_.run) {
      for_operands(step, [&](int buffer, const Operand& operand) {
        found = found || (operand.image && !static_[uz(buffer)]);
      });
    }
    return found;
  }

  std::int64_t peak() const {
    return std::max(load_peak(plan_), plan_.weights_bytes + plan_.arena_bytes) +
           plan_.carried_bytes + plan_.kept_bytes;
  }

  bool exceeds_budget() const {
    return options_.memory_budget > 0 && (options_.swap || options_.stream_weights) &&
           options_.share_memory && peak() > options_.memory_budget;
  }

  // The peak if these were the arena's blocks, and only these weights were kept.
  Peak peak_of(const std::vector<Block>& blocks, const std::vector<bool>& resident) {
    const Layout layout = lay_out(blocks, limits());
    std::int64_t others = plan_.kept_bytes + plan_.carried_bytes;
    std::vector<std::size_t> streamed;
    for (std::size_t i = 0; i < resident.size(); ++i) {
      if (plan_.buffers[i].place != Buffer::Place::kWeights) continue;
      if (resident[i]) {
        others += plan_.buffers[i].bytes;
      } else {
        streamed.push_back(i);
      }
    }
    for (const std::size_t i : streamed) plan_.buffers[i].place = Buffer::Place::kLoad;
    const std::int64_t bytes = std::max(layout.total() + others, load_peak(plan_));
    for (const std::size_t i : streamed) plan_.buffers[i].place = Buffer::Place::kWeights;
    return {bytes, blocks_above(options_.memory_budget - others, blocks, layout)};
  }

  const ir::Graph& graph_;
  const DeviceInfo& device_;
  const PlanOptions& options_;
  const Broken& broken_;
  Plan plan_;
  std::vector<int> buffer_of_;  // tensor -> buffer
  int changed_ = -1;            // buffer that says which launches of plan_.reuse run
  std::map<int, int> any_of_;   // buffer of a predicate -> of the one element that stands for it
  std::vector<InPlace> in_place_;
  std::int64_t overwritten_bytes_ = 0;  // of buffers that in_place_ has saved
  std::vector<bool> static_;            // buffer -> its contents never change after loading
  std::set<int> sliced_;                // buffers of tensors that contain others
  LoadOnce load_once_;
};

}  // namespace

Plan make_plan(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
               const Broken& broken) {
  return Planner(graph, device, options, broken).make();
}

}  // namespace clgpu::plan
