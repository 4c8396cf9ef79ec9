// Peak rates of a device, with which times of kernels are compared.
#pragma once

#include <string>
#include <vector>

#include "base/writer.hpp"
#include "cl/context.hpp"
#include "store/store.hpp"

namespace clgpu::runtime {

struct Peaks {
  double fma_flops = 0;           ///< float operations per second, two for each multiply-add
  double mma_f16_flops = 0;       ///< the same for tensor cores with halves; 0 if there are none
  double mma_tf32_flops = 0;      ///< and with TF32 numbers
  double copy_bytes = 0;          ///< bytes per second, read and written, in device memory
  double cache_bytes = 0;         ///< bytes per second, read from a cache that all processors share
  double launch_seconds = 0;      ///< of an empty kernel, with many in flight
  double round_trip_seconds = 0;  ///< of an empty kernel, with waiting for it
  double upload_bytes = 0;        ///< bytes per second from pageable host memory
  double download_bytes = 0;      ///< bytes per second to pageable host memory
  double transfer_seconds = 0;    ///< of a copy of a few bytes, with waiting for it
};

void write(Writer& writer, const Peaks& peaks);

/// The best rates measured in about `seconds`. Throws cl::OpenCLError and cl::BuildError.
Peaks measure_peaks(cl::Context& context, double seconds);

/// Measured once per device and driver: kept in the store, and in the process. Thread-safe; throws
/// as measure_peaks.
Peaks peaks_of(cl::Context& context, store::Store& store);

/// Numbers as a row of the store, and back: false if the count differs or a number is not a rate.
std::string write_numbers(const std::vector<double*>& numbers);
bool read_numbers(const std::string& text, const std::vector<double*>& numbers);

}  // namespace clgpu::runtime
