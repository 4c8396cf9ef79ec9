// A refusal is an ordinary value: the reason why a node stays on the CPU, as a code and fields.
// Only sentence_of() makes a sentence of it, for people; no code parses this sentence.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace clgpu {

/// The code of a refusal. Programs read it as text, see code_of(): codes may be added, not changed.
enum class Why {
  kNoKernels,      ///< no family has the operation
  kUnknownCustom,  ///< no family has the custom operation
  kType,           ///< the type of a tensor; `supported` is empty if no kernel has that type
  kIntegers,       ///< quantised integers, which the operation has no kernels for
  kRank,           ///< the number of axes of a tensor
  kQuantization,   ///< a scale or a zero point
  kRescaling,      ///< input and output differ in scale or zero point, but elements are copied
  kRunTime,        ///< an operand that has to be a constant is computed at run time
  kUnknownShape,   ///< a node on the CPU writes an operand whose shape is not in the model
  kVariable,       ///< a tensor keeps its value from one inference to the next
  kSparse,         ///< a sparse tensor that no DENSIFY expands
  kLayout,         ///< the order in which weights are stored
  kActivation,     ///< a fused activation
  kParameter,  ///< a parameter, or the value of a constant operand: absent, unknown, out of range
  kOperands,   ///< the number of operands is wrong, or they do not fit each other
  kMalformed,  ///< the model contradicts itself: no constant data, a tensor written twice
  kAborts,     ///< the runtime's own kernels can end the process on such a scale or rank
  kShape,      ///< sizes do not fit together, or exceed the index range of kernels
  kOption,     ///< an option, named by `what`, leaves the node on the CPU
  kCost,       ///< the cost model expects the CPU to be faster
  kMeasured,   ///< the CPU was measured to be faster
  kReader,     ///< it computes a constant for a node that is on the CPU itself
  kDevice,     ///< the device fails: no kernel works on it, or its memory does not suffice
  kRuntime,    ///< TensorFlow Lite: another delegate has the node, or the graph is not divided
};

struct Refusal {
  Why why;
  /// What is not supported: an operand ("input 0", "bias"), a parameter ("the block size"), an
  /// operation, or the name of an option; empty if it is the node or the model as a whole.
  std::string what{};
  std::string detail{};  ///< the rest of the sentence, if code and fields are not sufficient
  std::string has{};     ///< its value, such as "int8" or "5"
  std::vector<std::string> supported{};  ///< the supported values
};

/// "run_time".
const char* code_of(Why why);

/// "input 0 is int8; supported: float32, int32".
std::string sentence_of(const Refusal& refusal);

/// Either a T or the reason why there is none.
template <class T>
class OrRefusal {
 public:
  OrRefusal(T value) : state_(std::move(value)) {}
  OrRefusal(Refusal refusal) : state_(std::move(refusal)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const Refusal& refusal() const { return std::get<Refusal>(state_); }

 private:
  std::variant<T, Refusal> state_;
};

}  // namespace clgpu

/// Inside a function that returns OrRefusal<...>: leave with Refusal{...} when `condition` holds.
#define CLGPU_REFUSE_IF(condition, ...)                  \
  do {                                                   \
    if (condition) return ::clgpu::Refusal{__VA_ARGS__}; \
  } while (0)
