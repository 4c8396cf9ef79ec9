#include "delegate/target.hpp"

#include <utility>

#include "base/sha256.hpp"

namespace clgpu::delegate {

Target::Target(Options chosen, const cl::GlContext* gl)
    : options(std::move(chosen)),
      context(gl != nullptr
                  ? cl::Context::sharing(cl::find_device(options.device), *gl, options.context)
                  : cl::Context::of(cl::find_device(options.device), options.context)),
      store(store::Store::of_option(options.cache)),
      probed(runtime::probe(*context, *store)) {}

Target::~Target() { context->end_builds(); }

std::string Target::key(const std::string& signature) const {
  const DeviceInfo& info = device();
  Sha256 hash;
  for (const std::string* field : {&info.name, &info.vendor, &info.driver_version,
                                   &info.opencl_version, &info.platform, &info.platform_version})
    hash.update(*field).update({"\0", 1});
  return hex(hash.update(signature).digest());
}

}  // namespace clgpu::delegate
