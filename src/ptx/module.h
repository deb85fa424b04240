// SPDX-License-Identifier: Apache-2.0
// The resolved program: what the resolver makes of PTX text and the interpreter executes. Names are
// gone (dense ids), scopes are flattened, branch targets are instruction indices, every instruction
// has a family, decoded modifiers and operands in the slots of its row in the instruction table.
// Plain data; must not know how it was parsed nor how it will run.
#pragma once

#include "ptx/modifiers.h"
#include "ptx/types.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

enum class Opcode : uint16_t {
#define OPCODE(name, text) name,
#include "ptx/opcodes.def"
#undef OPCODE
};
// The words that start every mnemonic of the family, "cp.async.bulk".
std::string_view opcode_name(Opcode opcode);

enum class SpecialRegister : uint8_t {
#define SPECIAL(name, text, type) name,
#define SPECIAL_VECTOR(name, text) name,
#define SPECIAL_NUMBERED(name, text, type, count) name,
#include "ptx/special_registers.def"
#undef SPECIAL
#undef SPECIAL_VECTOR
#undef SPECIAL_NUMBERED
};

inline constexpr uint32_t kNoIndex = UINT32_MAX;
// The form of an instruction that no row matched; never in a module that load_module() returned.
inline constexpr uint16_t kNoForm = UINT16_MAX;

struct SourcePosition {
  uint32_t line = 0;  // of the PTX text, from 1
  uint32_t column = 0;
};

// What an operand is. The comment names the fields of Operand that hold it.
enum class OperandKind : uint8_t {
  kNone,       // an optional operand that was left out
  kRegister,   // index: register of the function; negated: !p
  kImmediate,  // value: the bits, sign- or zero-extended to 64; type: kU64/kS64, kF32 or kF64 as
               // written
  kSpecialRegister,  // index: SpecialRegister; component: x y z w (0-3), or the number of %envreg
  kSymbol,           // the address of Module::symbols[index] plus value, as a number
  kAddress,          // [..]: base says what index is; value: byte offset added to it
  kVector,           // {..}: index, count: a range of Function::operands
  kLabel,        // index: target instruction (== instructions.size() at the end of the function)
  kTargets,      // .branchtargets of brx.idx: index into Function::target_lists
  kFunction,     // index: Module::functions; the direct target of call, or a function's address
  kPrototype,    // .callprototype of an indirect call: index into Function::prototypes
  kCallTargets,  // .calltargets of an indirect call: index into Function::call_target_lists
  kSink,         // _ : the result is dropped
};

enum class AddressBase : uint8_t {
  kAbsolute,  // [imm]: value is the whole address
  kRegister,  // [reg + value]
  kSymbol,    // [symbol + value], index: Module::symbols
};

struct Operand {
  OperandKind kind = OperandKind::kNone;
  AddressBase base = AddressBase::kAbsolute;  // of kAddress
  Type type = Type::kNone;                    // declared type of a register, type of an immediate
  uint8_t component = 0;                      // of kSpecialRegister
  bool negated = false;                       // !p of a predicate register
  uint32_t index = kNoIndex;
  uint32_t count = 0;  // elements of kVector
  uint64_t value = 0;  // two's complement where it is an offset

  bool present() const { return kind != OperandKind::kNone; }
  bool is_register() const { return kind == OperandKind::kRegister; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Where a slot of an instruction form reads and writes; from the instruction table.
enum class OperandRole : uint8_t { kRead, kWrite, kReadWrite };

struct Instruction {
  Opcode opcode = Opcode::kTrap;
  uint16_t form = kNoForm;     // row of the instruction table (instruction_table.h)
  uint32_t guard = kNoIndex;   // predicate register of @p; kNoIndex: always executes
  bool guard_negated = false;  // @!p
  uint16_t operand_count = 0;  // slots of the form, left-out optional operands included
  uint32_t first_operand = 0;  // in Function::operands
  uint32_t mnemonic = 0;       // text as written, Module::mnemonics
  Modifiers modifiers;
  SourcePosition position;
};

struct Register {
  Type type = Type::kNone;
  std::string name;  // as declared, for messages; may repeat where scopes repeat it
};

// A maximal run of instructions entered only at its first and left only at its last.
struct BasicBlock {
  uint32_t first = 0;
  uint32_t end = 0;                  // one past the last
  std::vector<uint32_t> successors;  // block ids; none after ret, exit or trap
  uint32_t post_dominator =
      kNoIndex;  // immediate post-dominator block; kNoIndex: the function's exit
};

enum class SymbolKind : uint8_t {
  kVariable,   // module or function scope variable in .global, .const, .shared or .local
  kParameter,  // parameter or return value of a function, in .param
  kCallParam,  // .param declared in a body, to pass to or receive from a call
};

enum class Linkage : uint8_t { kInternal, kVisible, kWeak, kExtern, kCommon };

// The address of another symbol (or function) stored inside initialised data.
struct Relocation {
  uint64_t offset = 0;  // in the data
  uint8_t bytes = 8;
  bool generic = false;      // generic(symbol)
  bool is_function = false;  // index is of Module::functions
  uint32_t index = 0;        // else of Module::symbols
  int64_t addend = 0;
};

struct Symbol {
  std::string name;
  SymbolKind kind = SymbolKind::kVariable;
  Linkage linkage = Linkage::kInternal;
  Space space = Space::kNone;  // kGlobal, kConst, kShared, kLocal or kParam
  Type type = Type::kNone;     // of one element
  uint64_t size = 0;           // bytes; 0 for an incomplete array such as dynamic shared memory
  uint32_t align = 1;
  bool incomplete_array = false;
  uint32_t function = kNoIndex;  // of Module::functions; kNoIndex: module scope
  // Parameters: byte offset in the function's parameter block. Call params and locals: byte offset
  // in the function's frame (param_frame_size, local_frame_size). Others: see Function::shared.
  uint64_t offset = 0;
  std::vector<uint8_t>
      data;  // initial bytes; empty: zero (or nothing, for .shared); size otherwise
  std::vector<Relocation> relocations;
};

// A parameter: bytes in .param space, or (in .func only) directly a register.
struct Parameter {
  bool in_register = false;
  uint32_t index = 0;  // symbol, or register of the function
};

struct SharedPlacement {
  uint32_t symbol = 0;
  uint32_t offset = 0;  // from the CTA's shared window; dynamic arrays all start at shared_size
};

// A parameter of a call prototype, which has no name.
struct FormalParameter {
  bool in_register = false;
  Type type = Type::kNone;  // of one element
  uint64_t size = 0;        // bytes
  uint32_t align = 1;
  friend bool operator==(const FormalParameter&, const FormalParameter&) = default;
};

struct CallPrototype {
  uint32_t returns = 0;  // how many
  uint32_t parameters = 0;
  bool noreturn = false;
  std::vector<FormalParameter> return_list;
  std::vector<FormalParameter> parameter_list;
  friend bool operator==(const CallPrototype&, const CallPrototype&) = default;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  // .extern .func, or a forward declaration never defined
  bool noreturn = false;
  Linkage linkage = Linkage::kInternal;
  std::vector<Parameter> returns;
  std::vector<Parameter> parameters;
  uint64_t parameter_size = 0;  // bytes of the parameter block (returns of a .func come first)
  uint32_t parameter_align = 1;

  std::vector<Register> registers;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;   // slots of all instructions, and the elements of vectors
  std::vector<BasicBlock> blocks;  // in text order; blocks[0] is the entry
  std::vector<std::vector<uint32_t>> target_lists;  // instruction indices
  std::vector<CallPrototype> prototypes;
  std::vector<std::vector<uint32_t>> call_target_lists;  // functions
  std::vector<uint32_t> callees;  // functions it may call, each once; see call_graph.h
  bool address_taken = false;     // a register or a variable may hold its address

  uint64_t local_frame_size = 0;  // bytes of .local variables
  uint32_t local_frame_align = 1;
  uint64_t param_frame_size = 0;  // bytes of call params
  // Static shared memory that this function and its callees use (entries only).
  std::vector<SharedPlacement> shared;
  uint32_t shared_size = 0;   // static bytes, rounded up to the alignment of dynamic arrays
  uint32_t shared_align = 1;  // the strictest of all, dynamic arrays included

  // Performance and cluster directives (PTX ISA 11.4, 11.6); 0 where absent.
  std::array<uint32_t, 3> maxntid{};
  std::array<uint32_t, 3> reqntid{};
  std::array<uint32_t, 3> reqnctapercluster{};
  uint32_t minnctapersm = 0;
  uint32_t maxnreg = 0;
  uint32_t maxclusterrank = 0;
  bool explicitcluster = false;
  bool blocksareclusters = false;
  SourcePosition position;

  std::span<const Operand> operands_of(const Instruction& instruction) const {
    return {operands.data() + instruction.first_operand, instruction.operand_count};
  }
  std::span<const Operand> elements_of(const Operand& vector) const {
    return {operands.data() + vector.index, vector.count};
  }
};

struct Module {
  uint32_t version_major = 0, version_minor = 0;
  std::string target;  // "sm_100a"
  uint32_t address_size = 64;
  std::vector<Symbol> symbols;  // of every scope; those with function == kNoIndex are the module's
  std::vector<Function> functions;
  std::vector<std::string> mnemonics;  // "cvt.rn.satfinite.e4m3x2.f32", each once

  // nullptr when there is none of that name.
  const Function* find_entry(std::string_view name) const;
};

// Equal programs: everything except positions and the names of registers, locals and parameters.
bool equivalent(const Module& a, const Module& b);

}  // namespace jitgemm::ptx
