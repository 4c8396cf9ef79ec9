// Another graph of the model, as the runtime shows it to a delegate.
#pragma once

#include "abi/tflite_abi.hpp"

namespace clgpu::tfl {

/// While it exists, the runtime shows the nodes of a graph.
class Acquired {
 public:
  /// Runtimes declare the parameter without const, and do not change what it points to.
  Acquired(const TfLiteContext& own, int subgraph)
      : own_(const_cast<TfLiteContext&>(own)), subgraph_(subgraph) {
    if (own_.AcquireSubgraphContext == nullptr || own_.ReleaseSubgraphContext == nullptr) return;
    if (own_.AcquireSubgraphContext(&own_, subgraph, &context) != kTfLiteOk) context = nullptr;
  }
  ~Acquired() {
    // A release ends the access to a graph, and that to the own one must not end here.
    if (context != nullptr && !is_own()) own_.ReleaseSubgraphContext(&own_, subgraph_);
  }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

  /// Whether it is the graph of the context that was given.
  bool is_own() const { return context->impl_ == own_.impl_; }

  TfLiteContext* context = nullptr;  ///< null if the runtime does not show it

 private:
  TfLiteContext& own_;
  int subgraph_;
};

}  // namespace clgpu::tfl
