# Most of the time goes into the standard library's headers: those that nearly every file includes are
# read once. Others are not among them, so that a file that forgets an #include is still found out.
cmake_language(DEFER CALL target_precompile_headers clgpu_objects PRIVATE
  <map> <memory> <string> <vector>)

if(CLGPU_BUILD_JNI)
  cmake_language(DEFER CALL target_include_directories clgpu_jni SYSTEM PRIVATE
    "$ENV{CLGPU_JNI_HEADERS}")
endif()

# ziglang takes linker options by -Wl, only.
set(CMAKE_CXX_LINKER_WRAPPER_FLAG "-Wl,")
set(CMAKE_CXX_LINKER_WRAPPER_FLAG_SEP ",")
get_filename_component(stand_in "$ENV{ZIG_LIBC}" DIRECTORY)
add_link_options("-L${stand_in}/lib")
