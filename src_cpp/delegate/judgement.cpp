#include "delegate/judgement.hpp"

namespace clgpu::delegate {

const char* name_of(Level level) {
  static const char* const kNames[] = {"as asked", "exact sums", "fp32", "cpu"};
  return kNames[static_cast<int>(level)];
}

const char* name_of(Judgement::Outcome outcome) {
  static const char* const kNames[] = {"pending", "not checked", "right", "rounding", "replaced"};
  return kNames[static_cast<int>(outcome)];
}

}  // namespace clgpu::delegate
