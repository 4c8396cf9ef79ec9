// LiteRT's tensor buffers as memory of a delegate's tensors.
#pragma once

#include <memory>

#include "abi/litert.hpp"
#include "cl/context.hpp"
#include "delegate/lending.hpp"

namespace clgpu::litert {

/// Gives the environment the device's OpenCL objects, unless it has some. Returns the lender of the
/// environment's models; null if this LiteRT, or its environment, cannot hold OpenCL buffers.
std::shared_ptr<delegate::Lender> make_lender(const RuntimeContext& context, void* environment,
                                              const std::shared_ptr<cl::Context>& device);

}  // namespace clgpu::litert
