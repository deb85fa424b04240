// SPDX-License-Identifier: Apache-2.0
// Module scope: variables with their initial bytes, functions by name (a declaration and its
// definition are one), then every body.
#include "ptx/resolver.h"

#include "ptx/call_graph.h"
#include "ptx/function_resolver.h"
#include "ptx/scope.h"
#include "ptx/shared_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace jitgemm::ptx {
namespace {

// Bytes of initialised data of a module: far above any kernel's tables.
constexpr uint64_t kMaxDataBytes = uint64_t{256} << 20;

class ModuleResolver {
 public:
  ModuleResolver(const SyntaxModule& syntax, std::vector<UnsupportedPlace>& unsupported)
      : syntax_(syntax), unsupported_(unsupported) {}

  Result<Module> run() {
    module_.version_major = syntax_.version_major;
    module_.version_minor = syntax_.version_minor;
    module_.target = syntax_.target;
    module_.address_size = syntax_.address_size;
    JITGEMM_TRY(variables());
    JITGEMM_TRY(headers());
    JITGEMM_TRY(aliases());
    JITGEMM_TRY(initial_values());
    JITGEMM_TRY(bodies());
    add_indirect_callees(module_);
    JITGEMM_TRY(lay_out_shared_memory(module_));
    return std::move(module_);
  }

 private:
  Status variables() {
    for (const SyntaxVariable& variable : syntax_.variables) {
      if (variable.range != 0)
        return error_at(variable.position, "expected a single name, found a range");
      JITGEMM_ASSIGN(Symbol symbol, make_symbol(variable, SymbolKind::kVariable));
      const auto index = static_cast<uint32_t>(module_.symbols.size());
      if (const auto earlier = names_.find(0, variable.name)) {
        // .extern then the definition, or the other way round.
        Symbol& known = module_.symbols[earlier->index];
        const bool either_extern =
            known.linkage == Linkage::kExtern || symbol.linkage == Linkage::kExtern;
        if (!either_extern || known.space != symbol.space) {
          return error_at(variable.position, fmt::format("'{}' is declared twice", variable.name));
        }
        if (known.linkage == Linkage::kExtern) known = std::move(symbol);
        symbol_of_.push_back(earlier->index);
        continue;
      }
      names_.declare(0, variable.name, {Name::Kind::kSymbol, index});
      symbol_of_.push_back(index);
      module_.symbols.push_back(std::move(symbol));
    }
    return ok_status();
  }

  Status headers() {
    for (const SyntaxFunction& syntax : syntax_.functions) {
      const Signature signature{syntax.returns.size(), syntax.parameters.size()};
      const auto earlier = names_.find(0, syntax.header.name);
      if (!earlier) {
        names_.declare(0, syntax.header.name,
                       {Name::Kind::kFunction, static_cast<uint32_t>(module_.functions.size())});
        module_.functions.push_back(syntax.header);
        signatures_.push_back(signature);
        chosen_.push_back(&syntax);
        continue;
      }
      const auto twice = [&] {
        return error_at(syntax.header.position,
                        fmt::format("'{}' is declared twice", syntax.header.name));
      };
      if (earlier->kind != Name::Kind::kFunction) return twice();
      Function& known = module_.functions[earlier->index];
      if (!known.is_declaration && !syntax.header.is_declaration) return twice();
      if (signatures_[earlier->index].returns != signature.returns ||
          signatures_[earlier->index].parameters != signature.parameters ||
          known.is_entry != syntax.header.is_entry) {
        return error_at(syntax.header.position,
                        fmt::format("'{}' is declared in another way", syntax.header.name));
      }
      if (!syntax.header.is_declaration) {
        known = syntax.header;
        chosen_[earlier->index] = &syntax;
      }
    }
    return ok_status();
  }

  // From here on the alias names the other function; what it was declared as stays a declaration.
  Status aliases() {
    for (const SyntaxAlias& alias : syntax_.aliases) {
      const auto from = names_.find(0, alias.name);
      const auto to = names_.find(0, alias.function);
      const auto declared = [&](const std::optional<Name>& name) {
        return name && name->kind == Name::Kind::kFunction &&
               !module_.functions[name->index].is_entry;
      };
      if (!declared(from) || !declared(to)) {
        return error_at(alias.position,
                        fmt::format("expected two declared functions, found '{}' and '{}'",
                                    alias.name, alias.function));
      }
      if (!module_.functions[from->index].is_declaration ||
          module_.functions[to->index].is_declaration) {
        return error_at(alias.position,
                        fmt::format("expected '{}' without a body and '{}' with one", alias.name,
                                    alias.function));
      }
      if (signatures_[from->index].returns != signatures_[to->index].returns ||
          signatures_[from->index].parameters != signatures_[to->index].parameters) {
        return error_at(alias.position, fmt::format("'{}' is declared in another way than '{}'",
                                                    alias.name, alias.function));
      }
      names_.replace(0, alias.name, *to);
    }
    return ok_status();
  }

  // Bytes of the symbol's data, zero where no value was given.
  Status initial_values() {
    uint64_t total = 0;
    for (size_t i = 0; i < syntax_.variables.size(); ++i) {
      const SyntaxVariable& variable = syntax_.variables[i];
      if (variable.initialisers.empty()) continue;
      Symbol& symbol = module_.symbols[symbol_of_[i]];
      if (symbol.space != Space::kGlobal && symbol.space != Space::kConst) {
        return error_at(variable.position, "expected .global or .const for an initial value");
      }
      total += symbol.size;
      if (total > kMaxDataBytes)
        return error_at(variable.position, "expected less initialised data");
      symbol.data.assign(symbol.size, 0);
      const auto bytes = static_cast<uint64_t>(type_bits(symbol.type)) / 8;
      for (const SyntaxInitialiser& value : variable.initialisers) {
        JITGEMM_TRY(initial_value(value, value.index * bytes, bytes, symbol));
      }
    }
    return ok_status();
  }

  Status initial_value(const SyntaxInitialiser& value, uint64_t offset, uint64_t bytes,
                       Symbol& symbol) {
    if (offset + bytes > symbol.size)
      return error_at(value.position, "expected no more initial values than elements");
    if (!value.symbol.empty()) {
      const auto name = names_.find(0, value.symbol);
      if (!name)
        return error_at(value.position,
                        fmt::format("expected a declared name, found '{}'", value.symbol));
      if (bytes != 8 && bytes != 4)
        return error_at(value.position, "expected an element that holds an address");
      if (name->kind == Name::Kind::kFunction) {
        Function& function = module_.functions[name->index];
        function.address_taken = true;
        if (bytes != 8 || value.addend != 0 || function.is_entry || function.is_declaration) {
          unsupported_.push_back(
              {value.position, std::string(value.symbol),
               "only the 64-bit address of a function with a body is simulated"});
        }
      }
      symbol.relocations.push_back({offset, static_cast<uint8_t>(bytes), value.generic,
                                    name->kind == Name::Kind::kFunction, name->index,
                                    value.addend});
      return ok_status();
    }
    uint64_t bits = value.literal.bits;
    const bool float_literal = type_kind(value.literal.type) == TypeKind::kFloat;
    if (symbol.type == Type::kF32 && value.literal.type == Type::kF64) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    } else if (symbol.type == Type::kF64 && value.literal.type == Type::kF32) {
      bits = std::bit_cast<uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    } else if (float_literal && symbol.type != value.literal.type) {
      return error_at(value.position,
                      fmt::format("expected a value of type .{}", type_name(symbol.type)));
    } else if (!float_literal && symbol.type == Type::kF32) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(bits)));
    } else if (!float_literal && symbol.type == Type::kF64) {
      bits = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(bits)));
    }
    std::memcpy(symbol.data.data() + offset, &bits, std::min<uint64_t>(bytes, sizeof(bits)));
    return ok_status();
  }

  Status bodies() {
    FunctionContext context{module_, signatures_, names_, mnemonics_, unsupported_};
    for (uint32_t i = 0; i < module_.functions.size(); ++i) {
      JITGEMM_TRY(resolve_function(*chosen_[i], i, context));
    }
    return ok_status();
  }

  const SyntaxModule& syntax_;
  std::vector<UnsupportedPlace>& unsupported_;
  Module module_;
  ScopeTree names_;
  MnemonicCache mnemonics_;
  std::vector<uint32_t> symbol_of_;            // of syntax_.variables
  std::vector<Signature> signatures_;          // of module_.functions
  std::vector<const SyntaxFunction*> chosen_;  // whose body is taken
};

}  // namespace

Result<Module> resolve(const SyntaxModule& syntax, std::vector<UnsupportedPlace>& unsupported) {
  return ModuleResolver(syntax, unsupported).run();
}

}  // namespace jitgemm::ptx
