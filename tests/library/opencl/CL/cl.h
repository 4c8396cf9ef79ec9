/* The functions of OpenCL that the examples call, for machines without its headers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef uint8_t cl_uchar;
typedef cl_ulong cl_bitfield;
typedef struct _cl_platform_id* cl_platform_id;
typedef struct _cl_device_id* cl_device_id;
typedef struct _cl_context* cl_context;
typedef struct _cl_command_queue* cl_command_queue;
typedef struct _cl_mem* cl_mem;
typedef struct _cl_program* cl_program;
typedef struct _cl_kernel* cl_kernel;
typedef struct _cl_event* cl_event;
#define CL_SUCCESS 0
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFF
#define CL_MEM_READ_WRITE (1 << 0)
#define CL_MEM_READ_ONLY (1 << 2)
#define CL_MEM_COPY_HOST_PTR (1 << 5)

cl_int clGetPlatformIDs(cl_uint count, cl_platform_id* platforms, cl_uint* found);
cl_int clGetDeviceIDs(cl_platform_id platform, cl_bitfield kind, cl_uint count,
                      cl_device_id* devices, cl_uint* found);
cl_context clCreateContext(const intptr_t* properties, cl_uint count, const cl_device_id* devices,
                           void (*notify)(const char*, const void*, size_t, void*), void* data,
                           cl_int* code);
cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_bitfield properties, cl_int* code);
cl_mem clCreateBuffer(cl_context context, cl_bitfield flags, size_t bytes, void* data,
                      cl_int* code);
cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts,
                                     const size_t* lengths, cl_int* code);
cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                      const char* options, void (*notify)(cl_program, void*), void* data);
cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* code);
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value);
cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint waits, const cl_event* events, cl_event* event);
cl_int clFinish(cl_command_queue queue);
cl_int clReleaseKernel(cl_kernel kernel);
cl_int clReleaseProgram(cl_program program);
cl_int clReleaseMemObject(cl_mem memory);
cl_int clReleaseCommandQueue(cl_command_queue queue);
cl_int clReleaseContext(cl_context context);

#ifdef __cplusplus
}
#endif
