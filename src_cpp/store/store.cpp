#include "store/store.hpp"

#include <chrono>
#include <exception>

#include "base/log.hpp"
#include "base/sha256.hpp"

namespace clgpu::store {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string checksum(const std::string& kind, const std::string& key, std::string_view value) {
  constexpr std::string_view kNul("\0", 1);
  return Sha256().update(kind).update(kNul).update(key).update(kNul).update(value).digest();
}

std::shared_ptr<Store> Store::off(const std::string& why) {
  std::shared_ptr<Store> store(new Store({}));
  store->on_ = false;
  if (!why.empty()) store->notes_.push_back(why);
  return store;
}

template <class Body>
void Store::guarded(Body body) {
  try {
    body();
  } catch (const std::exception& error) {  // too little memory
    turn_off(error.what());
  }
}

std::optional<std::string> Store::get(const std::string& kind, const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<std::string> value;
  if (has(kind)) guarded([&] { value = read(kind, key); });
  return value;
}

void Store::put(const std::string& kind, const std::string& key, const std::string& value,
                const std::string& label) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool fits = static_cast<std::int64_t>(value.size()) <= limit_;
  if (has(kind) && writable_ && fits) guarded([&] { write(kind, key, value, label); });
}

void Store::erase(const std::string& kind, const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has(kind) && writable_) guarded([&] { remove(kind, key); });
}

// Those of a store that is off from its beginning.
std::optional<std::string> Store::read(const std::string& /*kind*/, const std::string& /*key*/) {
  return std::nullopt;
}
void Store::write(const std::string& /*kind*/, const std::string& /*key*/,
                  const std::string& /*value*/, const std::string& /*label*/) {}
void Store::remove(const std::string& /*kind*/, const std::string& /*key*/) {}

bool Store::is_on() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return on_;
}

std::vector<std::string> Store::notes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return notes_;
}

void Store::warn(const std::string& sentence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  note(sentence);
}

void Store::note(const std::string& sentence) {
  log(LogLevel::kWarning, sentence);
  notes_.push_back(sentence);
}

void Store::note_damaged(const std::string& kind) {
  note("a row of kind '" + kind + "' of the cache " + path_ + " was damaged; it was dropped");
}

void Store::turn_off(const std::string& why) {
  on_ = false;
  note("the cache " + path_ + " is off: " + why);
}

void Store::only_read(const std::string& what, const std::string& why) {
  writable_ = false;
  note("the cache " + path_ + " is read-only from now on: a row cannot be " + what + ": " + why);
}

bool Store::is_limit_due(std::int64_t bytes) {
  unchecked_ += bytes;
  if (is_checked_ && unchecked_ < limit_ / 100) return false;
  is_checked_ = true;
  unchecked_ = 0;
  return true;
}

}  // namespace clgpu::store
