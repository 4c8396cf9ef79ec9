// One OpenCL context per device and process, with the programs built in it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "cl/context_options.hpp"
#include "cl/device.hpp"
#include "cl/error.hpp"
#include "cl/handle.hpp"
#include "cl/memory.hpp"
#include "store/attempt.hpp"
#include "store/store.hpp"

namespace clgpu::cl {

/// Counts of OpenCL calls of this thread so far. Tests use differences to check the cost of
/// inferences.
struct Counters {
  std::uint64_t objects_created = 0;  ///< buffers, programs, kernels, queues
  std::uint64_t programs_built = 0;   ///< compiled from source
  std::uint64_t programs_loaded = 0;  ///< created from a stored binary
  std::uint64_t launches = 0;
  std::uint64_t bytes_up = 0, bytes_down = 0;

  Counters operator-(const Counters& o) const {
    return {objects_created - o.objects_created,
            programs_built - o.programs_built,
            programs_loaded - o.programs_loaded,
            launches - o.launches,
            bytes_up - o.bytes_up,
            bytes_down - o.bytes_down};
  }
  void operator+=(const Counters& o) {
    objects_created += o.objects_created;
    programs_built += o.programs_built;
    programs_loaded += o.programs_loaded;
    launches += o.launches;
    bytes_up += o.bytes_up;
    bytes_down += o.bytes_down;
  }
};
Counters& counters();

/// The inputs of a program's build; `file` is for messages.
struct ProgramSource {
  std::string file, text, options;
  /// Numbers of the kernel's arguments that it takes as integers (base/ptx_addresses.hpp).
  std::vector<int> addresses{};
};

/// A kernel that is launched for the first time.
struct FirstLaunch {
  store::Risk risk;
  std::string program;  ///< its key in Context::Programs
  std::string mark;     ///< in the row of the program once it was launched
};

/// An OpenGL context as its window system knows it.
struct GlContext {
  enum class System { kEgl, kGlx };
  System system;
  void* display;  ///< EGLDisplay or Display*
  void* context;  ///< EGLContext or GLXContext
};

/// What delegates with the same options see of a device. Contexts of a device share its OpenCL
/// context and programs, unless their options require different OpenCL contexts. Thread-safe. Lives
/// until the process ends: the last 128 programs stay built when no delegate is left. Those that
/// share objects with OpenGL live as long as their owners.
class Context {
 public:
  struct Program;
  /// By the SHA-256 of identity, options and assembled source. A program in the map stays built.
  using Programs = std::map<std::string, std::shared_ptr<Program>>;

  /// The context of a device and of options, created at its first use. What the device does not
  /// support is left out, with a note. Throws OpenCLError.
  static std::shared_ptr<Context> of(const Device& device, const ContextOptions& options = {});

  /// The context of a device, which is `handle` of the application if there is none yet.
  static std::shared_ptr<Context> adopt(const Device& device, cl_context handle);

  /// A context that shares buffers and textures with an OpenGL context; one per device, OpenGL
  /// context and options. Throws DeviceError if the device cannot.
  static std::shared_ptr<Context> sharing(const Device& device, const GlContext& gl,
                                          const ContextOptions& options = {});

  const Device& device() const { return device_; }
  const Api& api() const { return *device_.api; }
  /// Names and versions of device, driver and platform: the part of keys that ties stored rows to
  /// them.
  const std::string& identity() const;
  /// For interfaces that exchange OpenCL objects.
  cl_context handle() const;
  bool shares_gl() const { return shares_gl_; }
  /// A sentence about each option that has no effect.
  std::vector<std::string> notes() const;

  /// An in-order queue with the priority of the options; with `profiling`, its events tell when
  /// they started and ended.
  QueueHandle create_queue(bool profiling = false);
  /// A queue that only records (cl_qcom_recordable_queues). Throws OpenCLError.
  QueueHandle create_recordable_queue();
  /// `host_visible`: if device and host share memory, the host maps it without a copy.
  Memory create_buffer(std::size_t bytes, const std::string& what, bool host_visible = false);
  /// Part of a buffer; `offset` is a multiple of DeviceInfo::base_align_bytes. It must go before
  /// the buffer, and after the parts that were created later.
  MemHandle create_sub_buffer(const Memory& buffer, std::size_t offset, std::size_t bytes,
                              const std::string& what);
  /// The first `texels` groups of four elements of a buffer, float or half, to be read as an
  /// image1d_buffer_t. It must go before the buffer. No device memory.
  MemHandle create_image(cl_mem buffer, DType storage, std::int64_t texels,
                         const std::string& what);
  /// Pinned host memory, for clEnqueueMapBuffer; empty if there is none. It does not count as
  /// device memory.
  MemHandle create_pinned(std::size_t bytes);
  /// A buffer over the host's memory at `data`, which must outlive it. Uses no device memory.
  MemHandle wrap_memory(void* data, std::size_t bytes, const std::string& what);
  /// Another reference to a buffer of somebody else. Throws OpenCLError.
  MemHandle retain(cl_mem buffer);
  /// Bytes of a buffer that kernels in this context can read and write; 0 for other objects.
  std::size_t bytes_of(cl_mem buffer) const;
  /// Whether images over a buffer of somebody else work: it may be a sub-buffer.
  bool takes_images(cl_mem buffer) const;
  /// Whether commands of this context can wait for the event.
  bool has(cl_event event) const;
  /// Of all buffers of this process on this device.
  Usage& usage();
  /// A new kernel object; each launch has one, because kernel objects hold arguments. The first use
  /// creates the program, from a binary in the store or from its source. `variant` distinguishes
  /// launch sizes for which a driver may compile the kernel again. Adds the program to `used`.
  /// Throws BuildError, also if the program cannot be made with the source's addresses, and
  /// store::LeftOut if that has ended an earlier process, or a child process
  /// in which it was tried first. `first_launch` is
  /// set unless this process, or the one that has stored the binary, has launched such a kernel:
  /// then the caller's first launch is an attempt.
  KernelHandle create_kernel(const ProgramSource& source, const std::string& entry,
                             const std::string& variant, store::Store& store,
                             Programs* used = nullptr,
                             std::optional<FirstLaunch>* first_launch = nullptr);
  /// After a first launch that the device has finished.
  void has_launched(const FirstLaunch& first);
  /// Stores the binaries of these programs that the store does not have. Should be called after
  /// their kernels have run, because some drivers compile at the first launch.
  void save_programs(const Programs& used, store::Store& store);
  /// To be held while kernels run whose work-groups wait for each other: two of them at a time
  /// could each keep the other's groups from the device.
  std::unique_lock<std::mutex> whole_device();
  /// Ends the child process that has built programs, if there is one and nobody is building; the
  /// next build may start another. Costs one load otherwise.
  void end_builds();
  /// For tests: releases all unused programs, as in a new process.
  void forget_programs();
  /// Largest work-group this kernel can be launched with.
  std::size_t max_work_group_size(const KernelHandle& kernel) const;
  /// Bytes of local memory that a kernel needs with its current arguments; 0 if unknown.
  std::uint64_t local_bytes(const KernelHandle& kernel) const;

 private:
  struct OnDevice;
  struct Shared;
  static std::shared_ptr<Context> find(const Device& device, const ContextOptions& options,
                                       cl_context handle);
  Context(const Device& device, const ContextOptions& options, cl_context handle,
          const GlContext* gl = nullptr);
  std::shared_ptr<Shared> share(cl_context handle);
  std::shared_ptr<Shared> share_with(const GlContext& gl);
  void open(Shared& shared, Level priority, Level performance,
            const std::vector<std::intptr_t>& others);
  void complete(Shared& shared);
  std::string try_priority();
  std::shared_ptr<Program> program(const std::string& key, const ProgramSource& source,
                                   const std::string& entry, store::Store& store,
                                   store::Attempt& attempt);
  store::Risk risk(const std::string& key, const ProgramSource& source,
                   const std::string& what) const;
  void drop_idle();
  void load(Program& program, const std::string& key, const std::string& options,
            store::Store& store);
  cl_int make_of_binary(Program& program, const std::string& options, const unsigned char* bytes,
                        std::size_t size);
  void reject(const std::string& key, const std::string& why, store::Store& store);
  void build_apart(Program& program, const std::string& key, const ProgramSource& source,
                   const std::string& entry, const store::Risk& at_risk, store::Store& store);
  void compile(Program& program, const ProgramSource& source, const std::string& entry);
  std::string binary(cl_program program) const;

  const Device& device_;
  ContextOptions options_;
  const bool shares_gl_;
  mutable std::mutex notes_mutex_;
  std::vector<std::string> notes_;
  cl_ulong queue_priority_ = 0;  // a value of CL_QUEUE_PRIORITY_KHR; 0: the driver's default
  std::shared_ptr<Shared> shared_;
};

struct Context::Program {
  ProgramHandle handle;
  std::string label;               // tells people what it is
  bool is_loaded = false;          // made of a binary
  std::set<std::string> variants;  // the kernels it was used for
  // By path of a store: the variants that the binary there has.
  std::map<std::string, std::set<std::string>> stored;
  std::uint64_t last_use = 0;  // counts calls of create_kernel
};

/// Names of the kernel functions that this process has made kernels of.
std::set<std::string> kernel_names();

/// What a driver reports about a kernel without arguments.
struct KernelFacts {
  bool builds = false;            ///< otherwise the numbers below are 0
  std::size_t work_group = 0;     ///< CL_KERNEL_WORK_GROUP_SIZE
  std::uint64_t local_bytes = 0;  ///< CL_KERNEL_LOCAL_MEM_SIZE
};
/// From now on, `kernel_facts` contains every kernel that this process builds or fails to build.
void record_kernels();
/// By the name of the function and the build options.
std::map<std::pair<std::string, std::string>, KernelFacts> kernel_facts();

}  // namespace clgpu::cl
