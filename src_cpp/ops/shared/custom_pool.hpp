// Parameters of MediaPipe's custom pooling operations, shared by max_pool_argmax and max_unpool.
#pragma once

#include <cstring>

#include "ir/fields.hpp"
#include "ops/shared/common.hpp"

namespace clgpu::ops {

/// Windows of up to this many elements: their indices are still exact when stored as half.
constexpr int kLargestIndexedWindow = 1024;

struct CustomPoolAttrs : ir::Attrs {
  int padding = 1;
  int stride_h = 1, stride_w = 1;
  int filter_h = 1, filter_w = 1;
  CLGPU_FIELDS(padding, stride_h, stride_w, filter_h, filter_w)
  static const char* words(std::string_view member) {
    if (member == "padding") return ", SAME, VALID";
    return "";
  }
};

struct CustomPool {
  CustomPoolAttrs attrs;
  ir::Epilogue epilogue;
};

/// Reads the parameters from the operation's custom data (a PoolParams, any alignment).
inline OrRefusal<CustomPool> read_custom_pool(const tfl::NodeView& node) {
  tfl::CustomPoolParams params;
  CLGPU_REFUSE_IF(node.custom_data() == nullptr || node.custom_bytes() < sizeof params,
                  Why::kParameter, "", "its custom data holds no pooling parameters");
  std::memcpy(&params, node.custom_data(), sizeof params);
  if (params.padding != 1 && params.padding != 2)
    return wrong_value("the padding", params.padding, kPaddings);
  CLGPU_REFUSE_IF(params.stride_height < 1 || params.stride_width < 1 || params.filter_height < 1 ||
                      params.filter_width < 1,
                  Why::kParameter, "a stride or filter size", "is below 1");
  CLGPU_REFUSE_IF(params.filter_height > kLargestIndexedWindow / params.filter_width,
                  Why::kParameter, "the window", "has more than 1024 elements");
  CustomPool pool;
  pool.attrs.padding = params.padding;
  pool.attrs.stride_h = params.stride_height;
  pool.attrs.stride_w = params.stride_width;
  pool.attrs.filter_h = params.filter_height;
  pool.attrs.filter_w = params.filter_width;
  auto epilogue = fused_activation(params.activation);
  if (!epilogue) return epilogue.refusal();
  pool.epilogue = *epilogue;
  return pool;
}

}  // namespace clgpu::ops
