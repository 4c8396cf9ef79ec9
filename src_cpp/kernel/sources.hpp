// The kernel files, embedded in the library.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace clgpu::kernel {

/// Paths below kernels/ of all embedded files, sorted.
std::vector<std::string> source_files();

/// Text of one file; throws InternalError for an unknown path.
std::string source_text(const std::string& file);

/// The file with its includes expanded, each once, and #line marks, so that a driver's messages
/// name our files and lines.
std::string assemble(const std::string& file);

/// SHA-256, hexadecimal, of assemble(file).
std::string source_digest(const std::string& file);

/// Whether a kernel computes the same with any work-group size: those that ask about their
/// work-group demand its size (reqd_work_group_size). False where the file has no such kernel.
bool any_work_group(const std::string& file, const std::string& entry);

/// Replaces the text of a file until called with an empty text: for tests, which break kernels on
/// purpose, and for the replay of a bug with the kernels of its time.
void override_source(const std::string& file, const std::string& text);

/// Whether the text of a file is replaced at the moment.
bool is_overridden(const std::string& file);

/// How often override_source was called: what was derived from texts is out of date when it grows.
std::uint64_t overrides_made();

/// The texts that are replaced at the moment, by file.
std::map<std::string, std::string> overridden_sources();

}  // namespace clgpu::kernel
