#include "base/refusal.hpp"

#include "base/join.hpp"

namespace clgpu {
namespace {

// The rest of the sentence, if the refusal has no words of its own.
std::string predicate_of(const Refusal& refusal) {
  const std::string& has = refusal.has;
  switch (refusal.why) {
    case Why::kNoKernels:
      return "has no kernels";
    case Why::kUnknownCustom:
      return "is unknown";
    case Why::kType:
      return "is " + has + (refusal.supported.empty() ? ", which has no kernels" : "");
    case Why::kIntegers:
      return "is quantised (" + has + "): the operation has no integer kernels";
    case Why::kRank:
      return "has rank " + has;
    case Why::kQuantization:
    case Why::kAborts:
      return "has " + has;
    case Why::kRunTime:
      return "is computed at run time";
    case Why::kUnknownShape:
      return "comes from the CPU without a known shape";
    case Why::kVariable:
      return "is a variable: its state lives on the CPU";
    case Why::kSparse:
      return "is sparse and not expanded by a DENSIFY";
    case Why::kReader:
      return "computes a constant that a node on the CPU reads";
    default:
      return "is " + has;
  }
}

}  // namespace

const char* code_of(Why why) {
  switch (why) {
    case Why::kNoKernels:
      return "no_kernels";
    case Why::kUnknownCustom:
      return "unknown_custom";
    case Why::kType:
      return "type";
    case Why::kIntegers:
      return "integers";
    case Why::kRank:
      return "rank";
    case Why::kQuantization:
      return "quantization";
    case Why::kRescaling:
      return "rescaling";
    case Why::kRunTime:
      return "run_time";
    case Why::kUnknownShape:
      return "unknown_shape";
    case Why::kVariable:
      return "variable";
    case Why::kSparse:
      return "sparse";
    case Why::kLayout:
      return "layout";
    case Why::kActivation:
      return "activation";
    case Why::kParameter:
      return "parameter";
    case Why::kOperands:
      return "operands";
    case Why::kMalformed:
      return "malformed";
    case Why::kAborts:
      return "aborts";
    case Why::kShape:
      return "shape";
    case Why::kOption:
      return "option";
    case Why::kCost:
      return "cost";
    case Why::kMeasured:
      return "measured";
    case Why::kReader:
      return "reader";
    case Why::kDevice:
      return "device";
    case Why::kRuntime:
      return "runtime";
  }
  return "";
}

std::string sentence_of(const Refusal& refusal) {
  const auto behind = [](const std::string& text, const char* separator) {
    return text.empty() ? text : separator + text;
  };
  if (refusal.why == Why::kOption)
    return "left on the CPU by the option '" + refusal.what + "'" + behind(refusal.detail, ": ");
  if (!refusal.detail.empty())
    return refusal.what.empty() ? refusal.detail : refusal.what + behind(refusal.detail, " ");
  const std::string predicate = predicate_of(refusal);
  return (refusal.what.empty() ? predicate : refusal.what + " " + predicate) +
         behind(join(refusal.supported), "; supported: ");
}

}  // namespace clgpu
