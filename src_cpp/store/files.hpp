// A store of one file for each row, where SQLite cannot be loaded: in Android's apps.
#pragma once

#include <optional>
#include <string>

#include "store/store.hpp"

namespace clgpu::store {

/// The files are in the folder PATH.rows, for any number of processes, without locks: a row is
/// written to a file of another name, which is then renamed. A file has the magic number
/// "CLGPROW1", the row's checksum (32 bytes), the numbers of bytes of kind, key, label and value
/// (64 bits each, little endian), and these. Its name is the SHA-256 of kind and key, its time of
/// modification that of the last use. The limit counts the bytes of the files.
class Files : public Store {
 public:
  /// `asked`: PATH as it was given, made absolute; `file.path` is what it leads to.
  Files(const std::string& asked, Setting file);

 private:
  std::optional<std::string> read(const std::string& kind, const std::string& key) override;
  void write(const std::string& kind, const std::string& key, const std::string& value,
             const std::string& label) override;
  void remove(const std::string& kind, const std::string& key) override;

  std::string file_of(const std::string& kind, const std::string& key) const;
  void evict();

  unsigned written_ = 0;
};

}  // namespace clgpu::store
