#include "plan/bundles.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "base/index.hpp"
#include "kernel/sources.hpp"
#include "plan/conflicts.hpp"

namespace clgpu::plan {
namespace {

constexpr std::size_t kMostMembers = 8;  // of them, a launch is little
/// So many launches alike are worth a kernel of their own, which has to be compiled.
constexpr std::size_t kManyAlike = 8;
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

bool is_lent(const Plan& plan, int buffer) {
  return is_download(plan, buffer) ||
         std::any_of(plan.uploads.begin(), plan.uploads.end(),
                     [&](const Transfer& t) { return t.buffer == buffer; });
}

// All that the text of a bundle of one is made of.
std::string single_key(const kernel::Launch& launch) {
  std::string key = kernel::text_key(launch) + launch.entry + ' ' + launch.build_flags;
  for (const auto& [name, value] : launch.macros) key += ' ' + name + '=' + value;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    key += ' ' + std::to_string(launch.global[axis]) + '/' + std::to_string(launch.local[axis]);
  }
  for (const kernel::Arg& arg : launch.args) {
    if (const auto* number = std::get_if<std::int32_t>(&arg)) key += ' ' + std::to_string(*number);
    if (const auto* number = std::get_if<float>(&arg)) key += ' ' + std::to_string(*number);
  }
  return key;
}

// Steps outside of the bundles of which there are many alike.
void add_singles(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                 std::size_t most_local, std::vector<Bundle>& bundles) {
  std::vector<bool> taken(plan.run.size(), false);
  for (const Bundle& bundle : bundles) {
    for (std::size_t i = 0; i < bundle.kernel.members.size(); ++i)
      taken[uz(bundle.first) + i] = true;
  }
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const kernel::Launch& launch = plan.run[i].launch;
    // Of a large one, the arguments are a small part of the time.
    if (!taken[i] && !launch.runs_graphs && suits(plan, plan.run[i]))
      alike[single_key(launch)].push_back(i);
  }
  for (const auto& [key, steps] : alike) {
    const Step& first = plan.run[steps.front()];
    const std::int64_t bytes =
        kernel::local_bytes_of(first.launch.file, local_bytes[steps.front()]);
    if (steps.size() < kManyAlike || bytes < 0 || uz(bytes) > most_local ||
        !kernel::may_be_member(first.launch))
      continue;
    for (const std::size_t i : steps) {
      Bundle bundle;
      bundle.first = static_cast<int>(i);
      kernel::Member member{&plan.run[i].launch, {}};
      for (const int buffer : plan.run[i].buffers)
        member.buffers.push_back(number_of(buffer, bundle.buffers));
      bundle.kernel.members.push_back(std::move(member));
      bundle.kernel.local_bytes = uz(bytes);
      bundle.kernel.buffers = static_cast<int>(bundle.buffers.size());
      bundles.push_back(std::move(bundle));
    }
  }
  std::sort(bundles.begin(), bundles.end(),
            [](const Bundle& a, const Bundle& b) { return a.first < b.first; });
}

}  // namespace

std::vector<Bundle> find_bundles(const Plan& plan, const std::vector<std::size_t>& local_bytes,
                                 std::size_t most_local, bool addresses) {
  std::vector<Bundle> bundles;
  if (!plan.moves.empty()) return bundles;
  Bundle bundle;
  std::vector<Use> open;  // of its members
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
    const std::vector<Use> uses = uses_of(step);
    if (!members.empty() && (members.size() == kMostMembers || conflict(plan, open, uses) ||
                             !kernel::may_be_bundled(*members.front().launch, step.launch)))
      end();
    if (members.empty()) bundle.first = static_cast<int>(i);
    kernel::Member member{&step.launch, {}};
    for (const Use& use : uses) member.buffers.push_back(number_of(use.buffer, bundle.buffers));
    members.push_back(std::move(member));
    bundle.kernel.local_bytes = std::max(bundle.kernel.local_bytes, uz(bytes));
    open.insert(open.end(), uses.begin(), uses.end());
  }
  end();
  if (!addresses) return bundles;
  add_singles(plan, local_bytes, most_local, bundles);
  for (Bundle& each : bundles) {
    for (const int buffer : each.buffers) each.kernel.by_address.push_back(!is_lent(plan, buffer));
  }
  return bundles;
}

}  // namespace clgpu::plan
