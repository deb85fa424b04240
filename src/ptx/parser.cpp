// SPDX-License-Identifier: Apache-2.0
// Module and function structure: directives, headers, statements and scopes (PTX ISA 4.3, 5, 7,
// 11).
#include "ptx/parser.h"

#include "ptx/declaration_parser.h"
#include "ptx/lexer.h"
#include "ptx/operand_parser.h"
#include "ptx/targets.h"
#include "ptx/token_cursor.h"

#include <fmt/format.h>

#include <utility>

namespace jitgemm::ptx {
namespace {

constexpr int kMaxScopeDepth = 256;
constexpr size_t kMaxMnemonicWords = 40;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : cursor_(std::move(tokens)) {}

  Result<SyntaxModule> run() {
    JITGEMM_TRY(preamble());
    while (!cursor_.at_end()) JITGEMM_TRY(module_statement());
    return std::move(module_);
  }

 private:
  // .version, .target and .address_size come first and in this order (PTX ISA 11.1).
  Status preamble() {
    if (!cursor_.peek().is_dot("version")) return cursor_.expected(".version");
    cursor_.take();
    const std::string_view version = cursor_.peek().text;
    const size_t dot = version.find('.');
    if (cursor_.peek().kind != TokenKind::kFloat || dot == 0 || dot > 3 ||
        dot + 1 >= version.size() || version.size() - dot > 4 ||
        version.find_first_not_of("0123456789.") != std::string_view::npos) {
      return cursor_.expected("a version such as 9.0");
    }
    for (const char c : version.substr(0, dot)) {
      module_.version_major = module_.version_major * 10 + static_cast<uint32_t>(c - '0');
    }
    for (const char c : version.substr(dot + 1)) {
      module_.version_minor = module_.version_minor * 10 + static_cast<uint32_t>(c - '0');
    }
    cursor_.take();
    if (!cursor_.peek().is_dot("target")) return cursor_.expected(".target");
    cursor_.take();
    const SourcePosition target = cursor_.peek().position;
    JITGEMM_ASSIGN(module_.target, cursor_.expect_identifier("a target such as sm_90a"));
    if (!parse_target(module_.target))
      note(target, ".target " + module_.target, "no target of the form sm_90, sm_90a or sm_100f");
    while (cursor_.take_if(",")) {
      JITGEMM_TRY(status_of(cursor_.expect_identifier("a target option")));  // debug, texmode_*
    }
    if (cursor_.peek().is_dot("address_size")) {
      cursor_.take();
      const Status wrong = cursor_.expected("32 or 64");
      JITGEMM_ASSIGN(module_.address_size, cursor_.expect_u32("an address size"));
      if (module_.address_size != 64 && module_.address_size != 32) return wrong;
      if (module_.address_size != 64)
        note(cursor_.peek().position, ".address_size 32", "only 64-bit addresses are simulated");
    }
    return ok_status();
  }

  template <typename T>
  static Status status_of(const Result<T>& result) {
    return result ? ok_status() : result.error();
  }

  void note(SourcePosition position, std::string_view text, std::string_view reason) {
    module_.unsupported.push_back({position, std::string(text), std::string(reason)});
  }

  Status module_statement() {
    const Token& token = cursor_.peek();
    if (cursor_.take_if(";")) return ok_status();
    if (token.kind != TokenKind::kDotWord) return cursor_.expected("a directive");
    if (token.text == "file") {
      cursor_.skip_line(token.position.line);
      return ok_status();
    }
    if (token.text == "section") return skip_section();
    if (token.text == "pragma") return skip_to_semicolon();
    if (token.text == "alias") return alias();
    Linkage linkage = Linkage::kInternal;
    while (true) {
      if (cursor_.peek().is_dot("extern"))
        linkage = Linkage::kExtern;
      else if (cursor_.peek().is_dot("visible"))
        linkage = Linkage::kVisible;
      else if (cursor_.peek().is_dot("weak"))
        linkage = Linkage::kWeak;
      else if (cursor_.peek().is_dot("common"))
        linkage = Linkage::kCommon;
      else
        break;
      cursor_.take();
    }
    const SourcePosition position = cursor_.peek().position;
    if (cursor_.peek().is_dot("entry") || cursor_.peek().is_dot("func")) {
      return function(linkage, cursor_.take().text == "entry", position);
    }
    if (cursor_.peek().is_dot("tex") || cursor_.peek().is_dot("texref") ||
        cursor_.peek().is_dot("samplerref") || cursor_.peek().is_dot("surfref")) {
      note(position, cursor_.peek().text, "textures and surfaces are not simulated");
      return skip_to_semicolon();
    }
    const Space space = declared_space(cursor_.peek().text);
    if (cursor_.peek().kind != TokenKind::kDotWord || space == Space::kNone ||
        space == Space::kParam || space == Space::kLocal) {
      return cursor_.expected("a module-level directive or declaration");
    }
    cursor_.take();
    if (cursor_.peek().is_dot("texref") || cursor_.peek().is_dot("samplerref") ||
        cursor_.peek().is_dot("surfref")) {
      note(position, cursor_.peek().text, "textures and surfaces are not simulated");
      return skip_to_semicolon();
    }
    return parse_declaration(cursor_, linkage, space, module_.variables);
  }

  // .section .debug_str { ... }: debugging data, no program.
  Status skip_section() {
    while (!cursor_.peek().is("{")) {
      if (cursor_.at_end()) return cursor_.expected("'{' of a section");
      cursor_.take();
    }
    uint64_t depth = 0;
    do {
      if (cursor_.at_end()) return cursor_.expected("'}' of a section");
      if (cursor_.peek().is("{")) ++depth;
      if (cursor_.peek().is("}")) --depth;
      cursor_.take();
    } while (depth > 0);
    return ok_status();
  }

  Status skip_to_semicolon() {
    while (!cursor_.take_if(";")) {
      if (cursor_.at_end()) return cursor_.expected("';'");
      cursor_.take();
    }
    return ok_status();
  }

  // .alias name, function; (PTX ISA 11.2.3)
  Status alias() {
    SyntaxAlias& out = module_.aliases.emplace_back();
    out.position = cursor_.take().position;
    JITGEMM_ASSIGN(out.name, cursor_.expect_identifier("a function name"));
    JITGEMM_TRY(cursor_.expect(","));
    JITGEMM_ASSIGN(out.function, cursor_.expect_identifier("a function name"));
    return cursor_.expect(";");
  }

  Status function(Linkage linkage, bool is_entry, SourcePosition position) {
    SyntaxFunction& out = module_.functions.emplace_back();
    out.header.linkage = linkage;
    out.header.is_entry = is_entry;
    out.header.position = position;
    // .attribute(...) may stand before the return value.
    if (cursor_.peek().is_dot("attribute")) {
      cursor_.take();
      while (!cursor_.take_if(")")) {
        if (cursor_.at_end()) return cursor_.expected("')'");
        cursor_.take();
      }
    }
    if (!is_entry && cursor_.peek().is("("))
      JITGEMM_TRY(parse_parameter_list(cursor_, out.returns));
    JITGEMM_ASSIGN(out.header.name, cursor_.expect_identifier("a function name"));
    if (cursor_.peek().is("(")) JITGEMM_TRY(parse_parameter_list(cursor_, out.parameters));
    while (cursor_.peek().kind == TokenKind::kDotWord) JITGEMM_TRY(function_directive(out.header));
    if (cursor_.take_if(";")) {
      out.header.is_declaration = true;
      return ok_status();
    }
    if (!cursor_.peek().is("{")) return cursor_.expected("';', '{' or a performance directive");
    return body(out);
  }

  Status three_numbers(std::array<uint32_t, 3>& out) {
    out = {1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
      if (i > 0 && !cursor_.take_if(",")) break;
      JITGEMM_ASSIGN(out[i], cursor_.expect_u32("a number"));
    }
    return ok_status();
  }

  Status function_directive(Function& header) {
    const Status unknown = cursor_.expected("a performance directive");
    const std::string_view word = cursor_.take().text;
    if (word == "maxntid") return three_numbers(header.maxntid);
    if (word == "reqntid") return three_numbers(header.reqntid);
    if (word == "reqnctapercluster") return three_numbers(header.reqnctapercluster);
    if (word == "explicitcluster") {
      header.explicitcluster = true;
      return ok_status();
    }
    if (word == "blocksareclusters") {
      header.blocksareclusters = true;
      return ok_status();
    }
    if (word == "noreturn") {
      header.noreturn = true;
      return ok_status();
    }
    if (word == "pragma") return skip_to_semicolon();
    if (word == "abi_preserve" || word == "abi_preserve_control" || word == "minnctapersm" ||
        word == "maxnctapersm" || word == "maxnreg" || word == "maxclusterrank") {
      JITGEMM_ASSIGN(const uint32_t value, cursor_.expect_u32("a number"));
      if (word == "minnctapersm") header.minnctapersm = value;
      if (word == "maxnreg") header.maxnreg = value;
      if (word == "maxclusterrank") header.maxclusterrank = value;
      return ok_status();
    }
    return unknown;
  }

  Status body(SyntaxFunction& out) {
    int depth = 0;
    do {
      SyntaxStatement statement;
      statement.position = cursor_.peek().position;
      if (cursor_.take_if("{")) {
        if (++depth > kMaxScopeDepth) return cursor_.expected("scopes nested less deeply");
        statement.kind = SyntaxStatement::Kind::kScopeBegin;
        out.statements.push_back(statement);
      } else if (cursor_.take_if("}")) {
        --depth;
        statement.kind = SyntaxStatement::Kind::kScopeEnd;
        out.statements.push_back(statement);
      } else if (!cursor_.take_if(";")) {
        JITGEMM_TRY(body_statement(out, statement));
      }
    } while (depth > 0);
    return ok_status();
  }

  Status body_statement(SyntaxFunction& out, SyntaxStatement& statement) {
    const Token& token = cursor_.peek();
    if (token.kind == TokenKind::kDotWord) return body_directive(out, statement);
    if (token.kind == TokenKind::kIdentifier && cursor_.peek(1).is(":"))
      return label(out, statement);
    return instruction(out, statement);
  }

  Status body_directive(SyntaxFunction& out, const SyntaxStatement& statement) {
    const Token& token = cursor_.peek();
    if (token.text == "loc" || token.text == "file") {
      cursor_.skip_line(token.position.line);
      return ok_status();
    }
    if (token.text == "pragma") return skip_to_semicolon();
    Linkage linkage = Linkage::kInternal;
    if (token.text == "extern") {
      linkage = Linkage::kExtern;
      cursor_.take();
    }
    const std::string_view word = cursor_.peek().text;
    const Space space = declared_space(word);
    if (cursor_.peek().kind != TokenKind::kDotWord || (word != "reg" && space == Space::kNone)) {
      return cursor_.expected("an instruction, a label or a declaration");
    }
    cursor_.take();
    const size_t first = out.variables.size();
    JITGEMM_TRY(parse_declaration(cursor_, linkage, space, out.variables));
    for (size_t i = first; i < out.variables.size(); ++i) {
      SyntaxStatement declared = statement;
      declared.kind = SyntaxStatement::Kind::kVariable;
      declared.index = static_cast<uint32_t>(i);
      out.statements.push_back(declared);
    }
    return ok_status();
  }

  Status label(SyntaxFunction& out, SyntaxStatement& statement) {
    statement.kind = SyntaxStatement::Kind::kLabel;
    statement.name = cursor_.take().text;
    cursor_.take();
    if (cursor_.peek().is_dot("branchtargets") || cursor_.peek().is_dot("calltargets")) {
      const bool calls = cursor_.take().text == "calltargets";
      statement.kind =
          calls ? SyntaxStatement::Kind::kCallTargets : SyntaxStatement::Kind::kBranchTargets;
      do {
        JITGEMM_ASSIGN(statement.targets.emplace_back(),
                       cursor_.expect_identifier(calls ? "a function" : "a label"));
      } while (cursor_.take_if(","));
      JITGEMM_TRY(cursor_.expect(";"));
    } else if (cursor_.peek().is_dot("callprototype")) {
      cursor_.take();
      statement.kind = SyntaxStatement::Kind::kCallPrototype;
      JITGEMM_TRY(prototype(statement.prototype));
    }
    out.statements.push_back(std::move(statement));
    return ok_status();
  }

  Status formal_parameters(std::vector<FormalParameter>& out) {
    std::vector<SyntaxVariable> list;
    if (cursor_.peek().is("(")) JITGEMM_TRY(parse_parameter_list(cursor_, list));
    for (const SyntaxVariable& variable : list) {
      const auto element =
          static_cast<uint32_t>(type_bits(variable.type) + 7) / 8 * variable.vector;
      out.push_back({variable.space == Space::kNone, variable.type, element * variable.elements,
                     variable.align != 0 ? variable.align : element});
    }
    return ok_status();
  }

  Status prototype(CallPrototype& out) {
    JITGEMM_TRY(formal_parameters(out.return_list));
    JITGEMM_TRY(status_of(cursor_.expect_identifier("'_' of a prototype")));
    JITGEMM_TRY(formal_parameters(out.parameter_list));
    out.returns = static_cast<uint32_t>(out.return_list.size());
    out.parameters = static_cast<uint32_t>(out.parameter_list.size());
    while (cursor_.peek().kind == TokenKind::kDotWord) {
      Function directives;
      JITGEMM_TRY(function_directive(directives));
      out.noreturn = out.noreturn || directives.noreturn;
    }
    return cursor_.expect(";");
  }

  Status instruction(SyntaxFunction& out, SyntaxStatement& statement) {
    SyntaxInstruction& parsed = out.instructions.emplace_back();
    if (cursor_.take_if("@")) {
      parsed.guard_negated = cursor_.take_if("!");
      JITGEMM_ASSIGN(parsed.guard, cursor_.expect_identifier("a predicate register"));
    }
    statement.position = cursor_.peek().position;
    JITGEMM_ASSIGN(parsed.words.emplace_back(), cursor_.expect_identifier("an instruction"));
    while (cursor_.peek().kind == TokenKind::kDotWord) {
      if (parsed.words.size() == kMaxMnemonicWords) return cursor_.expected("fewer modifiers");
      parsed.words.push_back(cursor_.take().text);
    }
    JITGEMM_TRY(parse_operands(cursor_, parsed.operands));
    statement.kind = SyntaxStatement::Kind::kInstruction;
    statement.index = static_cast<uint32_t>(out.instructions.size() - 1);
    out.statements.push_back(statement);
    return ok_status();
  }

  TokenCursor cursor_;
  SyntaxModule module_;
};

}  // namespace

Result<SyntaxModule> parse(std::string_view text) {
  JITGEMM_ASSIGN(std::vector<Token> tokens, tokenize(text));
  return Parser(std::move(tokens)).run();
}

}  // namespace jitgemm::ptx
