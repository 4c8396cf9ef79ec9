# A substitute for the NDK, to check that the sources compile and link for Android; what it builds is
# not to be shipped. The compiler is ziglang's, the C library's headers are musl's with those in
# include/, its libraries are lists of names (sysroot.py; the environment's ZIG_LIBC names them).
set(CMAKE_SYSTEM_NAME Android)
set(CMAKE_SYSTEM_VERSION 1)  # as in the NDK's toolchain file: CMake itself looks for no NDK
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER "$ENV{CLGPU_ZIG}" c++)
set(CMAKE_CXX_COMPILER_TARGET "$ENV{CLGPU_ZIG_TARGET}")
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")  # ziglang's default where nothing is optimised
# CMake's own tests then need no library.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_AR "$ENV{CLGPU_ZIG}")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
