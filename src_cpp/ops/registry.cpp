// The list of families and the look-up by operation.
#include <cstring>

#include "ops/family.hpp"

namespace clgpu::ops {

#define CLGPU_FAMILY(object) extern const Family object;
#include "ops/families.def"
#undef CLGPU_FAMILY

const std::vector<const Family*>& all_families() {
  static const std::vector<const Family*> families = {
#define CLGPU_FAMILY(object) &object,
#include "ops/families.def"
#undef CLGPU_FAMILY
  };
  return families;
}

const Family* find_family(int builtin_code, const char* custom_name) {
  for (const Family* family : all_families()) {
    if (custom_name != nullptr) {
      for (const char* name : family->customs) {
        if (std::strcmp(name, custom_name) == 0) return family;
      }
      continue;
    }
    for (const Family::Builtin& builtin : family->builtins) {
      if (builtin.code == builtin_code) return family;
    }
  }
  return nullptr;
}

}  // namespace clgpu::ops
