#include "plan/bundles.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "kernel/sources.hpp"
#include "plan/conflicts.hpp"

namespace clgpu::plan {
namespace {

constexpr std::size_t kMostMembers = 8;  // of them, a launch is little
/// Bytes that a step writes at most: beyond, its launch takes much less time than its work.
constexpr std::int64_t kMostBytes = 256 << 10;

bool is_download(const Plan& plan, int buffer) {
  return std::any_of(plan.downloads.begin(), plan.downloads.end(),
                     [&](const Transfer& t) { return t.buffer == buffer; });
}

// Also whether none of it is a result of the partition: the application may have given it the
// memory of an input, which launches in a row tolerate.
bool suits(const Plan& plan, const Step& step) {
  bool small = true;
  for_operands(step, [&](int buffer, const kernel::Operand& operand) {
    // What is changed in place is large, and the change small.
    const bool whole = operand.writes && !operand.reads;
    const Buffer& memory = plan.buffers[uz(buffer)];
    small = small && (!whole || memory.bytes <= kMostBytes || memory.carried >= 0);
    small = small && !(operand.writes && is_download(plan, buffer));
  });
  return small;
}

}  // namespace

std::vector<Bundle> find_bundles(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                                 std::size_t most_local) {
  std::vector<Bundle> bundles;
  if (!plan.moves.empty()) return bundles;
  Bundle bundle;
  std::vector<Access> open;  // of its members
  const auto end = [&] {
    bundle.kernel.buffers = static_cast<int>(bundle.buffers.size());
    if (bundle.kernel.members.size() > 1) bundles.push_back(std::move(bundle));
    bundle = {};
    open.clear();
  };
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const Step& step = plan.run[i];
    const std::int64_t bytes =
        step.bundled ? kernel::local_bytes_of(step.launch.file, local_bytes[i]) : -1;
    if (bytes < 0 || uz(bytes) > most_local || !suits(plan, step)) {
      end();
      continue;
    }
    std::vector<kernel::Member>& members = bundle.kernel.members;
    const std::vector<Access> uses = accesses_of(step);
    if (!members.empty() && (members.size() == kMostMembers || conflict(plan, open, uses) ||
                             !kernel::may_be_bundled(*members.front().launch, step.launch)))
      end();
    if (members.empty()) bundle.first = static_cast<int>(i);
    kernel::Member member{&step.launch, {}};
    for (const Access& use : uses) member.buffers.push_back(number_of(use.buffer, bundle.buffers));
    members.push_back(std::move(member));
    bundle.kernel.local_bytes = std::max(bundle.kernel.local_bytes, uz(bytes));
    open.insert(open.end(), uses.begin(), uses.end());
  }
  end();
  return bundles;
}

}  // namespace clgpu::plan
