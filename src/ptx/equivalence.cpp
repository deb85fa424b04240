// SPDX-License-Identifier: Apache-2.0
// Whether two modules are the same program: what round trips and transformations are checked
// against. Positions, names inside functions and places in the operand pool do not count.
#include "ptx/module.h"

#include <algorithm>
#include <tuple>

namespace jitgemm::ptx {
namespace {

bool same_operand(const Function& fa, const Operand& a, const Function& fb, const Operand& b) {
  if (a.kind != b.kind) return false;
  if (a.kind != OperandKind::kVector) return a == b;
  const auto ea = fa.elements_of(a);
  const auto eb = fb.elements_of(b);
  return std::equal(ea.begin(), ea.end(), eb.begin(), eb.end());  // elements are no vectors
}

bool same_instruction(const Module& ma, const Function& fa, const Instruction& a, const Module& mb,
                      const Function& fb, const Instruction& b) {
  if (a.opcode != b.opcode || a.form != b.form || a.guard != b.guard ||
      a.guard_negated != b.guard_negated || a.modifiers != b.modifiers ||
      ma.mnemonics[a.mnemonic] != mb.mnemonics[b.mnemonic]) {
    return false;
  }
  const auto oa = fa.operands_of(a);
  const auto ob = fb.operands_of(b);
  return std::equal(oa.begin(), oa.end(), ob.begin(), ob.end(),
                    [&](const Operand& x, const Operand& y) { return same_operand(fa, x, fb, y); });
}

bool same_parameters(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Parameter& x, const Parameter& y) {
                      return x.in_register == y.in_register && x.index == y.index;
                    });
}

bool same_function(const Module& ma, const Function& a, const Module& mb, const Function& b) {
  const auto header = [](const Function& f) {
    return std::tie(f.name, f.is_entry, f.is_declaration, f.noreturn, f.linkage, f.parameter_size,
                    f.parameter_align, f.local_frame_size, f.local_frame_align, f.param_frame_size,
                    f.shared_size, f.shared_align, f.maxntid, f.reqntid, f.reqnctapercluster,
                    f.minnctapersm, f.maxnreg, f.maxclusterrank, f.explicitcluster,
                    f.blocksareclusters, f.target_lists, f.call_target_lists, f.callees);
  };
  return header(a) == header(b) && same_parameters(a.returns, b.returns) &&
         same_parameters(a.parameters, b.parameters) &&
         std::equal(a.registers.begin(), a.registers.end(), b.registers.begin(), b.registers.end(),
                    [](const Register& x, const Register& y) { return x.type == y.type; }) &&
         a.prototypes == b.prototypes &&
         std::equal(a.shared.begin(), a.shared.end(), b.shared.begin(), b.shared.end(),
                    [](const SharedPlacement& x, const SharedPlacement& y) {
                      return x.symbol == y.symbol && x.offset == y.offset;
                    }) &&
         std::equal(a.instructions.begin(), a.instructions.end(), b.instructions.begin(),
                    b.instructions.end(), [&](const Instruction& x, const Instruction& y) {
                      return same_instruction(ma, a, x, mb, b, y);
                    });
}

bool same_symbol(const Symbol& a, const Symbol& b) {
  const auto fields = [](const Symbol& s) {
    return std::tie(s.kind, s.linkage, s.space, s.type, s.size, s.align, s.incomplete_array,
                    s.function, s.offset, s.data);
  };
  if (a.function == kNoIndex && a.name != b.name) return false;
  return fields(a) == fields(b) &&
         std::equal(a.relocations.begin(), a.relocations.end(), b.relocations.begin(),
                    b.relocations.end(), [](const Relocation& x, const Relocation& y) {
                      return x.offset == y.offset && x.bytes == y.bytes && x.generic == y.generic &&
                             x.is_function == y.is_function && x.index == y.index &&
                             x.addend == y.addend;
                    });
}

}  // namespace

bool equivalent(const Module& a, const Module& b) {
  return a.version_major == b.version_major && a.version_minor == b.version_minor &&
         a.target == b.target && a.address_size == b.address_size &&
         std::equal(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                    same_symbol) &&
         std::equal(
             a.functions.begin(), a.functions.end(), b.functions.begin(), b.functions.end(),
             [&](const Function& x, const Function& y) { return same_function(a, x, b, y); });
}

}  // namespace jitgemm::ptx
