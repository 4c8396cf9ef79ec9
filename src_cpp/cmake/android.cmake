# The toolchain of the NDK in ANDROID_NDK_HOME (check_platform.cmake has seen that there is one).
# The cache and the list keep it for later runs and for CMake's own test builds.
set(CLGPU_NDK "$ENV{ANDROID_NDK_HOME}" CACHE PATH "The Android NDK that this folder builds with")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLGPU_NDK)
include("${CLGPU_NDK}/build/cmake/android.toolchain.cmake")
