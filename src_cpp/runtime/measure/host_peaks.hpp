// Peak rates of one core of the host, for the cost model of placement="auto".
#pragma once

#include "store/store.hpp"

namespace clgpu::runtime {

struct HostPeaks {
  double fma_flops = 0;     ///< float operations per second, two for each multiply-add
  double cache_bytes = 0;   ///< bytes per second, read and written, for data that fits into a cache
  double memory_bytes = 0;  ///< ... and for data that does not
};

/// Measured now, in some 30 ms.
HostPeaks measure_host_peaks();

/// Measured once per machine: kept in the store, and in the process. Thread-safe.
HostPeaks host_peaks_of(store::Store& store);

}  // namespace clgpu::runtime
