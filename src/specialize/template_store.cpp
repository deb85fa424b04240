// SPDX-License-Identifier: Apache-2.0
#include "specialize/template_store.h"

#include "support/filesystem.h"

#include <fmt/format.h>

#include <map>

namespace jitgemm {
namespace {

// The names in lines of the form: #include "name". Includes are relative to kernels/templates.
std::vector<std::string> included_names(std::string_view text) {
  static constexpr std::string_view kDirective = "#include \"";
  std::vector<std::string> names;
  for (size_t at = text.find(kDirective); at != std::string_view::npos;
       at = text.find(kDirective, at)) {
    const bool starts_line = at == 0 || text[at - 1] == '\n';
    at += kDirective.size();
    const size_t end = text.find('"', at);
    if (end == std::string_view::npos) break;
    if (starts_line) names.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return names;
}

}  // namespace

Result<std::string> TemplateStore::read(std::string_view name) const {
  if (!folder_.empty()) return read_file(folder_ + "/" + std::string(name));
  for (const TemplateFile& file : embedded_template_files()) {
    if (file.name == name) return std::string(file.text);
  }
  return internal_error(fmt::format("no embedded kernel template is named '{}'", name));
}

Result<TemplateClosure> TemplateStore::closure(std::string_view name) const {
  JITGEMM_ASSIGN(std::string root, read(name));
  std::map<std::string, std::string> headers;
  std::vector<std::string> pending = included_names(root);
  while (!pending.empty()) {
    std::string next = std::move(pending.back());
    pending.pop_back();
    if (headers.contains(next)) continue;
    JITGEMM_ASSIGN(std::string text, read(next));
    for (std::string& inner : included_names(text)) pending.push_back(std::move(inner));
    headers.emplace(std::move(next), std::move(text));
  }
  TemplateClosure result{
      {std::string(name), std::move(root)},
      {                 }
  };
  for (auto& [header, text] : headers) result.headers.push_back({header, std::move(text)});
  return result;
}

}  // namespace jitgemm
