// Whether a cache file can be trusted. Its programs run as machine code, so only the user and root
// may have written it. The rule is that of ssh for its keys (StrictModes).
#pragma once

#include <sys/stat.h>

#include <string>

namespace clgpu::store {

/// Why a file must not be used, and what to do about it, as the end of a sentence; empty if it may
/// be used, or created if it is missing. The file and its folder must belong to the user or to
/// root, and nobody else may write to them. Folders above may have a sticky bit instead; folders
/// above the home folder are the administrator's responsibility. The rule also covers the files
/// that SQLite creates beside it. Symbolic links are followed if their owners are trusted.
///
/// A change after this function has returned needs the right to write to one of the folders, which
/// only trusted users have.
std::string why_untrusted(const std::string& path);

/// Whether a file belongs to the user or to root, and nobody else can write to it.
bool is_own_file(const struct stat& status);

/// Makes a folder that only the user can enter, and those above it. Throws std::system_error.
void make_private_folders(const std::string& path);

/// Creates an empty file that only the user can read and write; does nothing if that is not
/// possible.
void make_private_file(const std::string& path);

}  // namespace clgpu::store
