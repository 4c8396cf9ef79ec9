// What is kept from process to process: tuned parameters, program binaries, results of probes.
//
// One SQLite file (WAL) that any number of processes share. It is a cache: whatever is wrong with
// it costs time, never an error. What is damaged is dropped, a file that is not ours or of another
// format is put aside under a new name, and where nothing can be kept, the store is off.
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
constexpr const char* kProbe = "probe";                ///< what a device can do
constexpr const char* kPeaks = "peaks";                ///< ... and at most
constexpr const char* kVerification = "verification";  ///< partitions found wrong, and what helped

/// All of the schema. The value comes last, so that the other columns are read without it.
constexpr std::string_view kTable =
    "CREATE TABLE rows (kind TEXT NOT NULL, key TEXT NOT NULL, label TEXT NOT NULL, bytes INTEGER "
    "NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL, checksum BLOB NOT NULL, value BLOB "
    "NOT NULL, PRIMARY KEY (kind, key))";

/// clgpu_delegate/cache.sqlite in the user's cache folder ($XDG_CACHE_HOME or ~/.cache; on macOS
/// ~/Library/Caches). Empty where there is none: on Android an app must name a file of its own.
std::string default_path();

constexpr std::int64_t kDefaultLimit = std::int64_t{256} << 20;

/// Thread-safe. No member function throws; a store that is off finds and keeps nothing.
class Store {
 public:
  /// The store of a file, created where missing, with its folders; one object per path and process.
  /// `limit` bounds the bytes of all values: the longest unused go first. Never null.
  static std::shared_ptr<Store> open(const std::string& path, std::int64_t limit = kDefaultLimit);
  /// The store that the option 'cache' asks for: "off", the path of a file, or "auto", which is
  /// what the environment variable CLGPU_CACHE says, else default_path(). Where that is "off", the
  /// variable CLGPU_PROGRAMS may name a file for compiled programs: nothing that was measured or
  /// found wrong is kept there, so that whatever uses it behaves as without a cache.
  static std::shared_ptr<Store> of_option(const std::string& option);
  /// A store that is off; `why` is a note, or empty where that was asked for.
  static std::shared_ptr<Store> off(const std::string& why = {});

  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool is_on() const;
  /// Whether it is the one that CLGPU_PROGRAMS names.
  bool is_for_programs() const { return !only_.empty(); }
  const std::string& path() const { return path_; }

  /// The value of a key; none where it is absent or damaged.
  std::optional<std::string> get(const std::string& kind, const std::string& key);
  /// Keeps any bytes, instead of what the key had. Kind, key and label are text without NUL; the
  /// label tells people what it is.
  void put(const std::string& kind, const std::string& key, const std::string& value,
           const std::string& label = {});
  void erase(const std::string& kind, const std::string& key);

  /// What went wrong so far, a sentence each.
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
