// SPDX-License-Identifier: Apache-2.0
#include "scrambled_ptx.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <random>
#include <vector>

namespace jitgemm {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "\t.reg .b32 \t%r<1641>;" says that %r1 to %r1640 exist.
void collect_registers(const std::string& line, std::map<std::string, int>& counts) {
  if (line.find(".reg ") == std::string::npos) return;
  const size_t percent = line.find('%'), open = line.find('<');
  if (percent == std::string::npos || open == std::string::npos) return;
  counts[line.substr(percent, open - percent)] = std::stoi(line.substr(open + 1));
}

// The last name of a declaration of a variable or a parameter: before '[', '=', ',' or the end.
void collect_symbol(const std::string& line, std::map<std::string, std::string>& names) {
  const size_t dot = line.find_first_not_of(" \t");
  if (dot == std::string::npos || line[dot] != '.') return;
  for (const char* directive : {".global ", ".shared ", ".const ", ".param "}) {
    const size_t at = line.find(directive);
    if (at == std::string::npos || at > dot + 8) continue;
    size_t end = std::min(line.find_first_of("[=,;", at), line.size());
    while (end > 0 && !is_word(line[end - 1])) --end;
    size_t begin = end;
    while (begin > 0 && is_word(line[begin - 1])) --begin;
    const std::string name = line.substr(begin, end - begin);
    if (!name.empty()) names.emplace(name, "v" + std::to_string(names.size()) + "_");
  }
}

std::string renamed(const std::string& line, const std::map<std::string, int>& registers,
                    const std::map<std::string, std::string>& names) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (line.compare(i, 2, "//") == 0) break;  // comments go
    const char c = line[i];
    if (c != '%' && !is_word(c)) {
      out += c;
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < line.size() && is_word(line[end])) ++end;
    std::string word = line.substr(i, end - i);
    i = end;
    size_t digits = word.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(word[digits - 1])) != 0) --digits;
    const auto reg = registers.find(word.substr(0, digits));
    if (word[0] == '%' && digits < word.size() && reg != registers.end()) {
      // The declaration's <n> leaves 0 unused.
      out += reg->first + std::to_string(reg->second - std::stoi(word.substr(digits)));
    } else if (const auto name = names.find(word); name != names.end()) {
      out += name->second;
    } else {
      out += word;
    }
  }
  return out;
}

}  // namespace

ScrambledPtx scramble_ptx(std::string_view ptx, std::string_view entry, uint64_t seed) {
  const std::vector<std::string> lines = lines_of(ptx);
  std::map<std::string, int> registers;
  std::map<std::string, std::string> names = {
      {std::string(entry), "renamed_entry"}
  };
  for (const std::string& line : lines) {
    collect_registers(line, registers);
    collect_symbol(line, names);
    if (line.starts_with("$") && line.ends_with(":")) {
      names.emplace(
          line.substr(0, line.size() - 1),
          "$other" + std::to_string(names.size() * 7 % 1000) + "_" + std::to_string(names.size()));
    }
  }

  // The body: between "{" and "}" at the start of a line, outside of the braces of inline assembly.
  ScrambledPtx out;
  out.entry = names.at(std::string(entry));
  std::string head, tail;
  std::vector<std::string> blocks;
  std::vector<std::string> labels;
  int depth = 0;
  bool body = false;
  for (const std::string& line : lines) {
    const std::string text = renamed(line, registers, names) + "\n";
    const auto opens = std::count(text.begin(), text.end(), '{');
    const auto closes = std::count(text.begin(), text.end(), '}');
    const bool begins = !body && depth == 0 && line == "{";
    depth += static_cast<int>(opens - closes);
    if (begins) {
      body = true;
      head += text;
      blocks.emplace_back();
      labels.emplace_back();
    } else if (!body) {
      (blocks.empty() ? head : tail) += text;
    } else if (depth == 0 && line == "}") {
      body = false;
      tail += text;
    } else {
      if (depth == 1 && line.starts_with("$") && line.ends_with(":")) {
        blocks.emplace_back();
        labels.push_back(text.substr(0, text.size() - 2));
      }
      blocks.back() += text;
    }
  }
  // What fell through says where it goes; a branch that is never reached does no harm.
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i] += i + 1 < blocks.size() ? "bra " + labels[i + 1] + ";\n" : "ret;\n";
  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937_64 random(seed);
  for (size_t i = order.size(); i > 2; --i) std::swap(order[i - 1], order[1 + random() % (i - 1)]);
  out.text = head;
  for (size_t i = 0; i < order.size(); ++i) {
    out.text += blocks[order[i]];
    out.moved_blocks += order[i] != i ? 1 : 0;
  }
  out.text += tail;
  return out;
}

}  // namespace jitgemm
