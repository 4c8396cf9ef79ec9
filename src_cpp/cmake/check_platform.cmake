# What cannot be built is refused here, before project(): an error inside a toolchain file would be
# followed by others of CMake that say something else.
set(oldest_ndk 27)  # the first whose compiler, linker and libc++ know pages of 16 KB
set(oldest_api 26)  # Android 8.0, the first with libvndksupport.so, through which drivers are loaded

get_filename_component(toolchain "${CMAKE_TOOLCHAIN_FILE}" NAME)
set(set_ndk "set it to the folder of an Android NDK r${oldest_ndk} or newer, for example \
$HOME/Android/Sdk/ndk/27.2.12479018")

if(DEFINED Python_EXECUTABLE AND NOT EXISTS "${Python_EXECUTABLE}")  # presets name that of .venv
  message(FATAL_ERROR "There is no Python ${Python_EXECUTABLE}: run make test, which makes the one "
    "in .venv, or set Python_EXECUTABLE to another.")
endif()

if(toolchain STREQUAL "android.cmake")
  if(DEFINED CACHE{CLGPU_NDK})
    set(ndk "${CLGPU_NDK}")  # of an earlier run: the compiler of a build folder stays
    if(NOT "$ENV{ANDROID_NDK_HOME}" STREQUAL "" AND NOT "$ENV{ANDROID_NDK_HOME}" STREQUAL ndk)
      message(FATAL_ERROR "${CMAKE_BINARY_DIR} was made with the NDK ${ndk}: remove the folder to "
        "build with ANDROID_NDK_HOME=$ENV{ANDROID_NDK_HOME}.")
    endif()
  else()
    set(ndk "$ENV{ANDROID_NDK_HOME}")
  endif()
  if(ndk STREQUAL "")
    message(FATAL_ERROR "The environment variable ANDROID_NDK_HOME is not set: ${set_ndk}.")
  endif()
elseif(toolchain STREQUAL "android.toolchain.cmake")  # the NDK's own
  get_filename_component(ndk "${CMAKE_TOOLCHAIN_FILE}/../../.." ABSOLUTE)
endif()

if(toolchain MATCHES "^android\\.")
  set(properties "${ndk}/source.properties")
  set(revision "")
  if(EXISTS "${ndk}/build/cmake/android.toolchain.cmake" AND EXISTS "${properties}")
    file(STRINGS "${properties}" revision REGEX "^Pkg\\.Revision *= *[0-9]+")
  endif()
  if(NOT revision MATCHES "= *(([0-9]+)[^ ]*)")
    message(FATAL_ERROR "ANDROID_NDK_HOME names no NDK, for ${ndk} lacks source.properties with a "
      "Pkg.Revision or build/cmake/android.toolchain.cmake: ${set_ndk}.")
  endif()
  if(CMAKE_MATCH_2 LESS oldest_ndk)
    message(FATAL_ERROR "The NDK ${CMAKE_MATCH_1} in ${ndk} is too old, r${oldest_ndk} is the "
      "first that supports pages of 16 KB: set ANDROID_NDK_HOME to the folder of a newer one.")
  endif()
  if(NOT ANDROID_ABI MATCHES "^(arm64-v8a|x86_64)$")
    message(FATAL_ERROR "ANDROID_ABI is '${ANDROID_ABI}': set it to arm64-v8a or x86_64, since the "
      "layout of TensorFlow Lite's C structures is known for 64-bit platforms only.")
  endif()
  string(REGEX REPLACE "^android-" "" api "${ANDROID_PLATFORM}")
  if(api STREQUAL "" OR (api MATCHES "^[0-9]+$" AND api LESS oldest_api))
    message(FATAL_ERROR "ANDROID_PLATFORM is '${ANDROID_PLATFORM}': set it to "
      "android-${oldest_api} (Android 8.0) or newer, the oldest API level with the library "
      "libvndksupport.so, through which OpenCL drivers are loaded.")
  endif()
elseif(toolchain STREQUAL "linux-aarch64.cmake")
  find_program(CLGPU_AARCH64_CXX aarch64-linux-gnu-g++)
  if(NOT CLGPU_AARCH64_CXX)
    message(FATAL_ERROR "The cross compiler aarch64-linux-gnu-g++ is not on the PATH: install it "
      "(Debian and Ubuntu: g++-aarch64-linux-gnu) or set CLGPU_AARCH64_CXX to its path.")
  endif()
elseif(toolchain STREQUAL "linux-zig.cmake")
  if(DEFINED CLGPU_ARCH AND NOT CLGPU_ARCH MATCHES "^(x86_64|aarch64)$")
    message(FATAL_ERROR "CLGPU_ARCH is '${CLGPU_ARCH}': set it to x86_64 or aarch64.")
  endif()
  if(DEFINED CLGPU_GLIBC AND NOT CLGPU_GLIBC MATCHES "^2\\.[0-9]+$")
    message(FATAL_ERROR "CLGPU_GLIBC is '${CLGPU_GLIBC}': set it to a version such as 2.27.")
  endif()
  if(NOT CLGPU_ZIG)
    find_program(clgpu_python NAMES python3 python)
    execute_process(
      COMMAND ${clgpu_python} -c "import os, ziglang; print(os.path.dirname(ziglang.__file__))"
      OUTPUT_VARIABLE zig_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_program(CLGPU_ZIG NAMES zig HINTS "${zig_folder}")
  endif()
  if(NOT CLGPU_ZIG)
    message(FATAL_ERROR "zig is neither in a Python package nor on the PATH: install it with "
      "pip install ziglang==0.15.2, or set CLGPU_ZIG to its path.")
  endif()
endif()
