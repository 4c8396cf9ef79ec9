#include "store/sqlite.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "base/library.hpp"

namespace clgpu::store {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::string> added;
  std::unique_ptr<Sqlite> loaded;  // never unloaded: stores may live until the process ends
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::unique_ptr<Sqlite> load(void* library) {
  auto api = std::make_unique<Sqlite>();
  bool complete = true;
#define CLGPU_SQLITE_LOAD(result, name, parameters)                         \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(library, #name)); \
  complete = complete && api->name != nullptr;
  CLGPU_SQLITE_FUNCTIONS(CLGPU_SQLITE_LOAD)
#undef CLGPU_SQLITE_LOAD
#define CLGPU_SQLITE_TRY(result, name, parameters) \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(library, #name));
  CLGPU_SQLITE_OPTIONAL(CLGPU_SQLITE_TRY)
#undef CLGPU_SQLITE_TRY
  if (!complete || api->sqlite3_threadsafe() == 0) return nullptr;
  return api;
}

std::unique_ptr<Sqlite> load(const std::string& path, std::string& why) {
  void* library = open_library(path, why);
  if (library == nullptr) return nullptr;
  std::unique_ptr<Sqlite> api = load(library);
  if (api == nullptr) why = path + " is not a complete, thread-safe SQLite";
  return api;
}

}  // namespace

void add_sqlite_library(const std::string& path) {
  Registry& reg = registry();
  const std::lock_guard<std::mutex> lock(reg.mutex);
  reg.added.push_back(path);
}

const Sqlite* sqlite(std::string& why) {
  Registry& reg = registry();
  const std::lock_guard<std::mutex> lock(reg.mutex);
  if (reg.loaded != nullptr) return reg.loaded.get();
  if (const char* only = std::getenv("CLGPU_SQLITE_LIBRARY"); only != nullptr && *only != '\0')
    return (reg.loaded = load(only, why)).get();
  // Python's own library first: two copies of SQLite in one process break each other's locks on a
  // file.
  for (const std::string& path : reg.added) {
    if ((reg.loaded = load(path, why)) != nullptr) return reg.loaded.get();
  }
  if ((reg.loaded = load(RTLD_DEFAULT)) != nullptr) return reg.loaded.get();
  // The last is Android's own, which programs that adb starts can load. Apps cannot: unless they
  // bring a libsqlite3.so, they use store::Files.
  for (const char* name :
       {"libsqlite3.so.0", "libsqlite3.so", "libsqlite3.dylib", "libsqlite.so"}) {
    std::string failure;
    if ((reg.loaded = load(name, failure)) != nullptr) return reg.loaded.get();
    if (why.empty()) why = failure;
  }
  return nullptr;
}

}  // namespace clgpu::store
