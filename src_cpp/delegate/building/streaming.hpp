// Inferences in flight, past the runtime: what may be streamed, and how many at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "delegate/target.hpp"
#include "delegate/tell/ledger.hpp"

namespace clgpu::runtime {
class Stream;
}

namespace clgpu::delegate {

/// A partition that is the whole model, with several inferences in flight.
struct Streamed {
  std::shared_ptr<runtime::Stream> stream;
  std::vector<int> inputs, outputs;  ///< TFLite's indices of uploads and of downloads
};

/// Of the one partition of the report, with at most `lanes` inferences in flight, and fewer where
/// the memory budget asks for it. `verified`: its first inference was looked at, as the option
/// wants it. `number`, if it is given, is that of the report that the caller means. Throws Error
/// where that cannot be, with the reason.
Streamed stream(const Target& target, const Ledger& ledger, int lanes, bool verified,
                std::optional<std::uint64_t> number);

}  // namespace clgpu::delegate
