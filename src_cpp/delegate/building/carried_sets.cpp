#include "delegate/building/carried_sets.hpp"

namespace clgpu::delegate {
namespace {

std::vector<std::string> names_of(const Options& options) {
  std::vector<std::string> names;
  for (const CarriedTensor& tensor : options.carry) names.push_back(tensor.name);
  return names;
}

}  // namespace

Carriers::Carriers(const Target& target) : Carriers(target, names_of(target.options)) {
  for (const CarriedTensor& tensor : target.options.carry) counts_.push_back(tensor.largest);
}

Carriers::Carriers(const Target& target, std::vector<std::string> names)
    : set_(std::make_shared<runtime::CarriedSet>(target.context, names)),
      told_(names.size()),
      copied_(names.size()) {}

std::shared_ptr<runtime::Pool> Carriers::pool(
    const std::function<std::shared_ptr<runtime::Pool>()>& make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pool_ == nullptr) pool_ = make();
  return pool_;
}

Carriers::Finder Carriers::finder(std::pair<int, int> what, const std::function<Finder()>& make) {
  const std::lock_guard<std::mutex> lock(making_);
  Finder& known = finders_[what];
  if (known == nullptr) known = make();
  return known;
}

void Carriers::forget_found(int number) {
  // Each inference asks for each of its outputs, a model's caches among them.
  if (number < 0 || counts_.size() <= static_cast<std::size_t>(number) ||
      counts_[static_cast<std::size_t>(number)] < 0)
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Found& found = found_[number];
  found.is_true = false;
  ++found.forgotten;
}

void* Carriers::place_for_found(int number, DType type, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Found& found = found_[number];
  found.before = found.forgotten;
  Largest& largest = found.largest;
  if (type == DType::kI32) {
    largest.indices.resize(bytes / sizeof largest.indices[0]);
    return largest.indices.data();
  }
  largest.values.resize(bytes / sizeof largest.values[0]);
  return largest.values.data();
}

void Carriers::tell_found(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Found& found = found_[number];
  found.is_true = found.before == found.forgotten;
}

std::optional<Largest> Carriers::found(int number, int count) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = found_.find(number);
  if (known == found_.end() || !known->second.is_true ||
      counts_.at(static_cast<std::size_t>(number)) != count)
    return std::nullopt;
  return known->second.largest;
}

void Carriers::tell(int number, int graph, std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  told_.at(static_cast<std::size_t>(number))[graph] = std::move(reason);
}

std::map<int, std::string> Carriers::told(int number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return told_.at(static_cast<std::size_t>(number));
}

void Carriers::tell_copied(int number, int graph, std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  copied_.at(static_cast<std::size_t>(number))[graph] = std::move(reason);
}

std::map<int, std::string> Carriers::copied(int number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return copied_.at(static_cast<std::size_t>(number));
}

// An interpreter may have the address of one that is gone.
std::shared_ptr<Carriers> CarriedSets::of(const TfLiteContext* main, const Target& target) {
  if (target.options.carry.empty()) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::weak_ptr<Carriers>& known = known_[main];
  std::shared_ptr<Carriers> carriers = known.lock();
  if (carriers == nullptr) known = carriers = std::make_shared<Carriers>(target);
  last_ = carriers;
  return carriers;
}

std::shared_ptr<Carriers> CarriedSets::last() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_.lock();
}

}  // namespace clgpu::delegate
