#include "kernel/bundle.hpp"

#include <algorithm>
#include <sstream>

#include "base/index.hpp"
#include "kernel/sources.hpp"

namespace clgpu::kernel {
namespace {

// The choice of one of several expressions by the variable `member`.
std::string chosen(const std::vector<std::string>& values) {
  if (std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values[0]; }))
    return values[0];
  std::string text = "(";
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    text += "member == " + std::to_string(i) + " ? " + values[i] + " : ";
  return text + values.back() + ")";
}

// The type that a kernel computes with, if its file names it: compilers for CPUs then do not make
// vectors of its work-items.
std::string vector_type(const Launch& launch) {
  const std::string text = assemble(launch.file);
  const std::size_t entry = text.find("void " + launch.entry + "(");
  constexpr std::string_view kHint = "vec_type_hint(";
  const std::size_t begin = text.rfind("__kernel", entry);
  if (entry == text.npos || begin == text.npos) return {};
  const std::size_t hint = text.find(kHint, begin);
  if (hint == text.npos || hint > entry) return {};
  const std::size_t from = hint + kHint.size();
  const std::string type = text.substr(from, text.find(')', from) - from);
  const bool is_macro = !type.empty() && type[0] >= 'A' && type[0] <= 'Z';
  return is_macro ? std::string() : type;
}

// Members with the same function, as one call of it.
void write_members(std::ostringstream& out, const std::vector<const Member*>& members,
                   const Bodies& bodies, std::size_t begin, bool has_local) {
  std::vector<std::string> starts, groups_0, groups_1;
  std::vector<std::vector<std::string>> arguments;  // by argument, then member
  std::string member = "0";
  std::size_t start = 0;
  for (const Member* each : members) {
    const Launch& launch = *each->launch;
    if (start > 0) member += " + (at >= " + std::to_string(start) + ")";
    starts.push_back(std::to_string(start));
    start += groups_of(launch);
    groups_0.push_back(std::to_string(launch.global[0] / launch.local[0]));
    groups_1.push_back(std::to_string(launch.global[1] / launch.local[1]));
    const std::vector<std::string> texts = arguments_of(*each);
    arguments.resize(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) arguments[i].push_back(texts[i]);
  }
  std::vector<std::string> passed;
  for (const std::vector<std::string>& values : arguments) passed.push_back(chosen(values));
  out << "    const int at = me - " << begin << ", member = " << member << ";\n"
      << "    const int group = at - " << chosen(starts) << ";\n    "
      << bodies.call(*members.front()->launch, passed, chosen(groups_0), chosen(groups_1),
                     has_local ? "local_memory" : "(__local uchar *)0", "0", Bodies::kNoWaiting)
      << '\n';
}

}  // namespace

std::size_t Bundle::groups() const {
  std::size_t groups = 0;
  for (const Member& member : members) groups += groups_of(*member.launch);
  return groups;
}

bool may_be_bundled(const Launch& a, const Launch& b) {
  if (a.build_flags != b.build_flags || group_items(a) != group_items(b) || !may_be_member(a) ||
      !may_be_member(b))
    return false;
  if (a.file == b.file && a.entry == b.entry) return true;
  // A kernel has one such type.
  return vector_type(a).empty() && vector_type(b).empty();
}

std::string bundle_text(const Bundle& bundle) {
  // Those with the same function side by side.
  std::vector<std::vector<const Member*>> kinds;
  Bodies bodies;
  for (const Member& member : bundle.members) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& members) {
      return Bodies::same(*members.front()->launch, *member.launch);
    });
    if (kind != kinds.end()) {
      kind->push_back(&member);
      continue;
    }
    kinds.push_back({&member});
    bodies.add(*member.launch, /*copied=*/true);
  }
  const Launch& first = *bundle.members.front().launch;
  const std::string type = vector_type(first);
  std::ostringstream out;
  out << bodies.text(/*named_barriers=*/false);
  out << "#line 1 \"bundle\"\n__kernel __attribute__((reqd_work_group_size(" << bundle.items()
      << ", 1, 1)" << (type.empty() ? "" : ", vec_type_hint(" + type + ")") << ")) void "
      << kBundleEntry << "(\n";
  for (int i = 0; i < bundle.buffers; ++i)
    out << "    __global void *b" << i << (i + 1 < bundle.buffers ? ",\n" : ") {\n");
  if (bundle.local_bytes > 0) {
    out << "  __local uchar local_memory[" << bundle.local_bytes
        << "] __attribute__((aligned(128)));\n";
  }
  out << "  const int me = get_group_id(0), item = get_local_id(0);\n";
  std::size_t begin = 0;
  for (const std::vector<const Member*>& members : kinds) {
    std::size_t end = begin;
    for (const Member* member : members) end += groups_of(*member->launch);
    out << (begin > 0 ? "  } else " : "  ") << "if (me < " << end << ") {\n";
    write_members(out, members, bodies, begin, bundle.local_bytes > 0);
    begin = end;
  }
  out << "  }\n}\n";
  return out.str();
}

}  // namespace clgpu::kernel
