#include "kernel/bodies.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "kernel/sources.hpp"

namespace clgpu::kernel {
namespace {

constexpr const char* kFunctions = "common/chain_stage.cl";
constexpr const char* kLocal = "common/local.cl";  // kFunctions has its own form of this
// Their functions are in other files.
constexpr const char* kTypes = "common/types.cl";
constexpr const char* kStoredTypes = "common/stored_types.cl";
constexpr std::size_t kLine = 128;  // bytes; as LOCAL_LINES of kLocal

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A text without comments, its lines joined where they are continued.
std::string plain_text(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
      plain += '\n';
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i), text.size()) + 1;
      plain += ' ';
    } else if (text.compare(i, 2, "\\\n") == 0) {
      ++i;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// What a text defines at file scope.
struct Names {
  std::set<std::string> macros;
  std::set<std::string> symbols;  ///< functions, types and tables
};

/// Adds the names that stand before "(", ";" or "[" outside of braces. In a macro that defines
/// functions, a name may contain "##N", where N is the width of vectors.
void add_symbols(std::string_view text, std::set<std::string>& symbols) {
  int braces = 0, parentheses = 0;
  std::string last;  // the last name
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_word(c)) {
      const std::size_t begin = i;
      while (i + 1 < text.size() && (is_word(text[i + 1]) || text[i + 1] == '#')) ++i;
      if (braces == 0 && parentheses == 0) last = text.substr(begin, i + 1 - begin);
      continue;
    }
    const bool outside = braces == 0 && parentheses == 0;
    if (outside && (c == '(' || c == ';' || c == '[') && !last.empty()) {
      for (const char* width : {"1", "2", "4", "8", "16"}) {
        symbols.insert(replaced(replaced(last, "##N##", width), "##N", width));
      }
      last.clear();
    }
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
    parentheses += c == '(' ? 1 : c == ')' ? -1 : 0;
  }
}

/// A text without comments, in two parts.
struct Code {
  std::vector<std::string> directives;  ///< the lines that begin with #
  std::string outside;                  ///< all others
};

Code code_of(const std::string& text) {
  Code code;
  std::istringstream lines(plain_text(text));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '#') {
      code.outside += line + '\n';
    } else {
      code.directives.push_back(std::move(line));
    }
  }
  return code;
}

Names names_of(const std::string& text) {
  Names names;
  const Code code = code_of(text);
  for (const std::string& line : code.directives) {
    constexpr std::string_view kDefine = "#define ";
    if (line.compare(0, kDefine.size(), kDefine) != 0) continue;
    std::size_t end = kDefine.size();
    while (end < line.size() && is_word(line[end])) ++end;
    names.macros.insert(line.substr(kDefine.size(), end - kDefine.size()));
    const std::string body = line.substr(end);
    if (body.find("static inline") != body.npos) {
      const std::size_t begin = body[0] == '(' ? body.find(')') + 1 : 0;
      add_symbols(body.substr(begin), names.symbols);
    }
  }
  add_symbols(code.outside, names.symbols);
  for (auto it = names.symbols.begin(); it != names.symbols.end();) {
    const bool small =
        std::any_of(it->begin(), it->end(), [](char c) { return c >= 'a' && c <= 'z'; });
    const bool ours = small && names.macros.count(*it) == 0 && *it != "__attribute__";
    it = ours ? std::next(it) : names.symbols.erase(it);
  }
  return names;
}

void define(std::ostringstream& out, std::set<std::string>& defined, const std::string& name,
            const std::string& value) {
  out << "#define " << name << ' ' << value << '\n';
  defined.insert(name.substr(0, name.find('(')));
}

/// The text with our parameters in front of those of each kernel.
std::string with_parameters(const std::string& text) {
  constexpr std::string_view kKernel = "\n__kernel";
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find(kKernel, from)) != text.npos;) {
    const std::size_t name = text.find("void ", at);
    const std::size_t end = std::min(text.find('(', name), text.size() - 1) + 1;
    result.append(text, from, end - from);
    result += "CHAIN_PARAMETERS ";
    from = end;
  }
  return result.append(text, from);
}

void undefine(std::ostringstream& out, const std::set<std::string>& macros) {
  for (const std::string& name : macros) out << "#undef " << name << '\n';
}

// All names at file scope get the function's name, as those of another function may differ in their
// macros.
void write_body(std::ostringstream& out, const Launch& launch, const std::string& function,
                bool copied, bool named_barriers, const std::set<std::string>& types) {
  const std::string text = text_of(launch, {kLocal});
  Names names = names_of(text);
  // Types of elements are the same for all functions, and macros make other names of theirs.
  for (const std::string& type : types) names.symbols.erase(type);
  std::set<std::string> defined = names.macros;
  for (const auto& [name, value] : launch.macros) define(out, defined, name, value);
  for (const std::string& symbol : names.symbols)
    define(out, defined, symbol, symbol + "_" + function);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    define(out, defined, "CHAIN_ITEMS_" + std::to_string(axis), std::to_string(launch.local[axis]));
  }
  const char* kind = copied ? "static inline" : "static __attribute__((noinline))";
  define(out, defined, "CHAIN_FUNCTION", kind);
  if (named_barriers) {
    define(out, defined, "barrier(fences)",
           "CHAIN_BARRIER(chain_barrier, " + std::to_string(group_items(launch)) + ")");
  }
  // The file may turn contraction off.
  out << "#pragma OPENCL FP_CONTRACT ON\n" << with_parameters(text) << '\n';
  undefine(out, defined);
}

std::string literal(const Arg& arg) {
  if (const auto* number = std::get_if<std::int32_t>(&arg)) {
    return *number == INT32_MIN ? "(-2147483647 - 1)" : std::to_string(*number);
  }
  const float value = std::get<float>(arg);
  std::uint32_t bits = 0;
  static_assert(sizeof bits == sizeof value);
  std::copy_n(reinterpret_cast<const char*>(&value), sizeof bits, reinterpret_cast<char*>(&bits));
  return "as_float(" + std::to_string(bits) + "u)";
}

}  // namespace

bool may_be_member(const Launch& launch) {
  std::size_t items = 1;
  for (const std::size_t along : launch.global) items *= along;
  return items <= INT32_MAX / 2 && !launch.is_alone && !has_cooperating_helper(launch.file) &&
         std::all_of(launch.args.begin(), launch.args.end(), [](const Arg& arg) {
           const auto* operand = std::get_if<Operand>(&arg);
           return !std::holds_alternative<LocalMemory>(arg) &&
                  (operand == nullptr || !operand->image);
         });
}

bool has_cooperating_helper(const std::string& file) {
  const std::string text = code_of(assemble(file)).outside;
  std::size_t begin = 0;  // of the current piece at file scope
  bool is_helper = false;
  int braces = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && braces++ == 0) {
      is_helper = text.substr(begin, i - begin).find("__kernel") == text.npos;
      begin = i;
    } else if (text[i] == '}' && --braces == 0) {
      const std::string body = text.substr(begin, i - begin);
      for (const char* name : {"barrier(", "get_local_id(", "get_global_id(", "get_group_id("}) {
        if (is_helper && body.find(name) != body.npos) return true;
      }
      begin = i + 1;
    } else if (text[i] == ';' && braces == 0) {
      begin = i + 1;
    }
  }
  return false;
}

std::size_t local_arrays(const std::string& file) {
  std::size_t count = 0;
  std::istringstream lines(assemble(file));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("LOCAL_");
    if (line.empty() || line[0] == '#' || line[0] == '/' || at == line.npos) continue;
    for (const std::string_view name : {"ARRAY(", "ARRAY2(", "ARRAY3(", "LINES("})
      count += line.compare(at + 6, name.size(), name) == 0 ? 1 : 0;
  }
  return count;
}

std::int64_t local_bytes_of(const std::string& file, std::size_t reported) {
  const std::size_t arrays = local_arrays(file);
  if (arrays == 0) return 0;
  if (reported == 0) return -1;
  const std::size_t lines = (reported + kLine - 1) / kLine;
  // All arrays but the first may begin up to a line later.
  return static_cast<std::int64_t>((lines + arrays - 1) * kLine);
}

std::size_t groups_of(const Launch& launch) {
  std::size_t groups = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) groups *= launch.global[axis] / launch.local[axis];
  return groups;
}

std::vector<std::string> arguments_of(const Member& member) {
  std::vector<std::string> texts;
  std::size_t next = 0;
  for (const Arg& arg : member.launch->args) {
    texts.push_back(std::holds_alternative<Operand>(arg)
                        ? "b" + std::to_string(member.buffers[next++])
                        : literal(arg));
  }
  return texts;
}

std::string Bodies::key_of(const Launch& launch) {
  std::string key = text_key(launch) + launch.entry + '\n';
  for (const auto& [name, value] : launch.macros) key += name + '=' + value + '\n';
  for (const std::size_t items : launch.local) key += std::to_string(items) + ' ';
  return key;
}

void Bodies::add(const Launch& launch, bool copied) {
  Body& body = bodies_[key_of(launch)];
  body.launch = &launch;
  ++body.uses;
  body.copied = copied;
}

std::string Bodies::text(bool named_barriers) {
  const std::string functions = assemble(kFunctions);
  std::ostringstream out;
  out << "#define CHAIN_WAITS " << (named_barriers ? 1 : 0) << '\n' << functions;
  std::set<std::string> types = names_of(source_text(kTypes)).symbols;
  types.insert(cl_name(DType::kBF16));  // of common/more_types.cl, whose functions are not shared
  for (const std::string& type : names_of(source_text(kStoredTypes)).symbols) types.insert(type);
  int number = 0;
  for (auto& [key, body] : bodies_) {
    body.function = "stage" + std::to_string(number++);
    // Copies in every place are faster for small kernels, and take seconds to compile for large
    // ones.
    write_body(out, *body.launch, body.function, body.uses == 1 || body.copied, named_barriers,
               types);
  }
  undefine(out, names_of(functions).macros);
  return out.str();
}

std::string Bodies::call(const Launch& launch, const std::vector<std::string>& arguments,
                         const std::string& groups_0, const std::string& groups_1,
                         const std::string& local_memory, const std::string& barrier,
                         const std::string& waiting) const {
  const Body& body = bodies_.at(key_of(launch));
  std::string text = body.launch->entry + "_" + body.function + "(group, item, " + groups_0 + ", " +
                     groups_1 + ", " + local_memory + ", " + barrier + ", " + waiting;
  for (const std::string& argument : arguments) text += ", " + argument;
  return text + ");";
}

}  // namespace clgpu::kernel
