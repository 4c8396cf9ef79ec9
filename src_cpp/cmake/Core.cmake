# All that does not know of Python: the target clgpu_objects. It depends on the compiler and its options
# alone, so that a build for a further Python can link these objects (CLGPU_COMPILED).

# The kernel files become part of the library.
set(kernels_dir ${CMAKE_CURRENT_SOURCE_DIR}/kernels)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_kernels.cpp)
set(embed_script ${CMAKE_CURRENT_SOURCE_DIR}/src_cpp/cmake/EmbedKernels.cmake)
file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS ${kernels_dir}/*.cl)
add_custom_command(
  OUTPUT ${embedded}
  COMMAND ${CMAKE_COMMAND} -DKERNELS=${kernels_dir} -DOUTPUT=${embedded} -P ${embed_script}
  DEPENDS ${kernel_files} ${embed_script}
  VERBATIM)

file(GLOB_RECURSE core_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/src_cpp/*.cpp)
list(FILTER core_files EXCLUDE REGEX "/src_cpp/python/|/src_cpp/litert/accelerator.cpp|/src_cpp/compile/")
add_library(clgpu_objects OBJECT ${core_files} ${embedded})
target_include_directories(clgpu_objects PUBLIC src_cpp include)
target_compile_definitions(clgpu_objects PUBLIC CLGPU_VERSION="${clgpu_version}")
find_package(Threads REQUIRED)
target_link_libraries(clgpu_objects PUBLIC ${CMAKE_DL_LIBS} Threads::Threads)
if(CMAKE_SYSTEM_NAME STREQUAL "Android")
  target_link_libraries(clgpu_objects PUBLIC log)
endif()
if(NOT MSVC)
  target_compile_options(clgpu_objects PRIVATE -Wall -Wextra -Wconversion -Wshadow)
endif()
if(CLGPU_BUILD_LIBRARY AND NOT MSVC)  # apps count bytes: what nothing calls is left out
  target_compile_options(clgpu_objects PRIVATE -ffunction-sections -fdata-sections)
endif()
if(CLGPU_SANITIZE)
  set(sanitizers_of_address address,undefined)
  set(sanitizers_of_thread thread)
  if(NOT DEFINED sanitizers_of_${CLGPU_SANITIZE})
    message(FATAL_ERROR "CLGPU_SANITIZE is ${CLGPU_SANITIZE}; allowed: address, thread, or nothing")
  endif()
  set(sanitizers -fsanitize=${sanitizers_of_${CLGPU_SANITIZE}})
  target_compile_options(clgpu_objects PUBLIC ${sanitizers} -fno-omit-frame-pointer)
  target_link_options(clgpu_objects PUBLIC ${sanitizers})
endif()

if(CLGPU_PRECOMPILE)
  target_precompile_headers(clgpu_objects PRIVATE <algorithm> <cmath> <cstring> <functional> <map>
    <memory> <mutex> <optional> <set> <sstream> <string> <vector>
    "src_cpp/ir/graph.hpp" "src_cpp/kernel/launch.hpp" "src_cpp/ops/family.hpp")
endif()

# For CLGPU_COMPILED: the objects, and what their users need.
export(TARGETS clgpu_objects FILE ${CMAKE_CURRENT_BINARY_DIR}/clgpu_objects.cmake)
