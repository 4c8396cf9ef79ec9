// Whose file a cache is. What it keeps is run as machine code, so nobody but the user and root may
// have written it: the rule is that of ssh for its keys (StrictModes).
#pragma once

#include <string>

namespace clgpu::store {

/// Why a file is not to be used, and what to do about it, as the end of a sentence; empty if it may
/// be used, or made where it is missing. It must be a file of the user or of root that nobody else
/// can write to, in a folder of which the same is true. The folders above may have a sticky bit
/// instead, and those above the home folder are the administrator's to look after. The files that
/// SQLite puts beside it count, too. Symbolic links are followed where their owners are trusted.
///
/// Nobody who could make the answer wrong after this function has returned is distrusted: that
/// takes the right to write to one of the folders.
std::string why_untrusted(const std::string& path);

/// Makes a folder that only the user can enter, and those above it. Throws std::system_error.
void make_private_folders(const std::string& path);

/// Makes an empty file that only the user can read and write; nothing where that is not possible.
void make_private_file(const std::string& path);

}  // namespace clgpu::store
