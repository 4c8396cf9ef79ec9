// Tensors that stay on the device between inferences, for all executors of an interpreter.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cl/context.hpp"
#include "plan/plan.hpp"

namespace clgpu::runtime {

/// The values that inferences of several graphs hand on to each other, by the number that the
/// graphs have for them. Thread-safe: whoever uses their memory holds the turn.
class CarriedSet {
 public:
  CarriedSet(std::shared_ptr<cl::Context> context, std::vector<std::string> names);
  ~CarriedSet();
  CarriedSet(const CarriedSet&) = delete;
  CarriedSet& operator=(const CarriedSet&) = delete;

  std::size_t size() const { return tensors_.size(); }
  const std::string& name(int number) const { return at(number).name; }

  /// Excludes other users of the memory.
  std::unique_lock<std::mutex> take_turn() { return std::unique_lock<std::mutex>(turn_); }

  /// Allocates the memory of a tensor, with zeros, unless it is there. Throws Error if it has
  /// another form already, and cl::OpenCLError.
  void provide(int number, const plan::CarriedForm& form);
  /// After provide(): the memory, which stays as long as this object.
  cl::cl_mem memory(int number) const { return at(number).memory.get(); }

  /// The form; null before provide(). The pointer stays as long as this object.
  const plan::CarriedForm* form(int number) const;

  // The following need provide(), take the turn, and throw cl::OpenCLError.

  /// Copies the value to host memory, in the form of the host.
  void read(int number, void* to);
  /// The reverse.
  void write(int number, const void* from);
  /// Makes all elements zero.
  void clear(int number);

  /// The values of the tensors of an executor before it runs for other reasons than an inference:
  /// what it writes must not remain. The caller has the turn from before the constructor until
  /// after put_back().
  class Aside {
   public:
    /// `queue` is the one of these runs.
    Aside(CarriedSet& set, const std::vector<int>& numbers, const cl::QueueHandle& queue);
    /// Throws cl::OpenCLError.
    void put_back();

   private:
    CarriedSet& set_;
    const std::vector<int> numbers_;
    const cl::QueueHandle& queue_;
    std::vector<cl::Memory> copies_;  // empty where all elements are zero
  };
  /// An inference is about to change them.
  void touch(const std::vector<int>& numbers);

 private:
  struct Tensor {
    std::string name;
    std::unique_ptr<const plan::CarriedForm> form{};
    cl::Memory memory{};
    bool is_zero = true;  ///< no inference has changed it
  };

  const Tensor& at(int number) const { return tensors_.at(static_cast<std::size_t>(number)); }
  Tensor& at(int number) { return tensors_.at(static_cast<std::size_t>(number)); }
  void fill(const Tensor& tensor, std::size_t bytes, const cl::QueueHandle& queue);

  std::mutex turn_;
  mutable std::mutex forms_;
  const std::shared_ptr<cl::Context> context_;
  cl::QueueHandle queue_;
  std::vector<Tensor> tensors_;
};

}  // namespace clgpu::runtime
