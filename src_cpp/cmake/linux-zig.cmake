# Linux with a chosen oldest glibc, on any machine that has zig (PyPI: ziglang). Its clang brings what
# there was to link with in each version of glibc, and libc++ as a static library.
#
#   cmake -DCMAKE_TOOLCHAIN_FILE=src_cpp/cmake/linux-zig.cmake [-DCLGPU_ARCH=aarch64] ...
#
# CLGPU_ARCH   x86_64 or aarch64; that of the building machine where it is not set
# CLGPU_GLIBC  the oldest glibc to run with; 2.17, that of manylinux2014, where it is not set
# CLGPU_ZIG    the zig to use; that of the Python package or of PATH where it is not set, as
#              check_platform.cmake finds it
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLGPU_ARCH CLGPU_GLIBC CLGPU_ZIG)
if(NOT CLGPU_ARCH)
  set(CLGPU_ARCH ${CMAKE_HOST_SYSTEM_PROCESSOR})
endif()
if(NOT CLGPU_GLIBC)
  set(CLGPU_GLIBC 2.17)
endif()

# A system that is named is a foreign one to CMake.
if(NOT "${CLGPU_ARCH} Linux" STREQUAL "${CMAKE_HOST_SYSTEM_PROCESSOR} ${CMAKE_HOST_SYSTEM_NAME}")
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${CLGPU_ARCH})
endif()
set(CMAKE_CXX_COMPILER "${CLGPU_ZIG}" c++)
set(CMAKE_CXX_COMPILER_TARGET ${CLGPU_ARCH}-linux-gnu.${CLGPU_GLIBC})
# zig compiles libc++ anew for each kind of output, in minutes: no executable is linked for CMake's
# questions, and nothing is optimised at link time.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)
# The linker strips: the strip of this machine may not know the other's files.
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -nostdlib++ -pie")  # clgpu_compile calls nothing of libc++
find_program(CLGPU_NO_STRIP true)
set(CMAKE_STRIP "${CLGPU_NO_STRIP}")
