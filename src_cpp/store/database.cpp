#include "store/database.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "store/trust.hpp"

namespace clgpu::store {
namespace {

namespace fs = std::filesystem;

// Values in the file's header. Another format gets another number, and files of older formats are
// put aside.
constexpr std::int64_t kApplicationId = 0x434C4750;  // "CLGP"
constexpr std::int64_t kFormat = 1;

constexpr int kPatienceMs = 5000;  // to wait for another process's lock

struct Failure {
  int code;
  std::string message;
};

// The file belongs to another application, or has another format of ours.
struct Foreign {
  std::string why, suffix;
  bool keep_earlier;
};

// Device and inode; zeros if there is no file.
std::pair<std::uint64_t, std::uint64_t> identity(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino)};
}

// Only one process at a time puts files of a folder aside, if the file system supports locks.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : descriptor_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC)) {
    // The wait is limited, because every user who may read the folder can lock it. Without the
    // lock, two processes may both put a file aside, and lose only a cache.
    for (int waited = 0; descriptor_ >= 0 && waited < kPatienceMs; waited += 20) {
      if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) break;
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace

// A prepared statement. Parameters count from 1, columns from 0. Throws Failure.
class Database::Statement {
 public:
  Statement(const Database& store, const char* sql) : api_(store.api_), db_(store.db_) {
    check(api_.sqlite3_prepare_v2(db_, sql, -1, &statement_, nullptr));
  }
  ~Statement() { api_.sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Text and blobs must outlive the statement.
  Statement& text(const std::string& value) {
    check(api_.sqlite3_bind_text(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                                 nullptr));
    return *this;
  }
  Statement& blob(const std::string& value) {
    check(api_.sqlite3_bind_blob(statement_, ++bound_, value.data(), static_cast<int>(value.size()),
                                 nullptr));
    return *this;
  }
  Statement& integer(std::int64_t value) {
    check(api_.sqlite3_bind_int64(statement_, ++bound_, value));
    return *this;
  }

  // True while there is another row.
  bool step() {
    const int code = api_.sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
    return code == SQLITE_ROW;
  }
  std::string_view bytes_at(int column) const {
    const void* data = api_.sqlite3_column_blob(statement_, column);
    const int size = api_.sqlite3_column_bytes(statement_, column);
    return {static_cast<const char*>(data), data == nullptr ? 0 : static_cast<std::size_t>(size)};
  }
  std::int64_t integer_at(int column) const {
    return api_.sqlite3_column_int64(statement_, column);
  }

 private:
  void check(int code) const {
    if (code != SQLITE_OK) throw Failure{code & 0xFF, api_.sqlite3_errmsg(db_)};
  }

  const Sqlite& api_;
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

Database::Database(const Sqlite& api, std::string asked, Setting file)
    : Store(std::move(file)), api_(api), asked_(std::move(asked)) {
  attempt(Use::kRead, "opened", [] {});
}

Database::~Database() {
  if (process_ == ::getpid()) close();
}

void Database::close() {
  if (db_ != nullptr) api_.sqlite3_close_v2(db_);
  db_ = nullptr;
}

void Database::give_up(const std::string& why) {
  close();
  turn_off(why);
}

void Database::execute(const char* sql) {
  Statement statement(*this, sql);
  while (statement.step()) {
  }
}

std::int64_t Database::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer_at(0) : 0;
}

// Whether the reason of an error is that another process has put the file aside and created a new
// one.
bool Database::was_replaced(int code) const {
  return code == SQLITE_IOERR && identity(path_) != identity_;
}

// Runs `body` with a connection, and turns every error into a note.
template <class Body>
void Database::attempt(Use use, const char* what, Body body) {
  if (!is_on_now() || (use == Use::kWrite && !writable_)) return;
  try {
    // A forked child must not use its parent's connection.
    if (process_ != ::getpid()) db_ = nullptr;
    if (db_ == nullptr) connect();
    try {
      try {
        body();
      } catch (const Failure& failure) {
        if (!was_replaced(failure.code)) throw;
        close();
        connect();
        body();
      }
    } catch (const Failure& failure) {
      if (failure.code == SQLITE_CORRUPT || failure.code == SQLITE_NOTADB) {
        rebuild("is damaged (" + failure.message + ")", ".damaged", false);
      } else if (use == Use::kWrite) {
        only_read(what, failure.message);
      } else {
        give_up(failure.message);
      }
    }
  } catch (const Failure& failure) {
    give_up(failure.message);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

// Opens the file, waiting for other processes that do the same, and puts it aside if it is
// unusable. Throws Failure.
void Database::connect() {
  process_ = ::getpid();
  if (const std::string why = why_untrusted(asked_); !why.empty()) throw Failure{SQLITE_PERM, why};
  make_private_folders(fs::path(path_).parent_path().string());
  for (int waited = 0;; waited += 20) {
    try {
      connect_once();
      return;
    } catch (const Foreign& foreign) {
      rebuild(foreign.why, foreign.suffix, foreign.keep_earlier);
      return;
    } catch (const Failure& failure) {
      close();
      if (failure.code == SQLITE_CORRUPT) {
        rebuild("is damaged (" + failure.message + ")", ".damaged", false);
        return;
      }
      // The switch to WAL does not wait for locks by itself.
      const bool busy = failure.code == SQLITE_BUSY || failure.code == SQLITE_LOCKED ||
                        failure.code == SQLITE_PROTOCOL || was_replaced(failure.code);
      if (!busy || waited >= kPatienceMs) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Database::connect_once() {
  // The given path may be a link; SQLite gets its target.
  if (const std::string why = why_untrusted(path_); !why.empty()) throw Failure{SQLITE_PERM, why};
  const auto before = identity(path_);
  make_private_file(path_);  // SQLite would let the umask decide
  const int code = api_.sqlite3_open_v2(
      path_.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      nullptr);
  if (code != SQLITE_OK)
    throw Failure{code & 0xFF, db_ == nullptr ? "out of memory" : api_.sqlite3_errmsg(db_)};
  identity_ = identity(path_);
  // The opened file may be an old one that another process has put aside meanwhile.
  if (before != identity_ && before != decltype(before){})
    throw Failure{SQLITE_BUSY, "another process is replacing it"};
  api_.sqlite3_busy_timeout(db_, kPatienceMs);
  harden();
  try {
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    const std::int64_t application = number("PRAGMA application_id");
    const std::int64_t format = number("PRAGMA user_version");
    if (!empty && application != kApplicationId)
      throw Foreign{"is a database of another application", ".foreign", true};
    if (!empty && format != kFormat) {
      const std::string suffix = ".format-" + std::to_string(format);
      throw Foreign{"has format " + std::to_string(format) + "; this version reads format " +
                        std::to_string(kFormat),
                    suffix, false};
    }
    if (!empty) check_schema();
    try {
      execute("PRAGMA journal_mode=WAL");  // an exported file has no WAL
    } catch (const Failure& failure) {
      if (failure.code != SQLITE_READONLY) throw;
    }
    if (empty) {
      execute("BEGIN IMMEDIATE");
      execute(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
      execute(("PRAGMA user_version=" + std::to_string(kFormat)).c_str());
      // Unless another process has created it first.
      if (number("SELECT count(*) FROM sqlite_master") == 0) execute(kTable.data());
      execute("COMMIT");
    }
    // A cache may lose its last rows in a power failure, but must not be corrupted.
    execute("PRAGMA synchronous=NORMAL");
  } catch (const Failure& failure) {
    if (failure.code == SQLITE_NOTADB) throw Foreign{"is not an SQLite database", ".foreign", true};
    if (failure.code == SQLITE_ERROR)  // a schema that cannot be read
      throw Failure{SQLITE_CORRUPT, failure.message};
    throw;
  }
}

// Turns off everything that a schema can make SQLite do. Older libraries know only some of these
// settings, and they are needed only until the schema is checked.
void Database::harden() {
  if (api_.sqlite3_db_config == nullptr) return;
  constexpr std::pair<int, int> kSwitches[] = {{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                               {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                               {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                               {SQLITE_DBCONFIG_DEFENSIVE, 1}};
  for (const auto& [what, value] : kSwitches)
    api_.sqlite3_db_config(db_, what, value, static_cast<int*>(nullptr));
}

// A schema is code: a view or a trigger may run for ever. Throws Failure if the schema has anything
// but our table.
void Database::check_schema() {
  Statement all(*this, "SELECT type, name, sql FROM sqlite_master");
  while (all.step()) {
    const std::string_view type = all.bytes_at(0), name = all.bytes_at(1), sql = all.bytes_at(2);
    const bool is_table = type == "table" && name == "rows" && sql == kTable;
    const bool is_index = type == "index" && name == "sqlite_autoindex_rows_1" && sql.empty();
    if (!is_table && !is_index)
      throw Failure{SQLITE_CORRUPT, "it has a table, index, view or trigger that is not ours"};
  }
}

// Puts the file aside and creates a new one. An earlier file of that name is overwritten, unless
// `keep_earlier`, which is for files that may hold a user's work. Throws Failure.
void Database::rebuild(const std::string& why, const std::string& suffix, bool keep_earlier) {
  close();
  if (++rebuilds_ > 3) throw Failure{SQLITE_CORRUPT, "it " + why + " repeatedly"};
  // Unless another process has done it first.
  if (const FolderLock lock(fs::path(path_).parent_path()); identity(path_) == identity_) {
    std::string target = path_ + suffix;
    for (int i = 2; keep_earlier && fs::exists(target); ++i)
      target = path_ + suffix + "-" + std::to_string(i);
    for (const char* part : {"-wal", "-shm", ""}) {
      std::error_code error;
      fs::rename(path_ + part, target + part, error);
      if (error && *part == '\0' && fs::exists(path_))
        throw Failure{SQLITE_CORRUPT, "it " + why + " and cannot be renamed: " + error.message()};
    }
    note("the cache " + path_ + " " + why + "; it was renamed to " + target +
         ", and a new one was created");
  }
  connect();
}

std::optional<std::string> Database::read(const std::string& kind, const std::string& key) {
  std::optional<std::string> value;
  attempt(Use::kRead, "read", [&] {
    bool damaged = false;
    std::int64_t used = 0;
    {
      Statement row(*this, "SELECT value, checksum, used FROM rows WHERE kind=? AND key=?");
      row.text(kind).text(key);
      if (!row.step()) return;
      const std::string_view bytes = row.bytes_at(0);
      damaged = row.bytes_at(1) != checksum(kind, key, bytes);
      if (!damaged) value = bytes;
      used = row.integer_at(2);
    }
    if (!writable_) return;
    try {
      if (damaged) {
        Statement(*this, "DELETE FROM rows WHERE kind=? AND key=?").text(kind).text(key).step();
        note_damaged(kind);
      } else if (now() - used > kDay) {  // not at each use: reading should not write
        const std::int64_t time = now();
        Statement(*this, "UPDATE rows SET used=? WHERE kind=? AND key=?")
            .integer(time)
            .text(kind)
            .text(key)
            .step();
      }
    } catch (const Failure& failure) {
      if (failure.code == SQLITE_CORRUPT) throw;
      writable_ = false;
    }
  });
  return value;
}

void Database::write(const std::string& kind, const std::string& key, const std::string& value,
                     const std::string& label) {
  const auto bytes = static_cast<std::int64_t>(value.size());
  attempt(Use::kWrite, "written", [&] {
    const std::string sum = checksum(kind, key, value);
    Statement(*this,
              "INSERT OR REPLACE INTO rows (kind, key, label, bytes, created, used, checksum, "
              "value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        .text(kind)
        .text(key)
        .text(label)
        .integer(bytes)
        .integer(now())
        .integer(now())
        .blob(sum)
        .blob(value)
        .step();
    if (is_limit_due(bytes)) evict();
  });
}

void Database::evict() {
  while (number("SELECT total(bytes) FROM rows") > limit_) {
    execute("DELETE FROM rows WHERE rowid=(SELECT rowid FROM rows ORDER BY used, rowid LIMIT 1)");
    if (api_.sqlite3_changes(db_) == 0) return;
  }
}

void Database::remove(const std::string& kind, const std::string& key) {
  attempt(Use::kWrite, "erased", [&] {
    Statement(*this, "DELETE FROM rows WHERE kind=? AND key=?").text(kind).text(key).step();
  });
}

}  // namespace clgpu::store
