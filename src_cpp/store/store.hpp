// The cache, which processes share: tuned parameters, program binaries, results of probes.
//
// One SQLite file (WAL) for any number of processes. A problem with it costs time and is never an
// error: damaged rows are dropped, a file of another application or format is renamed, and if
// nothing can be stored, the store is off.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/sqlite.hpp"

namespace clgpu::store {

// Kinds of rows.
constexpr const char* kProgram = "program";            ///< binaries of programs
constexpr const char* kTuning = "tuning";              ///< measured choices and parameters
constexpr const char* kProbe = "probe";                ///< results of probes of a device
constexpr const char* kPeaks = "peaks";                ///< peak rates of a device
constexpr const char* kVerification = "verification";  ///< results of verification
constexpr const char* kCrash = "crash";                ///< calls of drivers that ended a process

/// The complete schema. The value is the last column, so that SQLite can read the others without
/// it.
constexpr std::string_view kTable =
    "CREATE TABLE rows (kind TEXT NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL, bytes INTEGER "
    "NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL, checksum BLOB NOT NULL, value BLOB "
    "NOT NULL, PRIMARY KEY (kind, key))";

/// clgpu_delegate/cache.sqlite in the user's cache folder ($XDG_CACHE_HOME or ~/.cache; on macOS
/// ~/Library/Caches). Empty if there is none: on Android an app must name a file.
std::string default_path();

constexpr std::int64_t kDefaultLimit = std::int64_t{256} << 20;

/// Thread-safe. No member function throws; a store that is off is always empty.
class Store {
 public:
  /// The store of a file; creates the file and its folders if they are missing. One object per path
  /// and process, never null. `limit` is the most bytes of all values: beyond it, the least
  /// recently used rows are deleted.
  static std::shared_ptr<Store> open(const std::string& path, std::int64_t limit = kDefaultLimit);
  /// The store for a value of the option 'cache': "off", the path of a file, or "auto", which is
  /// the value of the environment variable CLGPU_CACHE, else default_path(). If that is "off", the
  /// variable CLGPU_PROGRAMS may name a file that stores only compiled programs, no measurements
  /// and no results of verification: then the delegate behaves as without a cache.
  static std::shared_ptr<Store> of_option(const std::string& option);
  /// A store that is off; `why` is a note, or empty if the user has turned it off.
  static std::shared_ptr<Store> off(const std::string& why = {});

  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool is_on() const;
  /// Whether CLGPU_PROGRAMS names its file.
  bool is_for_programs() const { return !only_.empty(); }
  const std::string& path() const { return path_; }

  /// The value of a key; none if it is absent or damaged.
  std::optional<std::string> get(const std::string& kind, const std::string& key);
  /// Stores any bytes, and replaces the previous value of the key. Kind, key and label are text
  /// without NUL; the label describes the row for people.
  void put(const std::string& kind, const std::string& key, const std::string& value,
           const std::string& label = {});
  void erase(const std::string& kind, const std::string& key);

  /// A sentence about each problem so far.
  std::vector<std::string> notes() const;
  /// Adds a sentence to notes() and logs it.
  void warn(const std::string& sentence);

 private:
  class Statement;
  enum class Use { kRead, kWrite };

  Store(std::string path, std::int64_t limit) : path_(std::move(path)), limit_(limit) {}
  static std::shared_ptr<Store> open_for(const std::string& only, const std::string& path,
                                         std::int64_t limit);
  static std::shared_ptr<Store> programs();
  bool has(const std::string& kind) const { return only_.empty() || kind == only_; }
  template <class Body>
  void attempt(Use use, const char* what, Body body);
  void connect();
  void connect_once();
  bool was_replaced(int code) const;
  void close();
  void rebuild(const std::string& why, const std::string& suffix, bool keep_earlier);
  void harden();
  void check_schema();
  void evict();
  void execute(const char* sql);
  std::int64_t number(const char* sql);
  void note(const std::string& sentence);
  void turn_off(const std::string& why);

  const std::string path_;
  const std::int64_t limit_;
  std::string asked_;  // the path as it was given, made absolute
  std::string only_;   // the kind of rows that are read and written; empty: all
  mutable std::mutex mutex_;
  const Sqlite* api_ = nullptr;
  sqlite3* db_ = nullptr;
  std::int64_t process_ = 0;                          // the one that connected
  std::pair<std::uint64_t, std::uint64_t> identity_;  // of the file when it was opened
  int rebuilds_ = 0;
  bool is_checked_ = false;
  std::int64_t unchecked_ = 0;  // bytes written since the limit was looked at
  bool on_ = true, writable_ = true;
  std::vector<std::string> notes_;
};

}  // namespace clgpu::store
