// Element types of tensors and their names in OpenCL C.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clgpu {

enum class DType : std::uint8_t {
  kF32,
  kF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kBool,
  kC64,
  kBF16,  ///< the upper half of a float
  kU16,
  kU32,
};

/// Bytes of one element.
constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::kI64:
    case DType::kC64:
      return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    default:
      return 1;
  }
}

/// Name of the pointee type in a kernel; `kernels/common/types.cl` and `more_types.cl` define
/// load_<name>/store_<name>.
constexpr const char* cl_name(DType t) {
  switch (t) {
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "half";
    case DType::kI64:
    case DType::kC64:  // moved as bits; kernels that compute with it read pairs of float
      return "long";
    case DType::kI32:
      return "int";
    case DType::kI16:
      return "short";
    case DType::kI8:
      return "char";
    case DType::kBF16:
      return "bfloat";
    case DType::kU16:
      return "ushort";
    case DType::kU32:
      return "uint";
    default:
      return "uchar";  // kU8 and kBool
  }
}

/// Name for messages and reports.
constexpr const char* name_of(DType t) {
  switch (t) {
    case DType::kF32:
      return "float32";
    case DType::kF16:
      return "float16";
    case DType::kI64:
      return "int64";
    case DType::kI32:
      return "int32";
    case DType::kI16:
      return "int16";
    case DType::kI8:
      return "int8";
    case DType::kU8:
      return "uint8";
    case DType::kC64:
      return "complex64";
    case DType::kBF16:
      return "bfloat16";
    case DType::kU16:
      return "uint16";
    case DType::kU32:
      return "uint32";
    default:
      return "bool";
  }
}

constexpr bool is_float(DType t) {
  return t == DType::kF32 || t == DType::kF16 || t == DType::kBF16;
}

/// Of unsigned integers that never have a scale.
constexpr bool is_wide_unsigned(DType t) { return t == DType::kU16 || t == DType::kU32; }

/// Quantised if it has a scale.
constexpr bool is_small_integer(DType t) {
  return !is_float(t) && !is_wide_unsigned(t) && size_of(t) < 4;
}

}  // namespace clgpu
