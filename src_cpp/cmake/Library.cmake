# libclgpu_delegate, its header, and what find_package(clgpu_delegate) reads: the target
# clgpu::clgpu_delegate. Installed as the component "library".
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_library(clgpu_delegate SHARED)
add_library(clgpu::clgpu_delegate ALIAS clgpu_delegate)
target_link_libraries(clgpu_delegate PRIVATE clgpu_objects)
target_include_directories(clgpu_delegate INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
clgpu_finish_library(clgpu_delegate ${maps}/exports.map)
if(UNIX AND NOT APPLE)
  target_link_options(clgpu_delegate PRIVATE "LINKER:--no-undefined")
endif()

clgpu_add_accelerator(clgpu_accelerator "$<TARGET_FILE_NAME:clgpu_delegate>")
if(CLGPU_BUILD_JNI)
  add_subdirectory(android/src/main/cpp jni)
  if(NOT CMAKE_LIBRARY_OUTPUT_DIRECTORY)  # beside the others; Gradle has a folder of its own
    set_target_properties(clgpu_jni PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endif()
endif()
install(TARGETS clgpu_accelerator COMPONENT library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET clgpu_compile)  # beside the library, which looks for it there
  install(TARGETS clgpu_compile COMPONENT library RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

set(clgpu_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clgpu_delegate)
set(clgpu_version_file ${CMAKE_CURRENT_BINARY_DIR}/clgpu_delegate-config-version.cmake)
set(clgpu_same_minor_file ${CMAKE_CURRENT_BINARY_DIR}/clgpu_delegate-config-same-minor.cmake)
configure_file(src_cpp/cmake/PackageVersion.cmake.in ${clgpu_version_file} @ONLY)
write_basic_package_version_file(${clgpu_same_minor_file} COMPATIBILITY SameMinorVersion)
install(TARGETS clgpu_delegate EXPORT clgpu_delegate COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/clgpu_delegate.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT clgpu_delegate FILE clgpu_delegate-config.cmake NAMESPACE clgpu::
  DESTINATION ${clgpu_package_dir} COMPONENT library)
install(FILES ${clgpu_version_file} ${clgpu_same_minor_file}
  DESTINATION ${clgpu_package_dir} COMPONENT library)
