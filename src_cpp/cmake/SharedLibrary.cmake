# What all shared libraries have in common: only what a linker map lists leaves the library, its
# segments fit pages of 16 KB, and with CLGPU_STRIP its symbols go into a file of their own. (zig
# knows no "=" in a linker's options.)
function(clgpu_finish_library target map)
  if(NOT UNIX OR APPLE)
    return()
  endif()
  target_link_options(${target} PRIVATE
    "LINKER:--version-script,${map}"
    "LINKER:-z,max-page-size=16384"
    "LINKER:--gc-sections")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  if(CLGPU_STRIP)
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -DLIBRARY=$<TARGET_FILE:${target}> -DSTRIP=${CMAKE_STRIP}
        -DOBJCOPY=${CMAKE_OBJCOPY} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/Strip.cmake
      VERBATIM)
  endif()
endfunction()
