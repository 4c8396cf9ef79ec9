// The part of SQLite's C API that we call, declared by us and loaded at run time: the build does
// not need its headers, and without the library only the cache is off. Values follow SQLite's
// documentation.
#pragma once

#include <cstdint>
#include <string>

namespace clgpu::store {

using sqlite3 = struct sqlite3;
using sqlite3_stmt = struct sqlite3_stmt;

constexpr int SQLITE_OK = 0, SQLITE_ERROR = 1, SQLITE_PERM = 3, SQLITE_BUSY = 5, SQLITE_LOCKED = 6,
              SQLITE_READONLY = 8, SQLITE_IOERR = 10, SQLITE_CORRUPT = 11, SQLITE_PROTOCOL = 15,
              SQLITE_NOTADB = 26, SQLITE_ROW = 100, SQLITE_DONE = 101;
// Of sqlite3_db_config: switches, each with an int and a pointer to what it was.
constexpr int SQLITE_DBCONFIG_ENABLE_TRIGGER = 1003, SQLITE_DBCONFIG_DEFENSIVE = 1010,
              SQLITE_DBCONFIG_ENABLE_VIEW = 1015, SQLITE_DBCONFIG_TRUSTED_SCHEMA = 1017;
constexpr int SQLITE_OPEN_READWRITE = 0x2, SQLITE_OPEN_CREATE = 0x4, SQLITE_OPEN_NOMUTEX = 0x8000;

// X(result, name, parameters)
#define CLGPU_SQLITE_FUNCTIONS(X)                                                        \
  X(int, sqlite3_threadsafe, ())                                                         \
  X(int, sqlite3_open_v2, (const char*, sqlite3**, int, const char*))                    \
  X(int, sqlite3_close_v2, (sqlite3*))                                                   \
  X(int, sqlite3_busy_timeout, (sqlite3*, int))                                          \
  X(int, sqlite3_changes, (sqlite3*))                                                    \
  X(const char*, sqlite3_errmsg, (sqlite3*))                                             \
  X(int, sqlite3_prepare_v2, (sqlite3*, const char*, int, sqlite3_stmt**, const char**)) \
  X(int, sqlite3_step, (sqlite3_stmt*))                                                  \
  X(int, sqlite3_finalize, (sqlite3_stmt*))                                              \
  X(int, sqlite3_bind_blob, (sqlite3_stmt*, int, const void*, int, void (*)(void*)))     \
  X(int, sqlite3_bind_text, (sqlite3_stmt*, int, const char*, int, void (*)(void*)))     \
  X(int, sqlite3_bind_int64, (sqlite3_stmt*, int, std::int64_t))                         \
  X(const void*, sqlite3_column_blob, (sqlite3_stmt*, int))                              \
  X(int, sqlite3_column_bytes, (sqlite3_stmt*, int))                                     \
  X(std::int64_t, sqlite3_column_int64, (sqlite3_stmt*, int))

// Only in some versions or builds of the library; null if missing.
#define CLGPU_SQLITE_OPTIONAL(X) X(int, sqlite3_db_config, (sqlite3*, int, ...))

/// Function pointers of the loaded library.
struct Sqlite {
#define CLGPU_SQLITE_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  CLGPU_SQLITE_FUNCTIONS(CLGPU_SQLITE_MEMBER)
  CLGPU_SQLITE_OPTIONAL(CLGPU_SQLITE_MEMBER)
#undef CLGPU_SQLITE_MEMBER
};

/// Registers a library to try before the system's: one that contains SQLite or depends on it.
void add_sqlite_library(const std::string& path);

/// The library. If the environment variable CLGPU_SQLITE_LIBRARY is set, only the library that it
/// names; else the first of: registered ones, one that the process has loaded, the system's.
/// Returns null and sets `why` if there is none.
const Sqlite* sqlite(std::string& why);

}  // namespace clgpu::store
