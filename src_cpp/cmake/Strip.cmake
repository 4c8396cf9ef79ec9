# Strips a library, keeps its symbols in LIBRARY.debug, where debuggers look for them, and tells both
# sizes.  cmake -DLIBRARY=<path> -DSTRIP=<tool> -DOBJCOPY=<tool> -P Strip.cmake
function(kilobytes path result)
  file(SIZE "${path}" bytes)
  math(EXPR value "(${bytes} + 1023) / 1024")
  set(${result} "${value} KiB" PARENT_SCOPE)
endfunction()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

kilobytes("${LIBRARY}" before)
run("${OBJCOPY}" --only-keep-debug "${LIBRARY}" "${LIBRARY}.debug")
run("${STRIP}" --strip-unneeded "${LIBRARY}")
run("${OBJCOPY}" "--add-gnu-debuglink=${LIBRARY}.debug" "${LIBRARY}")
kilobytes("${LIBRARY}" after)
get_filename_component(name "${LIBRARY}" NAME)
message(STATUS "${name}: ${after}, ${before} before its symbols went into ${name}.debug")
