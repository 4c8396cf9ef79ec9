# 64-bit ARM Linux by the cross compiler of Debian and Ubuntu (package g++-aarch64-linux-gnu).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
find_program(CLGPU_AARCH64_CXX aarch64-linux-gnu-g++)
set(CMAKE_CXX_COMPILER "${CLGPU_AARCH64_CXX}")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLGPU_AARCH64_CXX)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)  # nothing of this machine is for the other
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
