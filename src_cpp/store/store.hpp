// The cache, which processes share: tuned parameters, program binaries, results of probes.
//
// A problem with it costs time and is never an error: damaged rows are dropped, and if nothing can
// be stored, the store is off.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clgpu::store {

// Kinds of rows.
constexpr const char* kProgram = "program";            ///< binaries of programs
constexpr const char* kTuning = "tuning";              ///< measured choices and parameters
constexpr const char* kProbe = "probe";                ///< results of probes of a device
constexpr const char* kPeaks = "peaks";                ///< peak rates of a device
constexpr const char* kVerification = "verification";  ///< results of verification
constexpr const char* kPrecision = "precision";        ///< plans of precision="mixed"
constexpr const char* kCrash = "crash";                ///< calls of drivers that ended a process

/// clgpu_delegate/cache.sqlite in the user's cache folder ($XDG_CACHE_HOME or ~/.cache; on macOS
/// ~/Library/Caches). Empty if there is none: on Android an app must name a file.
std::string default_path();

constexpr std::int64_t kDefaultLimit = std::int64_t{256} << 20;

struct Setting {
  std::string path;
  std::int64_t limit = 0;
  std::string only;  ///< the kind of rows that are read and written; empty: all
};

/// Thread-safe. No member function throws; a store that is off is always empty. Derived classes
/// keep the rows; an object of this class itself is off.
class Store {
 public:
  /// The store of a path; creates it and its folders if they are missing: a Database, or Files
  /// beside that path where SQLite cannot be loaded. One object per path and process, never null.
  /// `limit` is the most bytes of all values: beyond it, the least recently used rows are deleted.
  static std::shared_ptr<Store> open(const std::string& path, std::int64_t limit = kDefaultLimit);
  /// The store for a value of the option 'cache': "off", the path of a file, or "auto", which is
  /// the value of the environment variable CLGPU_CACHE, else default_path(). If that is "off", the
  /// variable CLGPU_PROGRAMS may name a file that stores only compiled programs, no measurements
  /// and no results of verification: then the delegate behaves as without a cache.
  static std::shared_ptr<Store> of_option(const std::string& option);
  /// A store that is off; `why` is a note, or empty if the user has turned it off.
  static std::shared_ptr<Store> off(const std::string& why = {});

  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool is_on() const;
  /// Whether CLGPU_PROGRAMS names its file.
  bool is_for_programs() const { return !only_.empty(); }
  /// The file of a Database, the folder of Files.
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

 protected:
  explicit Store(Setting setting)
      : path_(std::move(setting.path)), limit_(setting.limit), only_(std::move(setting.only)) {}

  // Called one at a time, while the store is on. An exception turns it off.
  virtual std::optional<std::string> read(const std::string& kind, const std::string& key);
  virtual void write(const std::string& kind, const std::string& key, const std::string& value,
                     const std::string& label);
  virtual void remove(const std::string& kind, const std::string& key);

  bool is_on_now() const { return on_; }
  void note(const std::string& sentence);
  void note_damaged(const std::string& kind);
  void turn_off(const std::string& why);
  /// A row cannot be `what` ("written"): the store is only read from now on.
  void only_read(const std::string& what, const std::string& why);
  /// Whether to compare the rows with the limit, after `bytes` were written. Adding up all rows
  /// takes longer than writing one, so a process does it at its first write, and then each time
  /// that it has written a hundredth of the limit.
  bool is_limit_due(std::int64_t bytes);

  const std::string path_;
  const std::int64_t limit_;
  bool writable_ = true;

 private:
  static std::shared_ptr<Store> open_for(const std::string& only, const std::string& path,
                                         std::int64_t limit);
  static std::shared_ptr<Store> programs();
  template <class Body>
  void guarded(Body body);
  bool has(const std::string& kind) const { return on_ && (only_.empty() || kind == only_); }

  const std::string only_;
  mutable std::mutex mutex_;
  bool on_ = true;
  bool is_checked_ = false;
  std::int64_t unchecked_ = 0;  // bytes written since the limit was looked at
  std::vector<std::string> notes_;
};

/// Seconds since 1970.
std::int64_t now();

/// Seconds that pass before a row that is read is marked as used again: reading should not write.
constexpr std::int64_t kDay = 24 * 60 * 60;

/// Detects damaged rows: a SHA-256 over kind, key and value.
std::string checksum(const std::string& kind, const std::string& key, std::string_view value);

}  // namespace clgpu::store
