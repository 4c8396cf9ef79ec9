#include "base/gpu_family.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace clgpu {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// The first number of at most four digits after `word`, possibly after other characters; 0 if there
// is none before the next letter.
int number_after(const std::string& text, const std::string& word) {
  const std::size_t found = text.find(word);
  if (found == text.npos) return 0;
  std::size_t i = found + word.size();
  if (text.compare(i, 4, "(tm)") == 0) i += 4;
  if (text.compare(i, 5, " (tm)") == 0) i += 5;
  while (i < text.size() && (text[i] == ' ' || text[i] == '-')) ++i;
  int number = 0;
  for (int digits = 0; i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 4; ++digits)
    number = 10 * number + (text[i++] - '0');
  return number;
}

// From Arm's own list of processors; the names of Valhall's successors are not known yet.
int mali_architecture(const std::string& name) {
  if (has(name, "mali-t")) return kMidgard;
  constexpr std::array<int, 6> bifrost{31, 51, 52, 71, 72, 76};
  constexpr std::array<int, 4> fifth{620, 625, 720, 725};
  const int number =
      has(name, "immortalis") ? number_after(name, "immortalis-g") : number_after(name, "mali-g");
  if (number == 0) return 0;
  if (std::find(bifrost.begin(), bifrost.end(), number) != bifrost.end()) return kBifrost;
  if (std::find(fifth.begin(), fifth.end(), number) != fifth.end() || number >= 900)
    return kFifthGeneration;
  return kValhall;
}

}  // namespace

Gpu classify_gpu(const std::string& vendor, const std::string& name, const std::string& version) {
  const std::string maker = lower(vendor), device = lower(name);
  if (has(device, "adreno") || has(maker, "qualcomm")) {
    int number = number_after(device, "adreno");
    if (number == 0) number = number_after(lower(version), "adreno");
    return {GpuFamily::kAdreno, number / 100};
  }
  if (has(device, "mali-") || has(device, "immortalis"))
    return {GpuFamily::kMali, mali_architecture(device)};
  if (maker == "arm") return {GpuFamily::kMali, 0};
  if (has(device, "powervr") || has(maker, "imagination")) return {GpuFamily::kPowerVr, 0};
  if (has(device, "videocore") || has(maker, "broadcom")) return {GpuFamily::kVideoCore, 0};
  if (has(maker, "nvidia")) return {GpuFamily::kNvidia, 0};
  // Samsung's Xclipse is RDNA.
  if (has(maker, "advanced micro devices") || has(maker, "amd") || has(device, "xclipse"))
    return {GpuFamily::kAmd, 0};
  if (has(maker, "intel")) return {GpuFamily::kIntel, 0};
  return {};
}

const char* name_of(GpuFamily family) {
  switch (family) {
    case GpuFamily::kNvidia:
      return "nvidia";
    case GpuFamily::kAmd:
      return "amd";
    case GpuFamily::kIntel:
      return "intel";
    case GpuFamily::kAdreno:
      return "adreno";
    case GpuFamily::kMali:
      return "mali";
    case GpuFamily::kPowerVr:
      return "powervr";
    case GpuFamily::kVideoCore:
      return "videocore";
    case GpuFamily::kOther:
      break;
  }
  return "other";
}

}  // namespace clgpu
