// The kernel files, embedded in the library.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/launch.hpp"

namespace clgpu::kernel {

/// Paths below kernels/ of all embedded files, sorted.
std::vector<std::string> source_files();

/// Text of one file; throws InternalError for an unknown path.
std::string source_text(const std::string& file);

/// The file with its includes expanded, each once, and #line directives, so that a driver's
/// messages name our files and lines.
std::string assemble(const std::string& file);

/// The same without some of the files that it includes.
std::string assemble_without(std::set<std::string> files, const std::string& file);

/// The text of a launch's file, without some of those that it includes. If the launch has a
/// predicate, the kernels have two more parameters in front, and begin with a look at it
/// (common/predicate.cl). If it has more types, common/more_types.cl stands in front. If its result
/// or an input is converted, the kernels have parameters in front (common/stored_types.cl).
std::string text_of(const Launch& launch, std::set<std::string> without = {});

/// What text_of(launch) depends on: launches with the same key have the same text.
std::string text_key(const Launch& launch);

/// SHA-256, hexadecimal, of assemble(file).
std::string source_digest(const std::string& file);

/// The same of a launch's file, and of the files with types that stand in front of it.
std::string source_digest(const Launch& launch);

/// Whether a kernel computes the same with any work-group size: kernels that query their work-group
/// demand its size (reqd_work_group_size). False if the file has no such kernel.
bool any_work_group(const std::string& file, const std::string& entry);

/// Replaces the text of a file until called with an empty text: for tests, which break kernels on
/// purpose, and for replaying a bug with the kernels of an earlier version.
void override_source(const std::string& file, const std::string& text);

/// Whether the text of a file is replaced at present.
bool is_overridden(const std::string& file);

/// Number of calls of override_source: anything derived from texts is out of date when it grows.
std::uint64_t overrides_made();

/// The texts that are replaced at present, by file.
std::map<std::string, std::string> overridden_sources();

}  // namespace clgpu::kernel
