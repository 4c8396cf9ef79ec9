#include "cl/error.hpp"

namespace clgpu::cl {

std::string error_name(cl_int code) {
  const char* name = "unknown error";
  switch (code) {
    case -1:
      name = "CL_DEVICE_NOT_FOUND";
      break;
    case -2:
      name = "CL_DEVICE_NOT_AVAILABLE";
      break;
    case -3:
      name = "CL_COMPILER_NOT_AVAILABLE";
      break;
    case -4:
      name = "CL_MEM_OBJECT_ALLOCATION_FAILURE";
      break;
    case -5:
      name = "CL_OUT_OF_RESOURCES";
      break;
    case -6:
      name = "CL_OUT_OF_HOST_MEMORY";
      break;
    case -7:
      name = "CL_PROFILING_INFO_NOT_AVAILABLE";
      break;
    case -11:
      name = "CL_BUILD_PROGRAM_FAILURE";
      break;
    case -12:
      name = "CL_MAP_FAILURE";
      break;
    case -13:
      name = "CL_MISALIGNED_SUB_BUFFER_OFFSET";
      break;
    case -14:
      name = "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
      break;
    case -30:
      name = "CL_INVALID_VALUE";
      break;
    case -33:
      name = "CL_INVALID_DEVICE";
      break;
    case -34:
      name = "CL_INVALID_CONTEXT";
      break;
    case -35:
      name = "CL_INVALID_QUEUE_PROPERTIES";
      break;
    case -36:
      name = "CL_INVALID_COMMAND_QUEUE";
      break;
    case -37:
      name = "CL_INVALID_HOST_PTR";
      break;
    case -38:
      name = "CL_INVALID_MEM_OBJECT";
      break;
    case -43:
      name = "CL_INVALID_BUILD_OPTIONS";
      break;
    case -44:
      name = "CL_INVALID_PROGRAM";
      break;
    case -45:
      name = "CL_INVALID_PROGRAM_EXECUTABLE";
      break;
    case -46:
      name = "CL_INVALID_KERNEL_NAME";
      break;
    case -48:
      name = "CL_INVALID_KERNEL";
      break;
    case -49:
      name = "CL_INVALID_ARG_INDEX";
      break;
    case -50:
      name = "CL_INVALID_ARG_VALUE";
      break;
    case -51:
      name = "CL_INVALID_ARG_SIZE";
      break;
    case -52:
      name = "CL_INVALID_KERNEL_ARGS";
      break;
    case -54:
      name = "CL_INVALID_WORK_GROUP_SIZE";
      break;
    case -55:
      name = "CL_INVALID_WORK_ITEM_SIZE";
      break;
    case -59:
      name = "CL_INVALID_OPERATION";
      break;
    case -60:
      name = "CL_INVALID_GL_OBJECT";
      break;
    case -61:
      name = "CL_INVALID_BUFFER_SIZE";
      break;
    case -62:
      name = "CL_INVALID_MIP_LEVEL";
      break;
    case -63:
      name = "CL_INVALID_GLOBAL_WORK_SIZE";
      break;
    case -64:
      name = "CL_INVALID_PROPERTY";
      break;
    case -65:
      name = "CL_INVALID_IMAGE_DESCRIPTOR";
      break;
    case -1000:
      name = "CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR";
      break;
    case -1001:
      name = "CL_PLATFORM_NOT_FOUND_KHR";
      break;
    case -1138:
      name = "CL_INVALID_COMMAND_BUFFER_KHR";
      break;
    case -1140:
      name = "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR";
      break;
    default:
      break;
  }
  return std::string(name) + " (" + std::to_string(code) + ")";
}

}  // namespace clgpu::cl
