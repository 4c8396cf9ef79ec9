#include <cmath>
#include <locale>
#include <sstream>

#include "base/bfloat.hpp"
#include "passes/pass.hpp"

namespace clgpu::passes {
namespace {

constexpr std::size_t kMostDigits = 7;
constexpr int kMostRange = 1'000'000;  // a text must not make a set that fills the memory

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = text.find(at); end != std::string::npos; end = text.find(at, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::optional<int> read_index(const std::string& text) {
  if (text.empty() || text.size() > kMostDigits ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(text);
}

// "3+7-12"
bool read_indices(const std::string& text, std::set<int>& indices) {
  for (const std::string& item : split(text, '+')) {
    const std::size_t dash = item.find('-');
    const auto first = read_index(item.substr(0, dash));
    const auto last = dash == std::string::npos ? first : read_index(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first > kMostRange) return false;
    for (int i = *first; i <= *last; ++i) indices.insert(i);
  }
  return !indices.empty();
}

// A finite number above 0.
std::optional<double> read_positive(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double value = 0;
  if (!(stream >> value) || !stream.eof() || !std::isfinite(value) || value <= 0) return {};
  return value;
}

// "8/0.05/-128+9/0.1/3"
bool read_scales(const std::string& text, std::map<int, Int8Scale>& scales) {
  constexpr int kLeast = -128, kMost = 127;
  for (const std::string& item : split(text, '+')) {
    const std::vector<std::string> parts = split(item, '/');
    if (parts.size() != 3) return false;
    const bool negative = !parts[2].empty() && parts[2].front() == '-';
    const auto tensor = read_index(parts[0]);
    const auto scale = read_positive(parts[1]);
    const auto size = read_index(parts[2].substr(negative ? 1 : 0));
    if (!tensor || !scale || !size) return false;
    const Int8Scale read{static_cast<float>(*scale), negative ? -*size : *size};
    if (!std::isnormal(read.scale) || read.zero_point < kLeast || read.zero_point > kMost)
      return false;
    if (!scales.emplace(*tensor, read).second) return false;
  }
  return !scales.empty();
}

bool is_digest(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// "2/3f80bf00": a tensor, and bfloat16 numbers, all finite.
bool read_means(const std::string& text, std::map<int, std::vector<float>>& means) {
  constexpr std::size_t kDigits = 4;
  constexpr int kHex = 16;
  for (const std::string& item : split(text, '+')) {
    const std::size_t slash = item.find('/');
    if (slash == std::string::npos) return false;
    const auto tensor = read_index(item.substr(0, slash));
    const std::string digits = item.substr(slash + 1);
    if (!tensor || !is_digest(digits) || digits.size() % kDigits != 0) return false;
    std::vector<float> values;
    for (std::size_t i = 0; i < digits.size(); i += kDigits) {
      const auto bits =
          static_cast<std::uint16_t>(std::stoi(digits.substr(i, kDigits), nullptr, kHex));
      values.push_back(bfloat_to_float(bits));
      if (!std::isfinite(values.back())) return false;
    }
    if (!means.emplace(*tensor, std::move(values)).second) return false;
  }
  return !means.empty();
}

}  // namespace

std::optional<PrecisionPlan> read_precision_plan(const std::string& text) {
  PrecisionPlan plan;
  std::set<std::string> keys;
  for (const std::string& item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string key = item.substr(0, equals), value = item.substr(equals + 1);
    bool is_right = keys.insert(key).second;
    if (key == "model") {
      plan.model = value;
      is_right = is_right && is_digest(value);
    } else if (key == "error") {
      plan.bound = read_positive(value);
      is_right = is_right && plan.bound.has_value();
    } else if (key == "half") {
      is_right = is_right && read_indices(value, plan.half);
    } else if (key == "bfloat") {
      is_right = is_right && read_indices(value, plan.bfloat);
    } else if (key == "int8") {
      is_right = is_right && read_indices(value, plan.int8);
    } else if (key == "tf32") {
      is_right = is_right && read_indices(value, plan.tf32);
    } else if (key == "pairs") {
      is_right = is_right && read_indices(value, plan.bf16_pairs);
    } else if (key == "sums") {
      is_right = is_right && read_indices(value, plan.half_sums);
    } else if (key == "integers") {
      is_right = is_right && read_indices(value, plan.integers);
    } else if (key == "scales") {
      is_right = is_right && read_scales(value, plan.scales);
    } else if (key == "means") {
      is_right = is_right && read_means(value, plan.means);
    } else {
      is_right = false;
    }
    if (!is_right) return std::nullopt;
  }
  if (plan.model.empty()) return std::nullopt;
  return plan;
}

}  // namespace clgpu::passes
