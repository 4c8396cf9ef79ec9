// Runs launches of a plan as the stages of a few kernels.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/chains.hpp"
#include "plan/plan.hpp"
#include "runtime/run/pinned.hpp"
#include "runtime/run/shared_kernel.hpp"

namespace clgpu::runtime {

/// Seconds of an inference: above, launches cost nothing.
inline constexpr double kWorthwhile = 0.02;

/// Whether and how an executor chains its launches.
struct Chaining {
  plan::ChainLimits limits;
  bool measured = true;  ///< only if that is faster
  /// Compiles kernels that the store does not have, which takes seconds; otherwise the plan is not
  /// expected to last so long.
  bool compiles = true;
};

/// What was found out about the chains of a plan.
enum class ChainVerdict { kFaster, kSlower, kWaited };

/// What became of it.
struct ChainsTaken {
  int kernels = 0;     ///< chains of an inference
  int launches = 0;    ///< of the plan, that are stages of them
  int early = 0;       ///< stages that read weights before they wait
  int divided = 0;     ///< places at which a chain ends because it would take too long
  int slower = 0;      ///< further chains, whose launches are faster
  std::string reason;  ///< why there is none; empty if there are some, and without Chaining
  std::string note;    ///< what a user should know; mostly empty
};

/// For tests: the times that a work-group looks for the others before it gives up, in chains built
/// from now on.
void set_chain_patience(cl::cl_uint looks);

/// The seconds that the kernel of a chain may take. Displays and phones stop kernels that take some
/// seconds, and meanwhile nothing is drawn.
double longest_chain();
std::string longest_chain_text();
/// For tests: sets it for chains built from now on.
void set_longest_chain(double seconds);
/// For tests: the seconds that every launch of a plan is said to take, and every stage of a chain;
/// 0: they are measured.
struct PretendedSeconds {
  double launch = 0, stage = 0;
};
PretendedSeconds pretended_seconds();
void pretend_seconds(const PretendedSeconds& seconds);

/// For tests: whether chains are measured on all devices and with the option "on", too; and the
/// chains, by their first run steps, that are said to be slower than their launches, as no other
/// is. None: they are timed.
struct ChainJudgement {
  bool measures = false;
  std::optional<std::set<int>> slower;
};
ChainJudgement chain_judgement();
void set_chain_judgement(ChainJudgement judgement);

class Chains {
 public:
  /// `local_bytes` and `cuts`: as plan::find_chains. `plan` must outlive it.
  /// `addresses`, too, which must have learnt all buffers before set_buffers().
  Chains(cl::Context& context, const Addresses& addresses, const plan::Plan& plan,
         const std::vector<std::size_t>& local_bytes, const plan::ChainLimits& limits,
         const std::set<int>& cuts = {});
  Chains(const Chains&) = delete;
  Chains& operator=(const Chains&) = delete;

  bool empty() const { return chains_.empty(); }
  ChainsTaken taken() const;
  /// The run steps of each chain.
  std::vector<plan::Span> spans() const;
  /// Identifies the texts of the kernels, on this device.
  std::string key() const;

  /// Builds the kernels; adds the programs to `programs`. Throws cl::BuildError and
  /// cl::OpenCLError.
  void build(store::Store& store, cl::Context::Programs& programs);

  /// Sets the kernels' arguments that are buffers: those whose `memory` is not null.
  void set_buffers(const std::function<cl::cl_mem(int buffer)>& memory);

  /// The first step of the chain that begins at a run step or behind it; SIZE_MAX: there is none.
  std::size_t next(std::size_t step) const;

  /// Enqueues the chain that begins at a run step; returns the step after it, or `step` if none
  /// begins there. Throws cl::OpenCLError.
  std::size_t launch(std::size_t step, const cl::QueueHandle& queue);

  /// Enqueues the reading of what finished() needs, after the chains of an inference.
  void ask(const cl::QueueHandle& queue);
  /// Whether no chain gave up, once the queue has finished what ask() has enqueued. Otherwise all
  /// results of the inference are wrong.
  bool finished() const { return *static_cast<const volatile cl::cl_uint*>(pinned_.data()) == 0; }

 private:
  struct Bound {
    plan::Chain chain;
    std::string text, options;
    SharedKernel kernel;
  };
  cl::Context& context_;
  const Addresses& addresses_;
  const plan::Plan& plan_;
  std::vector<Bound> chains_;
  cl::QueueHandle queue_;  // of mapping
  cl::Memory state_;       // as kernels/common/chain.cl has it
  Pinned pinned_;          // a number: whether a chain gave up
};

}  // namespace clgpu::runtime
