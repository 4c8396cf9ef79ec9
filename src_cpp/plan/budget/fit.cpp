#include "plan/budget/fit.hpp"

#include <algorithm>
#include <optional>

#include "base/byte_size.hpp"
#include "base/index.hpp"
#include "ir/verify.hpp"
#include "ops/families/concatenation.hpp"
#include "passes/pass.hpp"
#include "passes/reuse_rows.hpp"
#include "passes/split_weights.hpp"
#include "passes/stream_rows.hpp"
#include "plan/budget/planner.hpp"
#include "plan/choose.hpp"

namespace clgpu::plan {
namespace {

// Changes to a graph that reduce its memory.
struct Measures {
  bool split_concatenations = false;
  bool swap = false;
  int band = 0;  ///< rows; 0: nothing is computed band by band
  bool stream_weights = false;
  bool parts = false;  ///< large concatenations exist as their parts only
  bool reuse = false;  ///< not to reduce memory: it needs more

  Measures splitting() const {
    Measures more = *this;
    more.split_concatenations = true;
    return more;
  }
  Measures swapping() const {
    Measures more = *this;
    more.swap = true;
    return more;
  }
  Measures streaming() const {
    Measures more = *this;
    more.stream_weights = true;
    return more;
  }
  Measures in_parts() const {
    Measures more = *this;
    more.parts = true;
    return more;
  }
  Measures reusing() const {
    Measures more = *this;
    more.reuse = true;
    return more;
  }
  Measures in_bands(int rows) const {
    Measures more = *this;
    more.band = rows;
    return more;
  }
};

// Band heights to try. Half the height needs less memory and twice the launches.
constexpr int kBands[] = {512, 256, 128, 64, 32, 16, 8, 4, 2, 1};
// Planning takes about a millisecond for every ten nodes.
constexpr std::int64_t kMostNodes = 6000;
// Of experts that are computed sample by sample: a launch takes a CPU as long as this many
// operations.
constexpr int kMostSamples = 16;
constexpr double kLeastFlops = 1e6;
constexpr std::int64_t kMostPieces = 64;  // of all weights together
// A budget holds this many tensors that are not divided into parts or bands: some are in use at a
// time, and small ones leave less of it unused.
constexpr std::int64_t kWholes = 10;

std::int64_t int64(std::uint64_t bytes) {
  return static_cast<std::int64_t>(std::min(bytes, static_cast<std::uint64_t>(INT64_MAX)));
}

class Fitter {
 public:
  Fitter(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
         const Broken& broken)
      : graph_(graph),
        device_(device),
        options_(options),
        broken_(broken),
        budget_(options.memory_budget) {
    for (const ir::Tensor& tensor : graph.tensors) {
      if (tensor.is_constant()) constant_bytes_ += tensor.storage_bytes();
    }
    if (options.max_object > 0) {
      device_.max_object_bytes =
          std::min(device_.max_object_bytes, static_cast<std::uint64_t>(options.max_object));
    }
  }

  Fitted fit() {
    if (!options_.reuse) return fit_without_reuse();
    std::optional<Fitted> reusing = attempt(kNone.reusing(), budget_);
    if (reusing && fits(*reusing)) return std::move(*reusing);
    Fitted fitted = fit_without_reuse();
    ir::declined(fitted.graph, "reuse_rows", -1,
                 reusing ? "it would need " + byte_size(reusing->plan.peak_bytes) +
                               " of device memory; the budget is " + byte_size(budget_)
                         : "a tensor that it would keep is larger than the largest object allowed");
    return fitted;
  }

 private:
  Fitted fit_without_reuse() {
    const Measures asked = kNone.in_bands(options_.row_band);
    if (auto plan = attempt(asked, budget_); plan && fits(*plan)) return std::move(*plan);
    if (auto best = cheapest()) return std::move(*best);
    std::optional<Fitted> least = smallest();
    if (!least) throw *too_large_;
    if (fits(*least)) return std::move(*least);
    const std::int64_t bytes = least->plan.peak_bytes;
    throw BudgetError(bytes, "no plan fits into the memory budget of " + byte_size(budget_) +
                                 "; the smallest feasible budget is " + byte_size(bytes));
  }

  bool fits(const Fitted& fitted) const {
    return budget_ == 0 || fitted.plan.peak_bytes <= budget_;
  }

  // The plan with these measures; none if a tensor is larger than the limit of one object.
  std::optional<Fitted> attempt(const Measures& measures, std::int64_t budget) {
    // Families size their scratch memory by the device's memory.
    DeviceInfo device = device_;
    if (budget > 0)
      device.global_bytes = std::min(device.global_bytes, static_cast<std::uint64_t>(budget));
    PlanOptions options = options_;
    options.memory_budget = budget;
    options.swap = measures.swap;
    options.stream_weights = measures.stream_weights;
    Fitted fitted{rewritten(measures, budget), {}};
    if (measures.reuse) {
      passes::reuse_rows(fitted.graph, {*options_.reuse, options_.row_band}, device);
      ir::verify(fitted.graph);
    }
    try {
      fitted.plan = make_plan(fitted.graph, device, options, broken_);
    } catch (const ObjectTooLarge& error) {
      if (!too_large_ || error.bytes() < too_large_->bytes()) too_large_ = error;
      return std::nullopt;
    }
    return fitted;
  }

  ir::Graph rewritten(const Measures& measures, std::int64_t budget) const {
    ir::Graph graph = graph_;
    // A GPU computes samples that nobody needs in less time than it takes to launch each by itself.
    if (device_.is_cpu()) passes::split_samples(graph, kMostSamples, kLeastFlops);
    // Packed weights take somewhat more. While one piece of streamed weights is read, the next one
    // arrives.
    std::int64_t piece = int64(device_.max_object_bytes / 2);
    if (measures.stream_weights)
      piece = std::min(piece, std::max(budget / 4, constant_bytes_ / kMostPieces));
    passes::split_weights(graph, piece);
    std::int64_t whole = INT64_MAX;  // bytes of a tensor that need not be divided
    if (measures.parts) whole = budget > 0 ? budget / kWholes : int64(device_.max_object_bytes);
    if (measures.band > 0) {
      passes::stream_rows(graph, regions(graph, measures), measures.band,
                          std::min(whole, int64(device_.max_object_bytes)));
    }
    passes::remove_concatenations(
        graph, measures.split_concatenations ? passes::Concats::kSplit : concatenations(), whole);
    ir::verify(graph);
    return graph;
  }

  // The engines that the user has chosen by the option 'engines'.
  passes::Concats concatenations() const {
    const auto wish = options_.engines.find(ops::kConcatenationFamily.name);
    if (wish == options_.engines.end()) return passes::Concats::kCopy;
    if (wish->second == ops::kRowsEngine) return passes::Concats::kCopyAll;
    const auto names = alternatives(wish->second);
    const bool split = std::find(names.begin(), names.end(), ops::kSplitEngine) != names.end();
    return split ? passes::Concats::kSplit : passes::Concats::kCopy;
  }

  // The regions where bands pay: those with large tensors. Where parts of concatenations divide
  // tensors, too, only those with the largest.
  std::vector<std::vector<int>> regions(const ir::Graph& graph, const Measures& measures) const {
    const std::int64_t share = measures.parts ? 2 : 8;
    const std::vector<passes::RowRegion> all = passes::row_regions(graph);
    std::int64_t largest = 0;
    for (const passes::RowRegion& region : all) largest = std::max(largest, region.largest);
    std::vector<std::vector<int>> chosen;
    for (const passes::RowRegion& region : all) {
      if (options_.row_band > 0 || region.largest >= largest / share)
        chosen.push_back(region.nodes);
    }
    return chosen;
  }

  // Bands that change anything and whose plans take an acceptable time.
  std::vector<int> bands() const {
    const std::vector<std::vector<int>> all = regions(graph_, kNone);
    std::vector<int> found;
    for (const int band : kBands) {
      std::int64_t nodes = 0;
      bool changes = false;
      for (const std::vector<int>& region : all) {
        std::int64_t rows = 0;
        for (const int node : region) {
          const ir::Node& writer = graph_.nodes[uz(node)];
          const ir::Shape& shape = graph_.tensor(writer.outputs.at(0)).shape;
          if (shape.rank() == 4) rows = std::max<std::int64_t>(rows, shape[1]);
        }
        changes = changes || rows > band;
        nodes += (rows / band + 1) * static_cast<std::int64_t>(region.size());
      }
      if (changes && nodes <= kMostNodes) found.push_back(band);
    }
    return found;
  }

  // Estimate of the seconds that a plan takes besides computing.
  double cost(const Plan& plan) const {
    const double bus = device_.unified_memory ? 8e9 : 25e9;  // bytes per second
    const double launch = device_.is_cpu() ? 2e-5 : 5e-6;
    double seconds = launch * static_cast<double>(plan.run.size());
    for (const Move& move : plan.moves) seconds += static_cast<double>(move.bytes) / bus;
    return seconds;
  }

  // The plan that fits and whose measures cost the least; none if no plan fits.
  std::optional<Fitted> cheapest() {
    std::optional<Fitted> best;
    const auto consider = [&](const Measures& measures) {
      std::optional<Fitted> fitted = attempt(measures, budget_);
      if (!fitted || !fits(*fitted)) return false;
      if (!best || cost(fitted->plan) < cost(best->plan)) best = std::move(fitted);
      return true;
    };
    if (consider(kNone.splitting())) return best;
    consider(kNone.swapping());
    consider(kNone.streaming());
    const Measures moving = kNone.swapping().streaming();
    if (!best && !consider(moving)) consider(moving.splitting());
    const std::vector<int> usable = bands();
    for (const Measures& measures : {kNone, kNone.in_parts()}) {
      // Without moves a smaller band costs more, so the search is for the largest band that fits.
      std::size_t begin = 0, end = usable.size();
      while (begin < end) {
        const std::size_t middle = (begin + end) / 2;
        if (consider(measures.in_bands(usable[middle]))) {
          end = middle;
        } else {
          begin = middle + 1;
        }
      }
      if (end < usable.size()) return best;
    }
    // With moves a smaller band may cost less, since it needs fewer moves.
    for (const int band : usable) {
      consider(moving.in_bands(band));
      consider(moving.in_bands(band).in_parts());
    }
    return best;
  }

  // The plan with the smallest peak that all measures together reach.
  std::optional<Fitted> smallest() {
    std::vector<int> tried{0};
    const std::vector<int> usable = bands();
    if (!usable.empty()) tried.push_back(usable.back());
    if (usable.size() > 2) tried.push_back(usable[usable.size() - 3]);
    std::optional<Fitted> best;
    const auto consider = [&](const Measures& measures) {
      std::optional<Fitted> fitted = attempt(measures, 1);
      if (fitted && (!best || fitted->plan.peak_bytes < best->plan.peak_bytes))
        best = std::move(fitted);
    };
    for (const int band : tried) {
      const Measures banded = kNone.in_bands(band), moving = banded.swapping().streaming();
      consider(moving);
      consider(moving.splitting());
      consider(moving.in_parts());
      consider(banded);
    }
    return best;
  }

  static constexpr Measures kNone{};

  const ir::Graph& graph_;
  DeviceInfo device_;
  const PlanOptions& options_;
  const Broken& broken_;
  const std::int64_t budget_;                // bytes; 0: none
  std::int64_t constant_bytes_ = 0;          // of all weights
  std::optional<ObjectTooLarge> too_large_;  // of the attempt that came closest
};

}  // namespace

Fitted fit(const ir::Graph& graph, const DeviceInfo& device, const PlanOptions& options,
           const Broken& broken) {
  return Fitter(graph, device, options, broken).fit();
}

}  // namespace clgpu::plan
