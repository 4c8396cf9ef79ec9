// One partition of one interpreter: its graph, and the executor for the shapes of the moment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "abi/tflite_abi.hpp"
#include "delegate/state.hpp"
#include "ir/graph.hpp"

namespace clgpu::delegate {

class Partition {
 public:
  /// `graph` comes from Model::graph; the passes run here.
  Partition(std::shared_ptr<State> state, ir::Graph graph, std::vector<int> nodes, int index);

  const std::vector<int>& nodes() const { return nodes_; }
  /// Index in the delegate's report.
  void set_index(int index) { index_ = index; }

  /// Infers shapes from those that the graph's inputs have now; plans and builds.
  void build();

  /// Takes the inputs' shapes from the runtime, builds again when they changed, and gives the outputs
  /// their shapes.
  void prepare(TfLiteContext& context);

  /// One inference.
  void invoke(TfLiteContext& context);

 private:
  void publish();

  std::shared_ptr<State> state_;
  ir::Graph graph_;
  std::vector<int> nodes_;
  int index_;
  std::unique_ptr<runtime::Executor> executor_;
};

}  // namespace clgpu::delegate
