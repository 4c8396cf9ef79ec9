// Opens the store that a path or an option names.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "store/database.hpp"
#include "store/files.hpp"
#include "store/store.hpp"

namespace clgpu::store {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kProgramsLimit = std::int64_t{2} << 30;

}  // namespace

std::string default_path() {
#if defined(__ANDROID__)
  return {};
#else
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string home = variable("HOME");
#if defined(__APPLE__)
  const std::string folder = home.empty() ? "" : home + "/Library/Caches";
#else
  std::string folder = variable("XDG_CACHE_HOME");
  if (folder.empty() && !home.empty()) folder = home + "/.cache";
#endif
  return folder.empty() ? folder : folder + "/clgpu_delegate/cache.sqlite";
#endif
}

std::shared_ptr<Store> Store::of_option(const std::string& option) {
  if (option == "off") return programs();
  if (option != "auto") return open(option);
  if (const char* named = std::getenv("CLGPU_CACHE"); named != nullptr && *named != '\0')
    return std::string(named) == "off" ? programs() : open(named);
  const std::string path = default_path();
  return path.empty() ? off("there is no cache: the option 'cache' must name a file here")
                      : open(path);
}

std::shared_ptr<Store> Store::programs() {
  const char* named = std::getenv("CLGPU_PROGRAMS");
  return named == nullptr ? off() : open_for(kProgram, named, kProgramsLimit);
}

std::shared_ptr<Store> Store::open(const std::string& path, std::int64_t limit) {
  return open_for({}, path, limit);
}

std::shared_ptr<Store> Store::open_for(const std::string& only, const std::string& path,
                                       std::int64_t limit) {
  // Leaked on purpose: stores may outlive static objects.
  static auto* mutex = new std::mutex;
  static auto* stores = new std::map<std::string, std::weak_ptr<Store>>;
  if (path.empty()) return off();
  std::error_code error;
  const fs::path asked = fs::absolute(path, error);
  const fs::path full = fs::weakly_canonical(asked, error);
  Setting setting{error ? path : full.string(), limit, only};
  const std::lock_guard<std::mutex> lock(*mutex);
  std::weak_ptr<Store>& known = (*stores)[only + '\0' + setting.path];
  if (std::shared_ptr<Store> store = known.lock()) return store;
  std::string why_missing;
  std::shared_ptr<Store> store;
  if (const Sqlite* api = sqlite(why_missing); api != nullptr) {
    store = std::make_shared<Database>(*api, asked.string(), std::move(setting));
  } else {
    store = std::make_shared<Files>(asked.string(), std::move(setting));
    if (const char* named = std::getenv("CLGPU_SQLITE_LIBRARY");
        named != nullptr && *named != '\0') {
      store->warn(
          "the cache is the folder " + store->path() +
          ", since the library that CLGPU_SQLITE_LIBRARY names cannot be used: " + why_missing);
    }
  }
  known = store;
  return store;
}

}  // namespace clgpu::store
