#include "kernel/chain.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "kernel/sources.hpp"

namespace clgpu::kernel {
namespace {

constexpr const char* kPrelude = "common/chain.cl";

/// Where the sizes and arguments of a stage come from: numbers in the text, or variables that have
/// those of several stages in turn.
struct Sizes {
  std::string groups_0, groups_1;  ///< along two axes
  std::string groups;              ///< work-groups
  std::string slots, start;        ///< as Stage has them
  std::string awaited;  ///< groups that must have told before it continues at OPERANDS_READY
  std::vector<std::string> arguments;
};

std::size_t groups_along(const Launch& launch, std::size_t axis) {
  return launch.global[axis] / launch.local[axis];
}

/// Groups that must have told before a stage continues at OPERANDS_READY; 0: it does not wait
/// there. `waits`: how many stages wait, until this one.
std::size_t awaited_of(const Stage& stage, const Chain& chain, std::size_t waits) {
  return stage.waits && stage.waits_within ? waits * chain.groups : 0;
}

Sizes sizes_of(const Stage& stage, const Chain& chain, std::size_t waits) {
  const Launch& launch = *stage.launch;
  return {std::to_string(groups_along(launch, 0)),
          std::to_string(groups_along(launch, 1)),
          std::to_string(groups_of(launch)),
          std::to_string(stage.slots),
          std::to_string(stage.start % chain.groups),
          std::to_string(awaited_of(stage, chain, waits)) + "u",
          arguments_of(stage)};
}

/// The call of a stage's function, for its work-group `group` and the work-item `item` of it.
std::string call(const Stage& stage, const Bodies& bodies, const Sizes& sizes,
                 const std::string& slot, const std::string& awaited) {
  return bodies.call(*stage.launch, sizes.arguments, sizes.groups_0, sizes.groups_1,
                     "local_memory + " + slot + " * " + std::to_string(stage.local_bytes),
                     "1 + " + slot, "state, " + awaited + ", patience");
}

/// The work of a stage that is free.
void write_free(std::ostringstream& out, const Stage& stage, const Bodies& bodies,
                const Chain& chain, const Sizes& sizes) {
  const std::string all = std::to_string(chain.groups);
  const std::size_t items = group_items(*stage.launch), total = groups_of(*stage.launch) * items;
  // Neighbours stay together, as their memory does, and all work-groups get a share.
  const std::string width = std::to_string(chain.items % 32 == 0 ? 32 : chain.items);
  out << "    for (int at = (local_item / " << width << " * " << all << " + mine) * " << width
      << " + local_item % " << width << "; at < " << total
      << "; at += " << chain.groups * chain.items << ") {\n      const int group = at / " << items
      << ", item = at % " << items << ";\n";
  // A group that gives up says so before it arrives at the next wait, so all that pass it know.
  if (stage.is_lasting) out << "      if (chain_gave_up(state)) break;\n";
  out << "      " << call(stage, bodies, sizes, "0", "0u") << "\n    }\n";
}

/// The work of a stage; `whole`: one of its work-groups takes all work-items of the chain's.
void write_work(std::ostringstream& out, const Stage& stage, const Bodies& bodies,
                const Chain& chain, const Sizes& sizes, bool whole) {
  const std::string all = std::to_string(chain.groups);
  out << "    const int mine = me - " << sizes.start << " + (me < " << sizes.start << " ? " << all
      << " : 0);\n";
  if (stage.is_free) return write_free(out, stage, bodies, chain, sizes);
  const std::string items = std::to_string(group_items(*stage.launch));
  out << "    const int slot = " << (whole ? "0" : "local_item / " + items)
      << ", item = " << (whole ? "local_item" : "local_item % " + items) << ";\n"
      << "    uint awaited = " << sizes.awaited << ";\n";
  if (!whole) out << "    if (slot < " << sizes.slots << ")\n";
  out << "    for (int group = slot * " << all << " + mine; group < " << sizes.groups
      << "; group += " << all << " * " << sizes.slots << ") {\n      "
      << call(stage, bodies, sizes, "slot", "awaited")
      << "\n      awaited = 0;\n"
      // The next one uses the same local memory.
      << "      if (" << sizes.groups << " > " << all << " * " << sizes.slots
      << ") CHAIN_BARRIER(1 + slot, " << items << ");\n    }\n"
      << "    if (awaited != 0) chain_await(state, awaited, patience);\n";
}

bool is_whole(const Stage& stage, const Chain& chain) {
  return stage.slots == 1 && group_items(*stage.launch) == chain.items;
}

/// The first `count` stages one after the other. Returns how many of them wait.
std::size_t write_line(std::ostringstream& out, const Chain& chain, const Bodies& bodies,
                       std::size_t count) {
  std::size_t waits = 0;
  out << "  {\n    const int me = get_group_id(0), local_item = get_local_id(0);\n";
  for (std::size_t i = 0; i < count; ++i) {
    const Stage& stage = chain.stages[i];
    waits += stage.waits ? 1 : 0;
    if (awaited_of(stage, chain, waits) > 0) {
      out << "    chain_tell(state);\n";
    } else if (stage.waits) {
      out << "    chain_wait(state, " << waits << "u, " << chain.groups << "u, patience);\n";
    } else {
      out << "    barrier(CLK_LOCAL_MEM_FENCE);\n";  // the stage before may still use local memory
    }
    out << "    {  // " << stage.launch->file << '\n';
    write_work(out, stage, bodies, chain, sizes_of(stage, chain, waits), is_whole(stage, chain));
    out << "    }\n";
  }
  out << "  }\n";
  return waits;
}

/// Stages with the same function, which have different arguments.
struct Shared {
  std::vector<const Stage*> stages;
  bool whole = true;
};

/// A loop over the stages, in which each function is called in one place and so inlined: a function
/// that is called saves registers in memory and has fewer of them, and some need all for what they
/// read ahead. The first stages stand before the loop, whose beginning has to be read from memory
/// while nothing else is to be done.
void write_loop(std::ostringstream& out, const Chain& chain, const Bodies& bodies) {
  std::vector<Shared> shared;
  std::vector<std::size_t> numbers;  // of each stage
  std::size_t pointers = 0, words = 0;
  for (const Stage& stage : chain.stages) {
    const auto found = std::find_if(shared.begin(), shared.end(), [&](const Shared& other) {
      return !stage.is_free && !other.stages.front()->is_free &&
             Bodies::same(*other.stages.front()->launch, *stage.launch);
    });
    numbers.push_back(static_cast<std::size_t>(found - shared.begin()));
    if (found == shared.end()) shared.emplace_back();
    shared[numbers.back()].stages.push_back(&stage);
    shared[numbers.back()].whole = shared[numbers.back()].whole && is_whole(stage, chain);
  }
  const auto takes_turns = [&](std::size_t number) { return shared[number].stages.size() > 1; };
  std::size_t first = 0;
  while (first < chain.stages.size() && !takes_turns(numbers[first])) ++first;
  const std::size_t waits = write_line(out, chain, bodies, first);
  if (first == chain.stages.size()) return;
  for (std::size_t i = first; i < chain.stages.size(); ++i) {
    pointers = std::max(pointers, chain.stages[i].buffers.size());
    if (takes_turns(numbers[i])) words = std::max(words, chain.stages[i].launch->args.size());
  }

  // What the next stage needs is read while this group waits for the others.
  out << "  uint told = " << waits << "u, waits = " << (chain.stages[first].waits ? 1 : 0)
      << "u;\n  #pragma unroll 1\n  for (int stage = " << first << "; stage < "
      << chain.stages.size()
      << "; ++stage) {\n    if (waits != 0) {\n      chain_tell(state);\n      ++told;\n"
         "    } else {\n      barrier(CLK_LOCAL_MEM_FENCE);\n    }\n"
         "    const int me = chain_group_now(), local_item = chain_item_now();\n"
      << "    uint awaits = waits * told * " << chain.groups
      << "u;\n"
         "    int function = 0, groups = 0, groups_0 = 0, groups_1 = 0, slots = 0, start = 0;\n";
  // What is not set would keep its register from one stage to the next.
  for (std::size_t i = 0; i < pointers; ++i) out << "    __global void *p" << i << " = 0;\n";
  for (std::size_t i = 0; i < words; ++i) out << "    int n" << i << " = 0;\n";
  out << "    switch (stage) {\n";
  for (std::size_t i = first; i < chain.stages.size(); ++i) {
    const Stage& stage = chain.stages[i];
    const bool next_waits = i + 1 < chain.stages.size() && chain.stages[i + 1].waits;
    const Sizes sizes = sizes_of(stage, chain, 0);
    out << "      case " << i << ":  // " << stage.launch->file
        << "\n        function = " << numbers[i] << ", waits = " << (next_waits ? 1 : 0) << "u;\n";
    if (takes_turns(numbers[i])) {
      out << "        groups = " << sizes.groups << ", groups_0 = " << sizes.groups_0
          << ", groups_1 = " << sizes.groups_1 << ", slots = " << sizes.slots
          << ", start = " << sizes.start << ";\n";
    }
    out << "       ";
    std::size_t pointer = 0;
    for (std::size_t j = 0; j < sizes.arguments.size(); ++j) {
      const Arg& arg = stage.launch->args[j];
      if (std::holds_alternative<Operand>(arg)) {
        out << " p" << pointer++ << " = " << sizes.arguments[j] << ';';
      } else if (takes_turns(numbers[i])) {
        const bool is_float = std::holds_alternative<float>(arg);
        out << " n" << j << " = " << (is_float ? "as_int(" : "(") << sizes.arguments[j] << ");";
      }
    }
    out << "\n        break;\n";
  }
  out << "    }\n    switch (function) {\n";
  for (std::size_t number = numbers[first]; number < shared.size(); ++number) {
    const Stage& stage = *shared[number].stages.front();
    Sizes sizes = sizes_of(stage, chain, 0);
    if (takes_turns(number)) {
      sizes.groups_0 = "groups_0", sizes.groups_1 = "groups_1", sizes.groups = "groups";
      sizes.slots = "slots", sizes.start = "start";
    }
    std::size_t pointer = 0;
    for (std::size_t j = 0; j < sizes.arguments.size(); ++j) {
      const Arg& arg = stage.launch->args[j];
      const std::string word = "n" + std::to_string(j);
      if (std::holds_alternative<Operand>(arg)) {
        sizes.arguments[j] = "p" + std::to_string(pointer++);
      } else if (takes_turns(number)) {
        sizes.arguments[j] = std::holds_alternative<float>(arg) ? "as_float(" + word + ")" : word;
      }
    }
    sizes.awaited = "awaits";
    out << "    case " << number << ": {\n";
    // A function with OPERANDS_READY waits there; if one of its stages must not, all wait before.
    const std::vector<const Stage*>& stages = shared[number].stages;
    if (std::any_of(stages.begin(), stages.end(),
                    [](const Stage* one) { return one->waits && !one->waits_within; }))
      out << "    if (awaits != 0) chain_await(state, awaits, patience);\n    awaits = 0;\n";
    write_work(out, stage, bodies, chain, sizes, shared[number].whole);
    out << "    } break;\n";
  }
  out << "    }\n  }\n";
}

}  // namespace

std::string chain_text(const Chain& chain) {
  Bodies bodies;
  for (const Stage& stage : chain.stages) bodies.add(*stage.launch, stage.is_free || chain.nvidia);
  std::ostringstream out;
  out << "#define CHAIN_NVIDIA " << (chain.nvidia ? 1 : 0) << '\n'
      << assemble(kPrelude) << bodies.text(chain.nvidia);
  out << "#line 1 \"chain\"\n__kernel __attribute__((reqd_work_group_size(" << chain.items
      << ", 1, 1))) void " << kChainEntry << "(\n";
  for (int i = 0; i < chain.buffers; ++i) out << "    __global void *b" << i << ",\n";
  out << "    volatile __global uint *state, uint patience) {\n"
      << "  __local uchar local_memory[" << std::max<std::size_t>(chain.local_bytes, 1)
      << "] __attribute__((aligned(128)));\n";
  if (chain.nvidia) {
    write_loop(out, chain, bodies);
  } else {
    write_line(out, chain, bodies, chain.stages.size());
  }
  out << "  chain_end(state, " << chain.groups << "u);\n}\n";
  return out.str();
}

}  // namespace clgpu::kernel
