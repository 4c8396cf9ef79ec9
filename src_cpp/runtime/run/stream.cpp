#include "runtime/run/stream.hpp"

#include <algorithm>

#include "runtime/run/host_copy.hpp"

namespace clgpu::runtime {
namespace {

using plan::Road;
using plan::Transfer;

// Bytes that a bus transfers in the time of enqueueing one command.
constexpr std::int64_t kLittle = 1 << 18;

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

Flight::Flight(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {
  ++stream_->under_way_;
}

Flight::~Flight() {
  if (done_ != nullptr) {
    const cl::cl_event event = done_->get();
    stream_->context_->api().clWaitForEvents(1, &event);  // before its blocks are used again
  }
  land();
}

void Flight::land() {
  if (under_way_) --stream_->under_way_;
  under_way_ = false;
}

void Flight::wait() {
  if (done_ != nullptr) stream_->wait(done_);
  done_.reset();
  inputs_.clear();
  land();
}

std::shared_ptr<HostBlock> Flight::block(std::size_t output) const {
  const bool as_host = stream_->is_direct() || !converts(stream_->plan().downloads.at(output));
  const bool few = stream_->host_->in_use() <= stream_->most_lent_;
  return as_host && few ? outputs_.at(output).block : nullptr;
}

void Flight::read(std::size_t output, void* to) const {
  const Transfer& t = stream_->plan().downloads.at(output);
  const Result& result = outputs_.at(output);
  const void* from = result.block != nullptr ? result.block->data() : result.in_place;
  if (from == to) return;
  if (converts(t) && !stream_->is_direct()) {
    to_host_form(t, from, to);
  } else {
    copy_bytes(to, from, size(t.host_bytes));
  }
}

std::int64_t Flight::host_bytes(std::size_t output) const {
  return stream_->plan().downloads.at(output).host_bytes;
}

bool Stream::is_direct(const plan::Plan& plan) {
  const auto copied = [](const Transfer& t) { return t.road == Road::kCopy; };
  return !std::all_of(plan.uploads.begin(), plan.uploads.end(), copied) ||
         !std::all_of(plan.downloads.begin(), plan.downloads.end(), copied);
}

std::int64_t Stream::lane_bytes(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (const Transfer& t : plan.uploads) bytes += t.bytes;
  for (const Transfer& t : plan.downloads) bytes += t.bytes;
  return bytes < kLittle ? 0 : bytes;
}

std::shared_ptr<Stream> Stream::make(std::shared_ptr<cl::Context> context,
                                     std::shared_ptr<Executor> executor, int lanes) {
  const std::shared_ptr<Stream> stream(new Stream(std::move(context), std::move(executor), lanes));
  const plan::Plan& plan = stream->plan();
  std::size_t largest = 0;
  for (const Transfer& t : plan.uploads) largest = std::max(largest, size(t.host_bytes));
  const std::vector<std::uint8_t> zeros(stream->is_direct() ? 0 : largest);
  const std::vector<const void*> inputs(plan.uploads.size(), zeros.data());
  const std::vector<void*> outputs(plan.downloads.size(), nullptr);
  std::vector<std::shared_ptr<Flight>> flights;
  for (int i = 0; i < stream->lanes(); ++i) flights.push_back(stream->start(inputs, outputs));
  for (const auto& flight : flights) flight->wait();
  stream->executor_->forget_kept();  // zeros are no input of the application
  return stream;
}

Stream::Stream(std::shared_ptr<cl::Context> context, std::shared_ptr<Executor> executor, int lanes)
    : context_(std::move(context)),
      executor_(std::move(executor)),
      host_(std::make_shared<HostPool>(context_, !is_direct(executor_->plan()))),
      up_(context_->create_queue()),
      down_(context_->create_queue()) {
  std::int64_t set = 0;
  for (const auto* transfers : {&plan().uploads, &plan().downloads}) {
    for (const Transfer& t : *transfers) set += t.host_bytes;
  }
  most_lent_ = size(set) * static_cast<std::size_t>(3 * lanes + 4);
  if (is_direct(plan())) return;
  CLGPU_CHECK(!plan().uploads.empty() && !plan().downloads.empty());
  may_do_without_ = std::none_of(plan().uploads.begin(), plan().uploads.end(), converts) &&
                    std::none_of(plan().downloads.begin(), plan().downloads.end(), converts);
  lanes_.resize(static_cast<std::size_t>(lanes));
  const auto make = [&](const Transfer& t) {
    return context_->create_buffer(size(t.bytes),
                                   "'" + plan().buffers[size(t.buffer)].name + "' in flight");
  };
  if (lane_bytes(plan()) == 0) return;
  for (Lane& lane : lanes_) {
    for (const Transfer& t : plan().uploads) lane.inputs.push_back(make(t));
    for (const Transfer& t : plan().downloads) lane.outputs.push_back(make(t));
  }
}

Stream::~Stream() {
  // Flights hold the stream and wait in their destructors, so only the executor may still know our
  // memory.
  if (lanes_.empty()) executor_->forget_tensors();
}

std::shared_ptr<Flight> Stream::start(const std::vector<const void*>& inputs,
                                      const std::vector<void*>& outputs, bool now) {
  const std::shared_ptr<Flight> flight(new Flight(shared_from_this()));
  stage(*flight, inputs, outputs);
  if (is_direct() || (now && may_do_without_ && under_way_ == 1)) {
    run(*flight, inputs);
  } else {
    launch(*flight);
  }
  return flight;
}

// Copies or converts on the host, in parallel with other threads.
void Stream::stage(Flight& flight, const std::vector<const void*>& inputs,
                   const std::vector<void*>& outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Transfer& t = plan().uploads[i];
    const bool half = converts(t);
    if (is_direct() && t.road != Road::kHostPointer) {
      flight.inputs_.push_back(nullptr);  // the executor reads it where it is
      continue;
    }
    auto block = half ? nullptr : host_->find(inputs[i], size(t.host_bytes));
    if (block == nullptr) {
      block = host_->take(size(t.bytes));
      if (half) {
        to_device_form(t, inputs[i], block->data());
      } else {
        copy_bytes(block->data(), inputs[i], size(t.bytes));
      }
    }
    flight.inputs_.push_back(std::move(block));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Transfer& t = plan().downloads[i];
    if (is_direct() && t.road != Road::kHostPointer && outputs[i] != nullptr) {
      flight.outputs_.push_back({nullptr, outputs[i]});
      continue;
    }
    const std::size_t bytes = size(is_direct() ? t.host_bytes : t.bytes);
    auto block = outputs[i] == nullptr ? nullptr : host_->find(outputs[i], bytes);
    if (block == nullptr) block = host_->take(bytes);
    flight.outputs_.push_back({std::move(block), nullptr});
  }
}

void Stream::run(Flight& flight, const std::vector<const void*>& inputs) {
  std::vector<const void*> sources = inputs;
  std::vector<void*> targets;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (flight.inputs_[i] != nullptr) sources[i] = flight.inputs_[i]->data();
  }
  for (const Flight::Result& result : flight.outputs_)
    targets.push_back(result.block != nullptr ? result.block->data() : result.in_place);
  executor_->run(sources, targets);
}

void Stream::launch(Flight& flight) {
  const std::lock_guard<std::mutex> lock(order_);
  Lane& lane = lanes_[next_];
  if (lane.done != nullptr) {
    const cl::cl_event taken = lane.done->get();
    context_->api().clWaitForEvents(1, &taken);  // its own flight reports whether it failed
    lane.done.reset();
  }
  try {
    if (lane.outputs.empty()) {
      hop(flight, lane);
    } else {
      fly(flight, lane);
    }
  } catch (...) {
    // The enqueued commands still use the blocks and the lane.
    executor_->settle();
    const cl::Api& api = context_->api();
    for (const cl::QueueHandle* queue : {&up_, &down_}) {
      api.clFlush(queue->get());
      api.clFinish(queue->get());
    }
    throw;
  }
  next_ = (next_ + 1) % lanes_.size();
}

// Queues are in order: the event of the last command covers those before it.
void Stream::fly(Flight& flight, Lane& lane) {
  const cl::Api& api = context_->api();
  // Created before anything is enqueued, so that every command in flight has an owner.
  const auto landed = std::make_shared<cl::EventHandle>();
  std::vector<cl::cl_mem> inputs, outputs;
  for (const cl::Memory& input : lane.inputs) inputs.push_back(input.get());
  for (const cl::Memory& output : lane.outputs) outputs.push_back(output.get());
  cl::cl_event up = nullptr, down = nullptr;
  const std::size_t last_input = lane.inputs.size() - 1, last_output = lane.outputs.size() - 1;
  for (std::size_t i = 0; i <= last_input; ++i) {
    const Transfer& t = plan().uploads[i];
    cl::check(api.clEnqueueWriteBuffer(up_.get(), inputs[i], cl::CL_FALSE, 0, size(t.bytes),
                                       flight.inputs_[i]->data(), 0, nullptr,
                                       i == last_input ? &up : nullptr),
              "clEnqueueWriteBuffer", plan().buffers[size(t.buffer)].name);
    cl::counters().bytes_up += size(t.bytes);
  }
  const cl::EventHandle uploaded(api, up);
  cl::check(api.clFlush(up_.get()), "clFlush", "the queue of uploads");
  const cl::EventHandle computed = executor_->enqueue(inputs, outputs, up);
  const cl::cl_event ready = computed.get();
  for (std::size_t i = 0; i <= last_output; ++i) {
    const Transfer& t = plan().downloads[i];
    cl::check(
        api.clEnqueueReadBuffer(down_.get(), outputs[i], cl::CL_FALSE, 0, size(t.bytes),
                                flight.outputs_[i].block->data(), i == 0 ? 1 : 0,
                                i == 0 ? &ready : nullptr, i == last_output ? &down : nullptr),
        "clEnqueueReadBuffer", plan().buffers[size(t.buffer)].name);
    cl::counters().bytes_down += size(t.bytes);
  }
  *landed = cl::EventHandle(api, down);
  cl::check(api.clFlush(down_.get()), "clFlush", "the queue of downloads");
  lane.done = flight.done_ = landed;
}

void Stream::hop(Flight& flight, Lane& lane) {
  const auto landed = std::make_shared<cl::EventHandle>();
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (const auto& block : flight.inputs_) sources.push_back(block->data());
  for (const Flight::Result& result : flight.outputs_) targets.push_back(result.block->data());
  *landed = executor_->enqueue(sources, targets);
  lane.done = flight.done_ = landed;
}

void Stream::wait(const std::shared_ptr<const cl::EventHandle>& event) const {
  const cl::cl_event done = event->get();
  const cl::cl_int code = context_->api().clWaitForEvents(1, &done);
  if (code != cl::CL_SUCCESS) executor_->forget_kept();
  cl::check(code, "clWaitForEvents", "an inference in flight");
}

}  // namespace clgpu::runtime
