#include "kernel/macros.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "kernel/sources.hpp"

namespace clgpu::kernel {
namespace {

constexpr std::string_view kComment = "//", kMacros = "// Macros ", kLine = "#line 1 \"";
constexpr std::size_t kEntry = 13;  // column at which the entries of a head begin

bool starts_with(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes a macro's name from the beginning of a text; empty if there is none.
std::string take_name(std::string_view& text) {
  std::size_t n = 0;
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  while (n < text.size() &&
         (is_capital(text[n]) || (n > 0 && (text[n] == '_' || (text[n] >= '0' && text[n] <= '9')))))
    ++n;
  std::string name(text.substr(0, n));
  text.remove_prefix(n);
  return name;
}

/// Takes "NAME" or "NAME, NAME ..." followed by blanks or the line's end; none if a line does not
/// begin like that.
std::vector<std::string> take_names(std::string_view& text) {
  std::vector<std::string> names;
  for (;;) {
    names.push_back(take_name(text));
    if (names.back().empty()) return {};
    if (text.empty() || is_blank(text.front())) return names;
    if (text.front() != ',') return {};
    text = trimmed(text.substr(1));
  }
}

/// Appends to the description of an entry; single blanks separate words.
void add_words(std::string& to, std::string_view text) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) to += (to.empty() ? "" : " ") + word;
}

/// Takes " if NAME" or " if NAME == VALUE", the condition under which macros are demanded.
std::pair<std::string, std::string> take_condition(std::string_view& text) {
  constexpr std::string_view kIf = " if ", kEquals = " == ";
  if (!starts_with(text, kIf)) return {};
  std::string_view rest = text.substr(kIf.size());
  std::pair<std::string, std::string> condition(take_name(rest), {});
  if (condition.first.empty()) return {};
  if (starts_with(rest, kEquals)) {
    rest.remove_prefix(kEquals.size());
    const std::size_t end = std::min(rest.find(' '), rest.size());
    condition.second = rest.substr(0, end);
    rest.remove_prefix(end);
  }
  text = rest;
  return condition;
}

/// The macros of a head, whose lines begin at `lines[at]`.
std::vector<DemandedMacro> read_head(const std::vector<std::string>& lines, std::size_t at,
                                     const std::string& file) {
  std::vector<DemandedMacro> macros;
  const auto comment = [&] { return at < lines.size() && starts_with(lines[at], kComment); };
  while (comment() && !starts_with(lines[at], kMacros)) ++at;
  std::size_t first = 0;  // of the current entry
  for (bool opens = true; comment(); ++at, opens = false) {
    std::string_view text = lines[at];
    if (!opens && !trimmed(text.substr(0, kEntry).substr(kComment.size())).empty()) break;
    text = text.substr(std::min(kEntry, text.size()));
    std::string_view rest = text;
    if (const std::vector<std::string> names = take_names(rest); !names.empty()) {
      first = macros.size();
      const auto [other, value] = take_condition(rest);
      for (const std::string& name : names) macros.push_back({name, file, {}, other, value});
      text = rest;
    } else if (!text.empty() && !is_blank(text.front())) {
      first = macros.size();  // "and those of ..." is not an entry
    }
    for (std::size_t i = first; i < macros.size(); ++i) add_words(macros[i].text, text);
  }
  return macros;
}

std::vector<DemandedMacro> read_demands(const std::string& file) {
  std::vector<DemandedMacro> demands;
  if (is_overridden(file)) return demands;
  std::vector<std::string> lines;
  std::istringstream text(assemble(file));
  for (std::string line; std::getline(text, line);) lines.push_back(std::move(line));
  std::set<std::string> defined;
  int conditions = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (starts_with(line, kLine)) {
      const std::string part(line.substr(kLine.size(), line.rfind('"') - kLine.size()));
      if (conditions > 0 || is_overridden(part)) continue;
      for (DemandedMacro& macro : read_head(lines, i + 1, part))
        if (defined.count(macro.name) == 0) demands.push_back(std::move(macro));
    } else if (starts_with(line, "#define ")) {
      line = trimmed(line.substr(std::string_view("#define ").size()));
      defined.insert(take_name(line));
    } else if (starts_with(line, "#if")) {
      ++conditions;
    } else if (starts_with(line, "#endif")) {
      --conditions;
    }
  }
  return demands;
}

using Demands = std::shared_ptr<const std::vector<DemandedMacro>>;

Demands known_demands(const std::string& file) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<std::string, Demands>;
  static std::uint64_t of_texts = 0;  // the value of overrides_made() for `known`
  const std::uint64_t texts = overrides_made();
  {
    const std::lock_guard<std::mutex> lock(*mutex);
    if (of_texts != texts) known->clear();
    of_texts = texts;
    if (const auto found = known->find(file); found != known->end()) return found->second;
  }
  auto demands = std::make_shared<const std::vector<DemandedMacro>>(read_demands(file));
  const std::lock_guard<std::mutex> lock(*mutex);
  if (of_texts == texts) known->insert_or_assign(file, demands);
  return demands;
}

/// Names and values of "-DNAME=VALUE" among build options.
std::map<std::string, std::string> defined_by(const std::string& options) {
  std::map<std::string, std::string> values;
  std::istringstream words(options);
  for (std::string word; words >> word;) {
    if (!starts_with(word, "-D")) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    values[word.substr(2, equals - 2)] = word.substr(std::min(equals + 1, word.size()));
  }
  return values;
}

}  // namespace

std::vector<DemandedMacro> demanded_macros(const std::string& file) { return *known_demands(file); }

void check_macros(const std::string& file, const std::string& options) {
  const auto given = defined_by(options);
  for (const DemandedMacro& macro : *known_demands(file)) {
    if (given.count(macro.name) > 0) continue;
    if (!macro.condition.empty()) {
      const auto other = given.find(macro.condition);
      if (other == given.end()) continue;
      if (macro.value.empty() ? other->second == "0" : other->second != macro.value) continue;
    }
    throw Error("a launch of kernels/" + file + " lacks the macro " + macro.name + ": kernels/" +
                macro.file + " demands it (\"" + macro.text +
                "\"); give it a value with Launch::macro or Launch::type");
  }
}

}  // namespace clgpu::kernel
