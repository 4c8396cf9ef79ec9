#include "runtime/run/command_list.hpp"

#include <algorithm>

#include "cl/extensions.hpp"

namespace clgpu::runtime {
namespace {

// One for the whole list, with cl_khr_command_buffer.
class CommandBuffer : public CommandList {
 public:
  CommandBuffer(const cl::CommandBufferApi& api, const cl::QueueHandle& queue)
      : api_(api), queue_(queue) {}
  ~CommandBuffer() override { forget(); }

  const char* extension() const override { return "cl_khr_command_buffer"; }
  const char* start_call() const override { return "clEnqueueCommandBufferKHR"; }
  bool replaces_arguments() const override { return false; }
  bool may_overlap() const override { return api_.may_overlap; }
  bool is_recorded() const override { return is_final_; }

  void record(const std::vector<Launch>& launches, const std::vector<Argument>&) override {
    forget();
    const cl::cl_ulong properties[] = {cl::CL_COMMAND_BUFFER_FLAGS_KHR,
                                       cl::CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
    const cl::cl_command_queue queue = queue_.get();
    cl::cl_int code = cl::CL_SUCCESS;
    object_ = api_.clCreateCommandBufferKHR(1, &queue, api_.simultaneous_use ? properties : nullptr,
                                            &code);
    cl::check(code, "clCreateCommandBufferKHR", "the command list");
    ++cl::counters().objects_created;
    for (const Launch& launch : launches) {
      cl::check(
          api_.clCommandNDRangeKernelKHR(object_, nullptr, nullptr, launch.kernel, 3, nullptr,
                                         launch.global, launch.local, 0, nullptr, nullptr, nullptr),
          "clCommandNDRangeKernelKHR", "the command list");
    }
    cl::check(api_.clFinalizeCommandBufferKHR(object_), "clFinalizeCommandBufferKHR",
              "the command list");
    launches_ = launches.size();
    is_final_ = true;
  }

  void forget() noexcept override {
    if (object_ != nullptr && !cl::is_forked_child()) api_.clReleaseCommandBufferKHR(object_);
    object_ = nullptr;
    is_final_ = false;
  }

  std::size_t start(const std::vector<Argument>&, cl::Flusher& flusher, cl::cl_int& code) override {
    code = api_.clEnqueueCommandBufferKHR(0, nullptr, object_, 0, nullptr, nullptr);
    if (code != cl::CL_SUCCESS) return 0;
    ++cl::counters().launches;
    flusher.launched(queue_, static_cast<int>(launches_));
    return launches_;
  }

 private:
  const cl::CommandBufferApi api_;
  const cl::QueueHandle& queue_;
  cl::cl_command_buffer object_ = nullptr;
  std::size_t launches_ = 0;
  bool is_final_ = false;
};

// As many as their greatest length requires, with cl_qcom_recordable_queues. Adreno's driver checks
// that the arguments recorded exist, so those that change are recorded as null.
class Recordings : public CommandList {
 public:
  Recordings(cl::Context& context, const cl::RecordingApi& api, const cl::QueueHandle& queue)
      : context_(context),
        api_(api),
        queue_(queue),
        recordable_queue_(context.create_recordable_queue()) {}
  ~Recordings() override { forget(); }

  const char* extension() const override { return "cl_qcom_recordable_queues"; }
  const char* start_call() const override { return "clEnqueueRecordingQCOM"; }
  bool replaces_arguments() const override { return true; }
  bool may_overlap() const override { return true; }
  bool is_recorded() const override { return is_whole_; }

  void record(const std::vector<Launch>& launches, const std::vector<Argument>& replaced) override {
    forget();
    const cl::Api& api = context_.api();
    for (const Argument& argument : replaced) {
      cl::check(api.clSetKernelArg(launches[argument.launch].kernel, argument.index,
                                   sizeof argument.object, nullptr),
                "clSetKernelArg", "the command list");
    }
    updates_.reserve(replaced.size());
    parts_.reserve(launches.size() / api_.most_launches + 1);
    for (std::size_t first = 0; first < launches.size(); first += api_.most_launches) {
      const std::size_t last = std::min(launches.size(), first + api_.most_launches);
      cl::cl_int code = cl::CL_SUCCESS;
      const cl::cl_recording object = api_.clNewRecordingQCOM(recordable_queue_.get(), &code);
      cl::check(code, "clNewRecordingQCOM", "the command list");
      parts_.push_back({object, first, last});
      ++cl::counters().objects_created;
      for (std::size_t i = first; i < last; ++i) {
        cl::check(
            api.clEnqueueNDRangeKernel(recordable_queue_.get(), launches[i].kernel, 3, nullptr,
                                       launches[i].global, launches[i].local, 0, nullptr, nullptr),
            "clEnqueueNDRangeKernel", "the command list");
      }
      cl::check(api_.clEndRecordingQCOM(object), "clEndRecordingQCOM", "the command list");
    }
    is_whole_ = true;
  }

  void forget() noexcept override {
    for (const Part& part : parts_) {
      if (!cl::is_forked_child()) api_.clReleaseRecordingQCOM(part.object);
    }
    parts_.clear();
    is_whole_ = false;
  }

  // All arguments that are replaced are given each time: whether a driver keeps them for the next
  // time does not matter.
  std::size_t start(const std::vector<Argument>& replaced, cl::Flusher& flusher,
                    cl::cl_int& code) override {
    code = cl::CL_SUCCESS;
    for (const Part& part : parts_) {
      updates_.clear();
      for (const Argument& a : replaced) {
        if (a.launch < part.first || a.launch >= part.last) continue;
        const auto launch = static_cast<cl::cl_uint>(a.launch - part.first);
        updates_.push_back({launch, a.index, sizeof a.object, &a.object});
      }
      code = api_.clEnqueueRecordingQCOM(queue_.get(), part.object, updates_.size(),
                                         updates_.empty() ? nullptr : updates_.data(), 0, nullptr,
                                         0, nullptr, 0, nullptr, 0, nullptr, nullptr);
      if (code != cl::CL_SUCCESS) return part.first;
      ++cl::counters().launches;
      flusher.launched(queue_, static_cast<int>(part.last - part.first));
    }
    return parts_.back().last;
  }

 private:
  struct Part {
    cl::cl_recording object;
    std::size_t first, last;  // launches
  };
  cl::Context& context_;
  const cl::RecordingApi api_;
  const cl::QueueHandle& queue_;
  const cl::QueueHandle recordable_queue_;
  std::vector<Part> parts_;
  std::vector<cl::cl_array_arg> updates_;
  bool is_whole_ = false;
};

}  // namespace

std::unique_ptr<CommandList> CommandList::make(cl::Context& context, const cl::QueueHandle& queue,
                                               std::string& problem) {
  const cl::Device& device = context.device();
  problem.clear();
  if (const auto api = cl::recording_api(device, problem); api)
    return std::make_unique<Recordings>(context, *api, queue);
  if (const auto api = cl::command_buffer_api(device, problem); api)
    return std::make_unique<CommandBuffer>(*api, queue);
  if (problem.empty())
    problem =
        "the device has neither of the extensions cl_khr_command_buffer and "
        "cl_qcom_recordable_queues";
  return nullptr;
}

}  // namespace clgpu::runtime
