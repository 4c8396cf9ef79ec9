# Writes kernels/**/*.cl, byte for byte, into one C++ table.
# Run as a script: cmake -DKERNELS=<dir> -DOUTPUT=<file.cpp> -P EmbedKernels.cmake
file(GLOB_RECURSE files RELATIVE ${KERNELS} ${KERNELS}/*.cl)
list(SORT files)
set(arrays "")
set(table "")
set(count 0)
foreach(file IN LISTS files)
  file(READ ${KERNELS}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(LENGTH "${hex}" length)
  math(EXPR size "${length} / 2")
  string(APPEND arrays "const unsigned char kFile${count}[] = {${bytes}};\n")
  string(APPEND table "    {\"${file}\", kFile${count}, ${size}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include <cstddef>
namespace clgpu::kernel {
struct EmbeddedFile { const char* path; const unsigned char* bytes; std::size_t size; };
extern const EmbeddedFile kEmbeddedFiles[];
extern const std::size_t kEmbeddedFileCount;
namespace {
${arrays}}
const EmbeddedFile kEmbeddedFiles[] = {
${table}};
const std::size_t kEmbeddedFileCount = ${count};
}
")
