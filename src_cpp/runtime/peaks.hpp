// What a device can do at most: the ceilings that times of kernels are compared with.
#pragma once

#include "cl/context.hpp"

namespace clgpu::runtime {

struct Peaks {
  double fma_flops = 0;           ///< float operations per second, two for each multiply-add
  double mma_f16_flops = 0;       ///< the same of tensor cores, of halves; 0 where there are none
  double mma_tf32_flops = 0;      ///< and of TF32 numbers
  double copy_bytes = 0;          ///< bytes per second, read and written, in device memory
  double launch_seconds = 0;      ///< of an empty kernel, with many in flight
  double round_trip_seconds = 0;  ///< of an empty kernel that is waited for
  double upload_bytes = 0;        ///< bytes per second from pageable host memory
  double download_bytes = 0;      ///< bytes per second to pageable host memory
};

/// Best of what is seen in about `seconds`. Throws cl::OpenCLError and cl::BuildError.
Peaks measure_peaks(cl::Context& context, double seconds);

}  // namespace clgpu::runtime
