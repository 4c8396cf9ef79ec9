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
clgpu_export_only(clgpu_delegate exports.map)
if(UNIX AND NOT APPLE)
  target_link_options(clgpu_delegate PRIVATE "LINKER:--no-undefined")
  if(CLGPU_STRIP)
    add_custom_command(TARGET clgpu_delegate POST_BUILD
      COMMAND ${CMAKE_COMMAND} -DLIBRARY=$<TARGET_FILE:clgpu_delegate> -DSTRIP=${CMAKE_STRIP}
        -DOBJCOPY=${CMAKE_OBJCOPY} -P ${PROJECT_SOURCE_DIR}/src_cpp/cmake/Strip.cmake
      VERBATIM)
  endif()
endif()

clgpu_add_accelerator(clgpu_accelerator "$<TARGET_FILE_NAME:clgpu_delegate>")
install(TARGETS clgpu_accelerator COMPONENT library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(clgpu_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clgpu_delegate)
set(clgpu_version_file ${CMAKE_CURRENT_BINARY_DIR}/clgpu_delegate-config-version.cmake)
write_basic_package_version_file(${clgpu_version_file} COMPATIBILITY SameMinorVersion)
install(TARGETS clgpu_delegate EXPORT clgpu_delegate COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/clgpu_delegate.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT clgpu_delegate FILE clgpu_delegate-config.cmake NAMESPACE clgpu::
  DESTINATION ${clgpu_package_dir} COMPONENT library)
install(FILES ${clgpu_version_file} DESTINATION ${clgpu_package_dir} COMPONENT library)
