#include "runtime/run/executor.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/finally.hpp"
#include "base/half.hpp"
#include "base/index.hpp"
#include "kernel/macros.hpp"
#include "kernel/sources.hpp"
#include "plan/arena/peak.hpp"
#include "plan/lasting.hpp"
#include "plan/operands.hpp"
#include "runtime/run/constant_bytes.hpp"
#include "runtime/run/programs.hpp"

namespace clgpu::runtime {
namespace {

using plan::Buffer;

std::string triple(const std::array<std::size_t, 3>& v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

// Launch properties for which PoCL compiles a kernel again: work-group sizes, and index ranges
// beyond 16 bits.
std::string variant(const kernel::Launch& launch) {
  const bool wide = *std::max_element(launch.global.begin(), launch.global.end()) > 0xFFFF;
  return triple(launch.local) + (wide ? " wide" : "");
}

std::string describe(const plan::Step& step) {
  return step.launch.file + ":" + step.launch.entry + " global=" + triple(step.launch.global) +
         " local=" + triple(step.launch.local) + " for " + step.op + " (node " +
         std::to_string(step.node) + ")";
}

// Attributes a failure of a launch to its candidate, unless memory is short: drivers that allocate
// late report that at the first use.
[[noreturn]] void fail(const plan::Step& step, const cl::OpenCLError& error) {
  if (error.out_of_memory()) throw error;
  throw CandidateFailure(step.family, step.candidate, {error.what()});
}

// Calls `attempt` a second time if the cause of its failure may be temporary.
template <class Attempt>
auto twice(Attempt attempt) {
  try {
    return attempt();
  } catch (const cl::OpenCLError& error) {
    if (error.out_of_memory() || !error.may_pass()) throw;
  }
  return attempt();
}

// Reduces the work-group to the limit of the kernel, unless the kernel depends on the size.
void fit_group(plan::Step& step, std::size_t limit) {
  kernel::Launch& launch = step.launch;
  const std::size_t items = kernel::group_items(launch);
  if (items <= limit) return;
  if (!kernel::any_work_group(launch.file, launch.entry)) {
    throw CandidateFailure(
        step.family, step.candidate,
        {launch.file + ":" + launch.entry + " needs work-groups of " + std::to_string(items) +
             " work-items; this kernel allows " + std::to_string(limit),
         limit});
  }
  kernel::divide_groups(launch, limit, {SIZE_MAX, SIZE_MAX, SIZE_MAX});
}

cl::cl_mem memory_of(const std::shared_ptr<cl::Memory>& memory) {
  return memory == nullptr ? nullptr : memory->get();
}

// Queues with profiling are slower, even without events.
class QueueOf {
 public:
  QueueOf(const Recording* recording, cl::QueueHandle& usual, cl::QueueHandle& profiling)
      : swaps_(recording != nullptr), usual_(usual), profiling_(profiling) {
    if (swaps_) std::swap(usual_, profiling_);
  }
  ~QueueOf() {
    if (swaps_) std::swap(usual_, profiling_);
  }
  QueueOf(const QueueOf&) = delete;
  QueueOf& operator=(const QueueOf&) = delete;

 private:
  const bool swaps_;
  cl::QueueHandle &usual_, &profiling_;
};

}  // namespace

Executor::Executor(std::shared_ptr<cl::Context> context, std::shared_ptr<store::Store> store,
                   plan::Plan plan, bool warm_up, std::shared_ptr<Pool> pool, bool record,
                   const std::optional<Chaining>& chaining, bool bundles, Listing listing,
                   std::shared_ptr<CarriedSet> carried, std::shared_ptr<Weights> weights,
                   GraphRunners runners)
    : context_(std::move(context)),
      store_(std::move(store)),
      plan_(std::move(plan)),
      queue_(context_->create_queue()),
      flusher_(*context_),
      carried_(std::move(carried)),
      weights_(std::move(weights)),
      runners_(std::move(runners)),
      images_(*context_),
      transfers_(
          *context_, queue_, plan_, [this](int buffer) { return memory(buffer); },
          [this](cl::cl_mem object) {
            images_.forget(object);
            if (!list_replaces_) forget_list();
          },
          stale_) {
  try {
    make_all(warm_up, std::move(pool), record, chaining, bundles, listing);
  } catch (const CandidateFailure&) {
    abandon_run();
    if (arena_ != nullptr) arena_->on_parting(nullptr);
    keep_programs();
    throw;
  } catch (...) {
    abandon_run();  // the destructor will not run
    if (arena_ != nullptr) arena_->on_parting(nullptr);
    throw;
  }
}

// A later process tries the candidate again, unless it has ended a process, and builds the same
// programs. The failure tells more than an error here.
void Executor::keep_programs() noexcept {
  try {
    save_programs();
  } catch (const std::exception&) {  // too little memory: they are compiled again
  }
}

void Executor::make_all(bool warm_up, std::shared_ptr<Pool> pool, bool record,
                        const std::optional<Chaining>& chaining, bool bundles, Listing listing) {
  if (!plan_.moves.empty())
    mover_ = std::make_unique<Mover>(*context_, plan_, record, [this](int b) { return memory(b); });
  // With the option chain=off, launches are as the plan has them.
  addresses_ = std::make_unique<Addresses>(*context_, *store_, programs_, bundles);
  run_load_steps();
  allocate_rest();
  offer_shared();
  provide_carried();
  arena_ = std::make_unique<Lease>(
      pool != nullptr && !plan_.poison ? std::move(pool) : std::make_shared<Pool>(context_), plan_);
  if (listing != Listing::kNever) arena_->on_parting([this] { forget_list(); });
  const auto turn = take_turn();
  stale_ = false;  // bind() sets the objects of each kernel
  if (plan_.poison) poison_arena();
  learn_addresses();
  launches_.reserve(plan_.run.size());
  for (plan::Step& step : plan_.run)
    launches_.push_back(bind(step, plan::lasting_arguments(plan_, step)));
  if (record) {
    recorder_ = std::make_shared<Recorder>(context_->api(), plan_);
    finish("load");  // inferences run on another queue, which does not wait for this one
    recording_queue_ = context_->create_queue(/*profiling=*/true);
  }
  without_traces([&] {
    warm_up_kernels(warm_up);
    sources_.clear();
    first_launches_.clear();
    if (bundles && !record) make_bundles(warm_up);
    if (chaining && !record) make_chains(*chaining, warm_up);
    if (listing != Listing::kNever && !record) make_list(listing, warm_up);
  });
}

Executor::~Executor() {
  if (arena_ != nullptr) {
    arena_->settle();
    arena_->on_parting(nullptr);
  }
  finish_all();  // buffers must outlive the commands in the queue
  if (recorder_ != nullptr) recorder_->settle();
}

void Executor::allocate_rest() {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Buffer::Place place = plan_.buffers[i].place;
    const bool stays = place == Buffer::Place::kWeights || place == Buffer::Place::kKept;
    if (stays && !buffers_[i]) allocate(static_cast<int>(i));
  }
}

void Executor::provide_carried() {
  for (const plan::Carry& c : plan_.carries) {
    const plan::Buffer& buffer = plan_.buffers[uz(c.buffer)];
    CLGPU_CHECK(carried_ != nullptr);
    carried_->provide(buffer.carried, c.form);
  }
}

std::vector<int> Executor::carried_numbers() const {
  std::vector<int> numbers;
  for (const plan::Carry& c : plan_.carries) numbers.push_back(plan_.buffers[uz(c.buffer)].carried);
  return numbers;
}

void Executor::without_traces(const std::function<void()>& launching) {
  const Finally forget([this] { forget_kept(); });
  if (plan_.carries.empty()) return launching();
  const auto turn = carried_->take_turn();
  CarriedSet::Aside aside(*carried_, carried_numbers(), queue_);
  try {
    launching();
  } catch (...) {
    finish_all();
    try {
      aside.put_back();
    } catch (const cl::OpenCLError&) {
      // The first error tells more.
    }
    throw;
  }
  finish_all();
  aside.put_back();
}

// Values that no kernel has updated in place. Until here an inference that fails has changed none
// of them.
void Executor::carry_on() {
  bool any = false;
  for (const plan::Carry& c : plan_.carries) {
    if (c.result == c.buffer || c.form.bytes() == 0) continue;
    const std::string& name = plan_.buffers[uz(c.buffer)].name;
    const cl::cl_int code =
        context_->api().clEnqueueCopyBuffer(queue_.get(), memory(c.result), memory(c.buffer), 0, 0,
                                            c.form.bytes(), 0, nullptr, nullptr);
    // The inference must not be repeated with what is left.
    if (code != cl::CL_SUCCESS && any) {
      throw Error("the carried tensor '" + name +
                  "' has its old value, and others have the next "
                  "one: clEnqueueCopyBuffer failed with " +
                  cl::error_name(code) +
                  "; clear them or write their values before the next inference");
    }
    cl::check(code, "clEnqueueCopyBuffer", name);
    any = true;
  }
  if (any) finish("carried tensors");
}

void Executor::allocate(int index) {
  const Buffer& buffer = plan_.buffers[uz(index)];
  buffers_[uz(index)] = std::make_shared<cl::Memory>(
      context_->create_buffer(static_cast<std::size_t>(buffer.bytes), "'" + buffer.name + "'"));
  upload_constant(index);
}

cl::cl_mem Executor::memory(int buffer) const {
  if (const cl::cl_mem object = transfers_.object(buffer); object != nullptr) return object;
  const Buffer& planned = plan_.buffers[uz(buffer)];
  if (planned.place == Buffer::Place::kCarried) return carried_->memory(planned.carried);
  return planned.place == Buffer::Place::kArena ? arena_->memory(buffer)
                                                : memory_of(buffers_[uz(buffer)]);
}

cl::cl_mem Executor::image(int buffer, DType texel) {
  const Buffer& planned = plan_.buffers[uz(buffer)];
  const bool in_arena = planned.place == Buffer::Place::kArena;
  if (in_arena && transfers_.object(buffer) == nullptr) return arena_->image(buffer, texel);
  return images_.over(memory(buffer), planned, texel);
}

void Executor::write(int buffer, const void* data, std::size_t bytes, bool blocking,
                     std::size_t to) {
  cl::check(context_->api().clEnqueueWriteBuffer(queue_.get(), memory(buffer),
                                                 blocking ? cl::CL_TRUE : cl::CL_FALSE, to, bytes,
                                                 data, 0, nullptr, nullptr),
            "clEnqueueWriteBuffer", plan_.buffers[uz(buffer)].name);
  cl::counters().bytes_up += bytes;
}

void Executor::poison_arena() {
  for (std::size_t i = 0; i < plan_.objects.size(); ++i) {
    // All bits set: NaN as float and as half, -1 as an integer.
    const std::vector<std::uint8_t> ones(static_cast<std::size_t>(plan_.objects[i]), 0xFF);
    cl::check(context_->api().clEnqueueWriteBuffer(queue_.get(), arena_->object(i), cl::CL_TRUE, 0,
                                                   ones.size(), ones.data(), 0, nullptr, nullptr),
              "clEnqueueWriteBuffer", "the arena");
  }
}

void Executor::upload_constant(int index) {
  Buffer& buffer = plan_.buffers[uz(index)];
  if (buffer.upload == nullptr) return;
  const auto bytes = static_cast<std::size_t>(buffer.bytes);
  if (is_stored_as(*buffer.upload, buffer.storage)) {
    CLGPU_CHECK(buffer.upload->bytes >= bytes);
    write(index, buffer.upload->data, bytes, true);
  } else {
    // By pieces: the host never has the whole constant a second time.
    constexpr std::size_t kPiece = 4 << 20;
    const std::size_t size = size_of(buffer.storage);
    std::vector<std::uint8_t> piece(std::min(bytes, kPiece));
    for (std::size_t at = 0; at < bytes; at += piece.size()) {
      const std::size_t part = std::min(piece.size(), bytes - at);
      store(*buffer.upload, buffer.storage, at / size, part / size, piece.data());
      write(index, piece.data(), part, true, at);
    }
  }
  buffer.upload = nullptr;  // a decoded constant (DENSIFY) is freed on the host
}

Executor::BoundLaunch Executor::bind(plan::Step& step, const std::vector<int>& addresses) {
  if (step.launch.runs_graphs) {
    CLGPU_CHECK(runners_.count(step.position) > 0);
    return {{}, &step};
  }
  try {
    return twice([&] { return try_bind(step, addresses); });
  } catch (const InternalError&) {
    throw;
  } catch (const CandidateFailure&) {
    throw;
  } catch (const cl::OpenCLError& error) {
    fail(step, error);
  } catch (const Error& error) {
    throw CandidateFailure(step.family, step.candidate, {error.what()});
  }
}

// The buffers of all run steps whose objects stay the same.
void Executor::learn_addresses() {
  if (!addresses_->work()) return;
  std::set<cl::cl_mem> objects;
  for (const plan::Step& step : plan_.run) {
    for (const int buffer : step.buffers) {
      if (!plan::is_lasting(plan_, buffer)) continue;
      const cl::cl_mem object = memory(buffer);
      CLGPU_CHECK(object != nullptr);
      objects.insert(object);
    }
  }
  addresses_->learn({objects.begin(), objects.end()});
}

Executor::BoundLaunch Executor::try_bind(plan::Step& step, const std::vector<int>& addresses) {
  const cl::Api& api = context_->api();
  const kernel::Launch& launch = step.launch;
  std::string& source = sources_[kernel::text_key(launch)];
  if (source.empty()) source = kernel::text_of(launch);
  const std::string options = build_options(launch);
  kernel::check_macros(launch.file, options);
  std::optional<cl::FirstLaunch> first_launch;
  BoundLaunch bound{{}, &step, addresses};
  bound.kernel =
      addresses_->create_kernel({launch.file, source, options}, launch.entry, variant(launch),
                                *store_, programs_, &first_launch, bound.addresses);
  if (first_launch) first_launches_.emplace(&step, std::move(*first_launch));
  fit_group(step, context_->max_work_group_size(bound.kernel));
  set_buffers(bound);
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const auto set = [&](std::size_t size, const void* value) {
      cl::check(api.clSetKernelArg(bound.kernel.get(), static_cast<cl::cl_uint>(i), size, value),
                "clSetKernelArg", "argument " + std::to_string(i) + " of " + launch.entry);
    };
    const kernel::Arg& arg = launch.args[i];
    if (const auto* number = std::get_if<std::int32_t>(&arg)) {
      set(sizeof *number, number);
    } else if (const auto* real = std::get_if<float>(&arg)) {
      set(sizeof *real, real);
    } else if (const auto* local = std::get_if<kernel::LocalMemory>(&arg)) {
      set(local->bytes, nullptr);
    }
  }
  bound.must_try = context_->local_bytes(bound.kernel) > context_->device().info.local_bytes;
  return bound;
}

void Executor::set_buffers(const BoundLaunch& bound) {
  if (bound.runs_graphs()) return;
  const kernel::Launch& launch = bound.step->launch;
  std::size_t next = 0;
  for (std::size_t i = 0; i < launch.args.size(); ++i) {
    const auto* operand = std::get_if<kernel::Operand>(&launch.args[i]);
    if (operand == nullptr) continue;
    const int buffer = bound.step->buffers[next++];
    cl::cl_mem object = memory(buffer);
    if (object == nullptr) continue;  // the runtime's memory, which is not known yet
    const std::string which = "'" + plan_.buffers[uz(buffer)].name + "' of " + launch.entry;
    if (operand->image) object = image(buffer, *operand->image);
    addresses_->set(bound.kernel, bound.addresses, i, object, which);
  }
}

// Meanwhile other executors may have had objects replaced by larger ones.
std::unique_lock<std::mutex> Executor::take_turn() {
  std::unique_lock<std::mutex> turn = arena_->take_turn();
  arena_->refresh(stale_);
  return turn;
}

void Executor::give_buffers() {
  steady_ = !stale_ && !transfers_.has_changed();
  if (steady_) return;
  if (!list_replaces_) forget_list();
  const bool all = stale_;
  if (all) learn_addresses();
  for (const BoundLaunch& bound : launches_) {
    if (all || uses_changed(bound)) set_buffers(bound);
  }
  const auto changed = [&](int buffer) {
    return all || transfers_.has_changed(buffer) ? memory(buffer) : nullptr;
  };
  if (bundles_ != nullptr) bundles_->set_buffers(changed);
  if (chains_ != nullptr) chains_->set_buffers(changed);
  transfers_.given();
  stale_ = false;
}

bool Executor::uses_changed(const BoundLaunch& bound) const {
  const std::vector<int>& buffers = bound.step->buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](int buffer) { return transfers_.has_changed(buffer); });
}

void Executor::forget_tensors() {
  const std::lock_guard<std::mutex> lock(busy_);
  transfers_.forget();
}

void Executor::launch(const BoundLaunch& bound) { launch(bound, queue_, nullptr); }

void Executor::launch(const BoundLaunch& bound, const cl::QueueHandle& queue, cl::cl_event* event) {
  const kernel::Launch& launch = bound.step->launch;
  if (bound.runs_graphs()) {  // its time is unknown: a command without work
    if (event != nullptr)
      cl::check(context_->api().clEnqueueMarkerWithWaitList(queue.get(), 0, nullptr, event),
                "clEnqueueMarkerWithWaitList", describe(*bound.step));
    return;
  }
  const cl::cl_int code = context_->api().clEnqueueNDRangeKernel(
      queue.get(), bound.kernel.get(), 3, nullptr, launch.global.data(), launch.local.data(), 0,
      nullptr, event);
  if (code != cl::CL_SUCCESS)
    throw cl::OpenCLError("clEnqueueNDRangeKernel", code, describe(*bound.step));
  ++cl::counters().launches;
  flusher_.launched(queue);
}

// Whether the predicate of a step lets it run.
bool Executor::is_due(const plan::Step& step) {
  if (!step.launch.predicated) return true;
  const int buffer = step.buffers.at(0);
  const std::size_t size = size_of(plan_.buffers[uz(buffer)].storage);
  const auto element = static_cast<std::size_t>(std::get<std::int32_t>(step.launch.args.at(1)));
  std::vector<char> value(size);
  cl::check(
      context_->api().clEnqueueReadBuffer(queue_.get(), memory(buffer), cl::CL_TRUE, element * size,
                                          size, value.data(), 0, nullptr, nullptr),
      "clEnqueueReadBuffer", plan_.buffers[uz(buffer)].name);
  // As kernels compare: -0.0 is 0.
  const DType storage = plan_.buffers[uz(buffer)].storage;
  if (is_float(storage)) value.back() &= 0x7F;
  return std::any_of(value.begin(), value.end(), [](char byte) { return byte != 0; });
}

void Executor::run_graphs(const BoundLaunch& bound) {
  if (!is_due(*bound.step)) return;
  std::vector<cl::cl_mem> inputs, outputs;
  plan::for_operands(*bound.step, [&](int buffer, const kernel::Operand& operand) {
    if (operand.kind == kernel::Operand::Kind::kPredicate) return;
    (operand.writes ? outputs : inputs).push_back(memory(buffer));
  });
  runners_.at(bound.step->position)->run(queue_, inputs, outputs);
}

void Executor::launch_all(Recording* recording, bool runs_graphs) {
  remind();
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    if (mover_ != nullptr)
      mover_->before(static_cast<int>(i), queue_, mover_->queue(recording), recording);
    if (runs_graphs && launches_[i].runs_graphs()) {
      if (recording != nullptr) {
        finish("launches before graphs");
        recording->begin_launch(i);
      }
      run_graphs(launches_[i]);
      if (recording != nullptr) recording->end_on_host();
    } else if (recording == nullptr) {
      i = launch_bundle(i) - 1;
    } else {
      launch(launches_[i], queue_, recording->begin_launch(i));
      recording->end(context_->api());
    }
  }
  if (mover_ != nullptr)
    mover_->before(static_cast<int>(launches_.size()), queue_, mover_->queue(recording), recording);
}

// Of a step that is in none, or in one beyond `end`, the launch of the step. Returns the step after
// it.
std::size_t Executor::launch_bundle(std::size_t step, std::size_t end) {
  const std::size_t next = bundles_ == nullptr ? step : bundles_->launch(step, queue_, end);
  if (next == step) {
    launch(launches_[step]);
    return step + 1;
  }
  flusher_.launched(queue_);
  return next;
}

// An inference that ends early leaves what it has changed; then zeros are written before the next.
void Executor::remind() {
  const int state = plan_.reuse.state;
  if (state < 0 || remembers_.exchange(true)) return;
  const std::vector<std::uint8_t> zeros(uz(plan_.buffers[uz(state)].bytes));
  try {
    write(state, zeros.data(), zeros.size(), true);
  } catch (...) {
    forget_kept();
    throw;
  }
}

Executor::Reused Executor::reused() {
  const std::lock_guard<std::mutex> lock(busy_);
  const int state = plan_.reuse.state;
  if (state < 0) return {};
  std::array<std::int64_t, 4> values{};
  cl::check(context_->api().clEnqueueReadBuffer(queue_.get(), memory(state), cl::CL_TRUE, 0,
                                                sizeof values, values.data(), 0, nullptr, nullptr),
            "clEnqueueReadBuffer", plan_.buffers[uz(state)].name);
  return {values[1],
          values[3] > 0 ? static_cast<double>(values[2]) / static_cast<double>(values[3]) : 0};
}

void Executor::finish(const char* where) {
  cl::check(context_->api().clFinish(queue_.get()), "clFinish", where);
}

// Memory is allocated at the first launch that needs it, and freed after the last one unless an
// inference needs it, so that weights are never on the device twice; recently used memory is also
// faster.
void Executor::run_load_steps() {
  buffers_.resize(plan_.buffers.size());
  const std::vector<bool> needed = take_shared();
  const std::vector<plan::LoadStep> schedule = plan::load_schedule(plan_);
  for (std::size_t i = 0; i < plan_.load.size(); ++i) {
    plan::Step& step = plan_.load[i];
    if (needed[i]) {
      for (const int buffer : step.buffers) {
        if (buffers_[uz(buffer)] == nullptr) allocate(buffer);
      }
      const BoundLaunch bound = bind(step);
      try_launch(bound, "load");
    }
    for (const int buffer : schedule[i].free) {
      if (buffers_[uz(buffer)] == nullptr) continue;
      if (mover_ != nullptr) mover_->keep(buffer, queue_);
      images_.forget(buffers_[uz(buffer)]->get());
      buffers_[uz(buffer)] = nullptr;
    }
  }
}

// Weights that executors of other graphs have; returns which load steps compute the others.
std::vector<bool> Executor::take_shared() {
  if (weights_ == nullptr) return std::vector<bool>(plan_.load.size(), true);
  keys_ = weight_keys(plan_);
  std::vector<bool> there(plan_.buffers.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].empty()) continue;
    buffers_[i] = weights_->find(keys_[i]);
    there[i] = buffers_[i] != nullptr;
    if (there[i]) plan_.buffers[i].upload = nullptr;
  }
  return needed_load_steps(plan_, there);
}

// When all of them are on the device.
void Executor::offer_shared() {
  if (keys_.empty()) return;
  finish("weights");
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (!keys_[i].empty() && buffers_[i] != nullptr) weights_->add(keys_[i], buffers_[i]);
  }
  // Of constants that nobody has needed.
  for (plan::Buffer& buffer : plan_.buffers) buffer.upload = nullptr;
}

// Repeating the launch does not change its results: no load-time or warm-up launch reads what it
// writes.
void Executor::try_launch(const BoundLaunch& bound, const char* where) {
  try {
    const auto first = first_launches_.find(bound.step);
    const bool is_first = first != first_launches_.end();
    const store::Attempt attempt =
        is_first ? store::Attempt(*store_, first->second.risk) : store::Attempt();
    twice([&] {
      launch(bound);
      finish(where);
    });
    if (is_first) context_->has_launched(first->second);
  } catch (const cl::OpenCLError& error) {
    fail(*bound.step, error);
  } catch (const store::LeftOut& error) {
    throw CandidateFailure(bound.step->family, bound.step->candidate, {error.what()});
  }
}

void Executor::warm_up_kernels(bool all) {
  const auto due = [&](const BoundLaunch& bound) {
    return !bound.runs_graphs() && (all || bound.must_try);
  };
  if (std::none_of(launches_.begin(), launches_.end(), due)) return;
  transfers_.stand_in();
  give_buffers();
  // Kernels that differ in what is an address may be different programs.
  std::set<std::tuple<std::string, std::string, std::string, std::vector<int>>> seen;
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    const BoundLaunch& bound = launches_[i];
    if (!due(bound)) continue;
    const kernel::Launch& l = bound.step->launch;
    const bool is_new =
        seen.emplace(l.file + ":" + l.entry, build_options(l), variant(l), bound.addresses).second;
    if (!is_new) continue;
    for (const std::size_t writer : scratch_writers(i)) try_launch(launches_[writer], "warm-up");
    try_launch(bound, "warm-up");
  }
  transfers_.forget();
}

// The earlier launches of the same node that write what a launch reads of its scratch memory in the
// arena, in their order. A launch may trust it, tables of indices for example, and other kernels
// have used that memory since.
std::vector<std::size_t> Executor::scratch_writers(std::size_t launch) const {
  std::set<int> wanted;
  const auto visit = [&](std::size_t at, bool writes, auto use) {
    plan::for_operands(*launches_[at].step, [&](int buffer, const kernel::Operand& operand) {
      const Buffer& memory = plan_.buffers[uz(buffer)];
      if (memory.scratch && memory.place == Buffer::Place::kArena &&
          (writes ? operand.writes : operand.reads))
        use(buffer);
    });
  };
  const auto want = [&](int buffer) { wanted.insert(buffer); };
  visit(launch, false, want);
  std::vector<std::size_t> writers;
  for (std::size_t at = launch; at-- > 0 && !wanted.empty();) {
    if (launches_[at].step->node != launches_[launch].step->node) break;
    bool writes = false;
    visit(at, true, [&](int buffer) { writes = writes || wanted.count(buffer) > 0; });
    if (!writes) continue;
    writers.insert(writers.begin(), at);
    visit(at, false, want);
  }
  return writers;
}

void Executor::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  run(inputs, outputs, {});
}

cl::EventHandle Executor::run(const std::vector<const void*>& inputs,
                              const std::vector<void*>& outputs, const Lent& lent) {
  const std::lock_guard<std::mutex> lock(busy_);
  const auto turn = take_turn();
  const auto carrying =
      plan_.carries.empty() ? std::unique_lock<std::mutex>() : carried_->take_turn();
  Recording* const recording = recorder_ == nullptr ? nullptr : recorder_->begin();
  const QueueOf queue(recording, queue_, recording_queue_);
  const bool flies = lent.may_fly && recorder_ == nullptr && mover_ == nullptr &&
                     plan_.carries.empty() && runners_.empty() &&
                     lent.buffers.size() == inputs.size() + outputs.size() &&
                     std::count(lent.buffers.begin(), lent.buffers.end(), nullptr) == 0;
  try {
    transfers_.lend(lent.buffers);
    transfers_.attach(inputs, outputs);
    give_buffers();
    if (flies) arena_->leave_in_flight([this] { finish_all(); });
    if (!lent.ready.empty()) mark(lent.ready);
    // Whether a chain gave up is known only after the end. Then the inputs must be as they were,
    // and nobody may wait for the device: an event of the application may depend on another
    // inference.
    const bool chained = chains_ != nullptr && recording == nullptr && !flies &&
                         lent.ready.empty() && plan_.repeats && !overlap(inputs, outputs, lent);
    if (!plan_.carries.empty()) carried_->touch(carried_numbers());
    transfers_.up(inputs, recording);
    const auto alone = chained ? context_->whole_device() : std::unique_lock<std::mutex>();
    // Commands of a list do not keep lent buffers alive.
    std::vector<double> seconds;  // of chains; the first inference may compile them
    if (chained && untimed_ > 0 && --untimed_ == 0) seconds.resize(launches_.size());
    if (chained) {
      launch_chained(seconds.empty() ? nullptr : &seconds);
    } else if (recording == nullptr && !flies && has_list()) {
      launch_listed(false);
    } else {
      launch_all(recording, /*runs_graphs=*/true);
    }
    transfers_.down(outputs, recording, !flies);
    if (chained && !chains_->finished()) {
      leave_chains(ChainVerdict::kWaited);
      transfers_.up(inputs);
      launch_all();
      transfers_.down(outputs);
    } else if (!seconds.empty()) {
      leave_long_chains(seconds);
    }
    carry_on();
    if (flies) {
      cl::EventHandle done = mark({});
      // Other queues can wait only for commands that were flushed.
      cl::check(context_->api().clFlush(queue_.get()), "clFlush", "the queue of launches");
      return done;
    }
    if (mover_ != nullptr) mover_->release_events(recording);
    if (recording != nullptr) recorder_->keep();
  } catch (...) {
    abandon_run();
    if (recording != nullptr) recorder_->drop();
    throw;
  }
  return {};
}

void Executor::return_lent() {
  const std::lock_guard<std::mutex> lock(busy_);
  transfers_.lend({});
}

// The queue is in order: commands that follow wait for `events`, too.
cl::EventHandle Executor::mark(const std::vector<cl::cl_event>& events) {
  const cl::Api& api = context_->api();
  cl::cl_event done = nullptr;
  cl::check(api.clEnqueueMarkerWithWaitList(queue_.get(), static_cast<cl::cl_uint>(events.size()),
                                            events.empty() ? nullptr : events.data(), &done),
            "clEnqueueMarkerWithWaitList", "the queue of launches");
  return {api, done};
}

// The enqueued commands still read and write the caller's memory. The next run sets up all
// transfers again, wherever this one has stopped.
void Executor::abandon_run() noexcept {
  forget_kept();
  finish_all();
  transfers_.forget();
}

}  // namespace clgpu::runtime
