// A store in one SQLite file (WAL), for any number of processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/sqlite.hpp"
#include "store/store.hpp"

namespace clgpu::store {

/// The complete schema. The value is the last column, so that SQLite can read the others without
/// it.
constexpr std::string_view kTable =
    "CREATE TABLE rows (kind TEXT NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL, bytes INTEGER "
    "NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL, checksum BLOB NOT NULL, value BLOB "
    "NOT NULL, PRIMARY KEY (kind, key))";

/// A file of another application or format is renamed, and a new one is created.
class Database : public Store {
 public:
  /// `asked` is absolute; `file.path` is what it leads to.
  Database(const Sqlite& api, std::string asked, Setting file);
  ~Database() override;

 private:
  class Statement;
  enum class Use { kRead, kWrite };

  std::optional<std::string> read(const std::string& kind, const std::string& key) override;
  void write(const std::string& kind, const std::string& key, const std::string& value,
             const std::string& label) override;
  void remove(const std::string& kind, const std::string& key) override;

  template <class Body>
  void attempt(Use use, const char* what, Body body);
  void connect();
  void connect_once();
  bool was_replaced(int code) const;
  void close();
  void give_up(const std::string& why);
  void rebuild(const std::string& why, const std::string& suffix, bool keep_earlier);
  void harden();
  void check_schema();
  void evict();
  void execute(const char* sql);
  std::int64_t number(const char* sql);

  const Sqlite& api_;
  const std::string asked_;  // the path as it was given, made absolute
  sqlite3* db_ = nullptr;
  std::int64_t process_ = 0;                          // the one that connected
  std::pair<std::uint64_t, std::uint64_t> identity_;  // of the file when it was opened
  int rebuilds_ = 0;
};

}  // namespace clgpu::store
