// Inferences in flight without the runtime: which models may be streamed, and how many at a time.
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

/// A stream of the report's only partition, with at most `lanes` inferences in flight, fewer if the
/// memory budget requires it. `verified`: its first inference was verified as the option says.
/// `number`, if given, is the number of the report that the caller means. Throws an Error with the
/// reason if the model cannot be streamed.
Streamed stream(const Target& target, const Ledger& ledger, int lanes, bool verified,
                std::optional<std::uint64_t> number);

}  // namespace clgpu::delegate
