// OpenCL buffers that LiteRT creates, imports and maps.
#pragma once

#include <memory>

#include "cl/context.hpp"

namespace clgpu::litert {

/// A context whose buffers LiteRT may hold, and the queue that maps them.
struct Home {
  std::shared_ptr<cl::Context> context;
  cl::QueueHandle queue;
};

/// The home of a context of ours, which lives until the process ends. Thread-safe. Throws
/// cl::OpenCLError.
const Home& home_of(const std::shared_ptr<cl::Context>& context);

}  // namespace clgpu::litert
