#include "kernel/chain.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "kernel/sources.hpp"

namespace clgpu::kernel {
namespace {

constexpr const char* kPrelude = "common/chain.cl";

/// The call of a stage's function, for its work-group `group` and the work-item `item` of it.
std::string call(const Stage& stage, const Bodies& bodies, const std::string& slot,
                 const std::string& awaited) {
  const Launch& launch = *stage.launch;
  const auto groups = [&](std::size_t axis) {
    return std::to_string(launch.global[axis] / launch.local[axis]);
  };
  return bodies.call(launch, arguments_of(stage), groups(0), groups(1),
                     "local_memory + " + slot + " * " + std::to_string(stage.local_bytes),
                     "1 + " + slot, "state, " + awaited + ", patience");
}

/// `awaited`: groups that must have told before the stage continues at OPERANDS_READY; 0: it does
/// not wait there.
void write_stage(std::ostringstream& out, const Stage& stage, const Bodies& bodies,
                 const Chain& chain, std::size_t awaited) {
  const Launch& launch = *stage.launch;
  const std::size_t items = group_items(launch);
  const std::size_t groups = groups_of(launch);
  const std::string all = std::to_string(chain.groups);
  const std::string mine =
      stage.start == 0
          ? std::string("me")
          : "(me + " + all + " - " + std::to_string(stage.start % chain.groups) + ") % " + all;
  out << "  {  // " << launch.file << '\n';
  if (stage.is_free) {
    // Neighbours stay together, as their memory does, and all work-groups get a share.
    const std::string width = std::to_string(chain.items % 32 == 0 ? 32 : chain.items);
    out << "    for (int at = (local_item / " << width << " * " << all << " + " << mine << ") * "
        << width << " + local_item % " << width << "; at < " << groups * items
        << "; at += " << chain.groups * chain.items << ") {\n      const int group = at / " << items
        << ", item = at % " << items << ";\n";
    // A group that gives up says so before it arrives at the next wait, so all that pass it know.
    if (stage.is_lasting) out << "      if (chain_read(&state[CHAIN_GAVE_UP]) != 0) break;\n";
    out << "      " << call(stage, bodies, "0", "0u") << "\n    }\n";
  } else {
    const std::size_t slots = static_cast<std::size_t>(stage.slots);
    const bool one = slots == 1 && items == chain.items;
    out << "    const int slot = " << (one ? "0" : "local_item / " + std::to_string(items))
        << ", item = " << (one ? "local_item" : "local_item % " + std::to_string(items)) << ";\n";
    if (awaited > 0) out << "    uint awaited = " << awaited << "u;\n";
    if (!one) out << "    if (slot < " << slots << ")\n";
    out << "    for (int group = slot * " << all << " + " << mine << "; group < " << groups
        << "; group += " << chain.groups * slots << ") {\n      "
        << call(stage, bodies, "slot", awaited > 0 ? "awaited" : "0u") << "\n";
    if (awaited > 0) out << "      awaited = 0;\n";
    // The next one uses the same local memory.
    if (groups > chain.groups * slots) out << "      CHAIN_BARRIER(1 + slot, " << items << ");\n";
    out << "    }\n";
    if (awaited > 0) out << "    if (awaited != 0) chain_await(state, awaited, patience);\n";
  }
  out << "  }\n";
}

}  // namespace

std::string chain_text(const Chain& chain) {
  Bodies bodies;
  for (const Stage& stage : chain.stages) bodies.add(*stage.launch, stage.is_free);
  std::ostringstream out;
  out << "#define CHAIN_NVIDIA " << (chain.nvidia ? 1 : 0) << '\n'
      << assemble(kPrelude) << bodies.text(chain.nvidia);
  out << "#line 1 \"chain\"\n__kernel __attribute__((reqd_work_group_size(" << chain.items
      << ", 1, 1))) void " << kChainEntry << "(\n";
  for (int i = 0; i < chain.buffers; ++i) out << "    __global void *b" << i << ",\n";
  out << "    volatile __global uint *state, uint patience) {\n"
      << "  __local uchar local_memory[" << std::max<std::size_t>(chain.local_bytes, 1)
      << "] __attribute__((aligned(128)));\n"
      << "  const int me = get_group_id(0), local_item = get_local_id(0);\n";
  std::size_t waits = 0;
  for (const Stage& stage : chain.stages) {
    waits += stage.waits ? 1 : 0;
    const bool within = stage.waits && stage.waits_within;
    if (within) {
      out << "  chain_tell(state);\n";
    } else if (stage.waits) {
      out << "  chain_wait(state, " << waits << "u, " << chain.groups << "u, patience);\n";
    } else {
      out << "  barrier(CLK_LOCAL_MEM_FENCE);\n";  // the stage before may still use local memory
    }
    write_stage(out, stage, bodies, chain, within ? waits * chain.groups : 0);
  }
  out << "  chain_end(state, " << chain.groups << "u);\n}\n";
  return out.str();
}

}  // namespace clgpu::kernel
