#include "plan/signature.hpp"

#include <cstring>
#include <string_view>

#include "base/sha256.hpp"
#include "kernel/sources.hpp"

namespace clgpu::plan {
namespace {

class Digest {
 public:
  // The length separates neighbouring fields.
  Digest& add(std::string_view field) {
    hash_.update(std::to_string(field.size())).update(":").update(field);
    return *this;
  }
  Digest& add(std::int64_t number) { return add(std::to_string(number)); }
  Digest& add(float number) {
    std::int32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    return add(std::int64_t{bits});
  }
  Digest& add(const kernel::Arg& arg) {
    add(static_cast<std::int64_t>(arg.index()));
    if (const auto* operand = std::get_if<kernel::Operand>(&arg)) {
      add(static_cast<std::int64_t>(operand->kind)).add(std::int64_t{operand->index});
      if (operand->image) add(std::int64_t{-1});
    } else if (const auto* number = std::get_if<std::int32_t>(&arg)) {
      add(std::int64_t{*number});
    } else if (const auto* real = std::get_if<float>(&arg)) {
      add(*real);
    } else {
      add(static_cast<std::int64_t>(std::get<kernel::LocalMemory>(arg).bytes));
    }
    return *this;
  }
  Digest& add_program(const kernel::Launch& launch) {
    if (launch.runs_graphs) return add(launch.entry);
    add(launch.entry).add(kernel::source_digest(launch)).add(launch.build_flags);
    for (const auto& [name, value] : launch.macros) add(name).add(value);
    return *this;
  }
  Digest& add(const kernel::Launch& launch) {
    add_program(launch);
    for (const kernel::Arg& arg : launch.args) add(arg);
    for (const auto* range : {&launch.global, &launch.local}) {
      for (const std::size_t n : *range) add(static_cast<std::int64_t>(n));
    }
    return *this;
  }
  std::string hex() { return clgpu::hex(hash_.digest()); }

 private:
  Sha256 hash_;
};

}  // namespace

std::string signature(const std::string& family, const std::vector<kernel::Candidate>& candidates,
                      const std::vector<bool>& static_inputs) {
  Digest digest;
  digest.add(family);
  for (const bool is_static : static_inputs) digest.add(std::int64_t{is_static});
  for (const kernel::Candidate& candidate : candidates) {
    digest.add(candidate.name).add(static_cast<std::int64_t>(candidate.launches.size()));
    for (const kernel::Launch& launch : candidate.launches) digest.add(launch);
    for (const kernel::Scratch& scratch : candidate.scratch) digest.add(scratch.bytes);
  }
  return digest.hex();
}

std::string engine_signature(const std::string& family, const kernel::Candidate& candidate) {
  Digest digest;
  digest.add(family).add(candidate.name);
  for (const kernel::Launch& launch : candidate.launches) digest.add_program(launch);
  return digest.hex();
}

std::string combination(const Plan& plan) {
  Digest digest;
  for (const Choice& choice : plan.choices) {
    if (!choice.signature.empty()) digest.add(choice.signature).add(choice.candidate);
  }
  return digest.hex();
}

}  // namespace clgpu::plan
