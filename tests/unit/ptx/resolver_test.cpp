// SPDX-License-Identifier: Apache-2.0
// Each trap of compiler-written PTX on its own: scopes, calls, data, directives, operands.
#include "ptx/load.h"
#include "ptx/printer.h"

#include <gtest/gtest.h>

namespace jitgemm::ptx::resolver_test {
namespace {

const std::string kHead = ".version 9.0\n.target sm_100a\n.address_size 64\n";

Module load(const std::string& text) {
  auto module = load_module(kHead + text);
  EXPECT_TRUE(module) << module.error().message();
  return module ? std::move(*module) : Module{};
}

// A kernel with a few registers around a body.
Module load_body(const std::string& body) {
  return load(
      ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 "
      "%r<8>;\n.reg .b64 %d<8>;\n" +
      body + "\nret;\n}\n");
}

Status failure(const std::string& text) {
  const auto module = load_module(kHead + text);
  EXPECT_FALSE(module);
  return module ? Status{} : module.error();
}

Status body_failure(const std::string& body) {
  return failure(
      ".entry k()\n{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<8>;\n.reg .b64 %d<8>;\n" +
      body + "\n}\n");
}

std::vector<Operand> operands(const Module& module, size_t instruction) {
  const Function& function = module.functions[0];
  const auto span = function.operands_of(function.instructions[instruction]);
  return {span.begin(), span.end()};
}

TEST(Resolver, InnerScopesRepeatNamesAndLabels) {
  const Module module = load_body(R"(
{ .reg .b32 t; WAIT: add.u32 t, %r0, 1; @%p0 bra DONE; bra WAIT; DONE: }
{ .reg .b64 t; WAIT: add.u64 t, %d0, 1; @!%p1 bra DONE; bra WAIT; DONE: }
{ .reg .b32 %r0; { mov.b32 %r0, %r1; } }
)");
  const Function& f = module.functions[0];
  ASSERT_EQ(f.instructions.size(), 8u);
  EXPECT_EQ(operands(module, 1)[0].index, 3u);  // DONE of the first scope
  EXPECT_EQ(operands(module, 2)[0].index, 0u);
  EXPECT_EQ(operands(module, 4)[0].index, 6u);
  EXPECT_EQ(operands(module, 5)[0].index, 3u);
  EXPECT_EQ(operands(module, 0)[0].type, Type::kB32);
  EXPECT_EQ(operands(module, 3)[0].type, Type::kB64);
  EXPECT_NE(operands(module, 0)[1].index, operands(module, 6)[0].index);  // %r0 outside and inside
  EXPECT_TRUE(f.instructions[4].guard_negated);
  EXPECT_EQ(f.instructions[4].guard, 1u);
}

TEST(Resolver, OperandsInEveryCompoundForm) {
  const Module module = load_body(R"(
mov.b64{%r0,%r1},%d0;
elect.sync _|%p1, -1;
setp.ne.and.b32 %p0|%p1, %r0, 0, !%p2;
ld.global.v4.b32 {%r0,%r1,%r2,%r3}, [%d1+-16];
ld.global.v2.b32 {_,%r1}, [%d1];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, 7}], [%r2];
mov.u32 %r3, %ctaid.z;
add.f32 %r0, %r1, 1.0;
mov.pred %p0, -1;
)");
  const auto unpack = operands(module, 0);
  EXPECT_EQ(unpack[0].kind, OperandKind::kVector);
  EXPECT_EQ(unpack[0].count, 2u);
  const auto elect = operands(module, 1);
  EXPECT_EQ(elect[0].kind, OperandKind::kSink);
  EXPECT_EQ(elect[1].kind, OperandKind::kRegister);
  EXPECT_EQ(elect[2].value, UINT64_MAX);
  EXPECT_TRUE(operands(module, 2)[4].negated);
  EXPECT_EQ(operands(module, 3)[1].value, static_cast<uint64_t>(-16));
  EXPECT_EQ(operands(module, 3)[1].base, AddressBase::kRegister);
  EXPECT_EQ(module.functions[0].elements_of(operands(module, 4)[0])[0].kind, OperandKind::kSink);
  const auto copy = operands(module, 5);  // dst, map, coordinates, mbar, mask, policy
  ASSERT_EQ(copy.size(), 6u);
  EXPECT_EQ(copy[1].kind, OperandKind::kAddress);
  EXPECT_EQ(copy[2].count, 2u);
  EXPECT_FALSE(copy[4].present());
  EXPECT_EQ(operands(module, 6)[1].index, static_cast<uint32_t>(SpecialRegister::kCtaid));
  EXPECT_EQ(operands(module, 6)[1].component, 2);
  EXPECT_EQ(operands(module, 7)[2].type, Type::kF32);
  EXPECT_EQ(operands(module, 7)[2].value, 0x3f800000u);
  EXPECT_EQ(operands(module, 8)[1].value, 1u);
}

TEST(Resolver, CallsPassThroughParamSpace) {
  const Module module = load(R"(
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);
.func (.param .b32 r) twice(.param .align 8 .b8 p[12], .param .b16 q);
.func (.reg .b32 r) old(.reg .b32 a) { add.u32 r, a, a; ret; }
.visible .entry k() {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  { .reg .b32 temp; .param .b64 param0; .param .b64 param1; .param .b32 retval0;
    st.param.b64 [param0+0], %d0; st.param.b64 [param1+0], %d1;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 temp, [retval0+0]; }
  call (%r0), old, (%r1);
  mov.u64 %d2, twice;
  prototype_0 : .callprototype (.param .b32 _) _ (.param .align 8 .b8 _[12], .param .b16 _);
  { .param .b32 retval0; .param .align 8 .b8 param0[12]; .param .b16 param1;
    call (retval0), %d2, (param0, param1), prototype_0; }
  ret;
}
.func (.param .b32 r) twice(.param .align 8 .b8 p[12], .param .b16 q) { ret; }
)");
  ASSERT_EQ(module.functions.size(), 4u);
  EXPECT_TRUE(module.functions[0].is_declaration);
  EXPECT_FALSE(module.functions[1].is_declaration);
  const Function& twice = module.functions[1];
  EXPECT_EQ(module.symbols[twice.returns[0].index].offset, 0u);
  EXPECT_EQ(module.symbols[twice.parameters[0].index].offset, 8u);
  EXPECT_EQ(module.symbols[twice.parameters[1].index].offset, 20u);
  EXPECT_TRUE(module.functions[2].parameters[0].in_register);
  const Function& k = module.functions[3];
  EXPECT_EQ(k.callees, (std::vector<uint32_t>{0, 2, 1}));  // the last through its prototype
  const auto call = k.operands_of(k.instructions[2]);
  EXPECT_EQ(call[0].count, 1u);
  EXPECT_EQ(call[1].kind, OperandKind::kFunction);
  EXPECT_EQ(call[2].count, 2u);
  const auto indirect = k.operands_of(k.instructions[6]);
  EXPECT_EQ(indirect[1].kind, OperandKind::kRegister);
  EXPECT_EQ(indirect[3].kind, OperandKind::kPrototype);
  EXPECT_EQ(k.prototypes[0].parameters, 2u);
  EXPECT_EQ(k.prototypes[0].parameter_list[0].size, 12u);
  EXPECT_EQ(k.prototypes[0].parameter_list[0].align, 8u);
  EXPECT_EQ(k.prototypes[0].parameter_list[1].type, Type::kB16);
}

TEST(Resolver, InitialisedDataAndAddressesOfSymbols) {
  const Module module = load(R"(
.func f() { ret; }
.extern .global .b32 later;
.global .align 4 .f32 floats[3] = {0f3F800000, -2.5, 0d3FF0000000000000};
.const .align 2 .b8 bytes[2][3] = {{1, 2}, {4, 0xff, 6}};
.visible .global .align 8 .u64 table[3] = {floats, generic(bytes)+4, f};
.global .b32 later = 7;
.global .b16 open[] = {1, 2, 3};
)");
  EXPECT_EQ(module.symbols[0].data[0], 7);
  const auto& floats = module.symbols[1].data;
  EXPECT_EQ(floats, (std::vector<uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0, 0x80, 0x3f}));
  EXPECT_EQ(module.symbols[2].data, (std::vector<uint8_t>{1, 2, 0, 4, 0xff, 6}));
  const auto& relocations = module.symbols[3].relocations;
  ASSERT_EQ(relocations.size(), 3u);
  EXPECT_EQ(relocations[1].offset, 8u);
  EXPECT_TRUE(relocations[1].generic);
  EXPECT_EQ(relocations[1].addend, 4);
  EXPECT_TRUE(relocations[2].is_function);
  EXPECT_EQ(module.symbols[4].size, 6u);
}

TEST(Resolver, SharedMemoryOfAnEntryCoversItsCalleesAndNothingElse) {
  const Module module = load(R"(
.extern .shared .align 1024 .b8 dynamic[];
.shared .align 4 .b8 unused[400];
.shared .align 16 .b8 first[20];
.func helper() { .reg .b32 %r<2>; .shared .align 8 .b8 inner[8]; mov.u32 %r0, inner; ret; }
.entry k() { .reg .b32 %r<3>; .shared .b32 own; mov.u32 %r0, first; mov.u32 %r1, dynamic; st.shared.b32 [own], %r0; call helper; ret; }
.entry bare() { ret; }
)");
  const Function& k = module.functions[1];
  ASSERT_EQ(k.shared.size(), 4u);
  EXPECT_EQ(k.shared_size, 1024u);
  EXPECT_EQ(k.shared_align, 1024u);
  EXPECT_EQ(module.symbols[k.shared.back().symbol].name, "dynamic");
  EXPECT_EQ(k.shared.back().offset, 1024u);
  EXPECT_EQ(k.shared[1].offset, 24u);  // inner, behind first[20]
  EXPECT_EQ(module.functions[2].shared_size, 0u);
}

TEST(Resolver, DirectivesOfDebuggingAreSkippedAndThoseOfLaunchKept) {
  const Module module = load(R"(
.file 1 "/tmp/x.cu", 1234, 56
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 out, .param .u32 n)
.explicitcluster
.reqnctapercluster 2, 1, 1
.maxntid 384, 1, 1
.minnctapersm 1
.maxnreg 168
{
  .loc 1 3 5
  .pragma "nounroll";
  .reg .b32 %r<2>;
  .loc 1 4 7, function_name $L__info_string0, inlined_at 1 20 3
  ld.param.u32 %r0, [n];
  ret;
}
.section .debug_str { $L__info_string0: .b8 109, 0 { } }
)");
  const Function& k = module.functions[0];
  EXPECT_TRUE(k.explicitcluster);
  EXPECT_EQ(k.reqnctapercluster[0], 2u);
  EXPECT_EQ(k.maxntid[0], 384u);
  EXPECT_EQ(k.maxnreg, 168u);
  EXPECT_EQ(k.parameter_size, 140u);
  EXPECT_EQ(k.parameter_align, 64u);
  EXPECT_EQ(module.symbols[k.parameters[2].index].offset, 136u);
  EXPECT_EQ(k.instructions.size(), 2u);
  EXPECT_EQ(k.instructions[0].position.line, 17u);
}

TEST(Resolver, BlocksAndPostDominators) {
  const Module module = load_body(R"(
@%p0 bra ELSE;
mov.b32 %r0, 1;
bra JOIN;
ELSE: mov.b32 %r0, 2;
@%p1 bra ELSE;
JOIN: add.u32 %r0, %r0, 1;
ts: .branchtargets ELSE, JOIN;
@%p2 brx.idx %r1, ts;
)");
  const auto& blocks = module.functions[0].blocks;
  ASSERT_EQ(blocks.size(), 5u);
  EXPECT_EQ(blocks[0].successors, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(blocks[0].post_dominator, 3u);
  EXPECT_EQ(blocks[2].successors, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(blocks[3].successors, (std::vector<uint32_t>{2, 3, 4}));
  EXPECT_EQ(blocks[3].post_dominator, 4u);
  EXPECT_EQ(blocks[4].post_dominator, kNoIndex);
}

TEST(Resolver, AnEndlessLoopHasNoPostDominator) {
  const Module module = load_body("@%p0 bra OUT; L: bra L; OUT:");
  EXPECT_EQ(module.functions[0].blocks[1].post_dominator, kNoIndex);
}

TEST(Resolver, MalformedTextNamesPlaceAndExpectation) {
  struct Case {
    std::string body;
    std::string message;
  };
  const Case cases[] = {
      {"mov.b32 %r0, %x1;",         "10:14: expected a declared name, found '%x1'"                          },
      {"mov.b32 %r8, 1;",           "10:9: expected a declared name, found '%r8'"                           },
      {"@%r0 bra L;",               "10:6: expected a predicate register, found '%r0'"                      },
      {"L: L: ret;",                "10:4: 'L' is declared twice"                                           },
      {".reg .b32 a; .reg .b64 a;", "10:24: 'a' is declared twice"                                          },
      {"add.u32 %r0, %r1",          "11:1: expected ';', found '}'"                                         },
      {"add.u32 %r0 %r1;",          "10:13: expected ';', found '%r1'"                                      },
      {"ld.global.b32 %r0, [%d0;",  "10:24: expected ']', found ';'"                                        },
      {"mov.b32 %r0, ((1);",        "10:18: expected ')', found ';'"                                        },
      {"mov.b32 %r0, 1/0;",         "10:17: expected a divisor that is not zero, found ';'"                 },
      {"mov.u32 %r0, %tid.q;",      "10:14: expected a declared name, found '%tid.q'"                       },
      {".frob 3;",                  "10:1: expected an instruction, a label or a declaration, found '.frob'"},
      {".reg .b32 %v<99999999>;",
       "10:14: expected a number of registers up to 1048576, found '99999999'"                              },
      {"call k, (%r0);",            "10:1: expected 0 results and 0 arguments, found 0 and 1"               },
  };
  for (const Case& test : cases) {
    const Status status = body_failure(test.body);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << test.body;
    EXPECT_EQ(status.message(), test.message) << test.body;
  }
}

TEST(Resolver, EveryUnsupportedPlaceIsReportedAtOnce) {
  const Status status = body_failure(R"(frobnicate.b32 %r0, %r1;
add.b32 %r0, %r1, %r2;
add.u32 %r0, %r1, %d2;
brkpt.b32;
add.u32 %r0, %r1, 2;)");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "10:1: frobnicate.b32: unknown instruction\n"
            "11:1: add.b32: no instruction form has these modifiers\n"
            "12:1: add.u32: operand 'b': expected a register of 32 bits, found %d2 of 64\n"
            "13:1: brkpt.b32: no instruction form has these modifiers");
}

TEST(Resolver, TheCallersRefusalsAreReportedWithTheTablesOwn) {
  LoadOptions options;
  size_t asked = 0;
  options.refuse = [&](const Module&, const Function&, const Instruction& instruction) {
    ++asked;
    return std::string(instruction.opcode == Opcode::kTrap ? "no traps today" : "");
  };
  const std::string text = kHead + ".entry k()\n{\n trap;\n frob;\n trap;\n exit; exit;\n}\n";
  const auto module = load_module(text, options);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().message(),
            "6:2: trap: no traps today\n7:2: frob: unknown instruction\n8:2: trap: no traps today");
  EXPECT_EQ(asked, 4u);  // what no row takes is in the list already
}

TEST(Resolver, WrongOperandsOfAKnownFormAreRefused) {
  const char* bodies[] = {
      "mov.b32 1, %r0;",                         // a number is written
      "add.u32 _, %r0, _;",                      // a sink is read
      "ld.global.v2.b32 %r0, [%d0];",            // a vector is due
      "ld.global.v2.b32 {%r0,%r1,%r2}, [%d0];",  // of two
      "ld.global.b64 %r0, [%d0];",               // into a narrower register
      "add.f32 %r0, %r1, 1;",                    // an integer for a float
      "not.b32 %r0, !%r1;",                      // ! of a number
      "mov.b32 %tid.x, 1;",                      // a special register is written
      "bar.sync;",                               // operand missing
      "ret %r0;",                                // one too many
      "cp.async.bulk.wait_group %r0;",           // an immediate is due
      "ld.global.b32 %r0, [%h0];",               // a base of 16 bits
      "mov.b32 %r0.x, %r1;",                     // a component of what has none
      "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%r0,%r1,%r2,%r3,%r4,%r5}, %d0, %d1, "
      "%p0, 1, 1, 0, 0;",
  };
  for (const char* body : bodies)
    EXPECT_EQ(body_failure(body).code(), StatusCode::kUnsupported) << body;
}

TEST(Resolver, AnAliasNamesItsFunctionAndVectorsAreRegisters) {
  const Module module = load(R"(
.func (.reg .b32 r) one(.reg .b32 a) { add.u32 r, a, 1; ret; }
.func (.reg .b32 r) uno(.reg .b32 a);
.alias uno, one;
.visible .entry k(.param .u64 out)
{
  .reg .b64 %d<3>;
  .reg .v4 .b32 %v<2>;
  .reg .v2 .f32 w;
  ld.param.u64 %d1, [out];
  ld.global.v4.b32 %v1, [%d1];
  mov.b64 %d2, w;
  call (%v1.y), uno, (%v0.a);
  list: .calltargets one, uno;
  mov.u64 %d2, uno;
  call (%v1.x), %d2, (%v0.r), list;
  ret;
})");
  const Function& k = module.functions[2];
  ASSERT_EQ(k.registers.size(), 3u + 8u + 2u);
  const auto load = k.operands_of(k.instructions[1]);
  ASSERT_EQ(load[0].kind, OperandKind::kVector);
  EXPECT_EQ(k.elements_of(load[0])[0].index, 7u);
  EXPECT_EQ(k.elements_of(load[0])[3].index, 10u);
  const auto call = k.operands_of(k.instructions[3]);
  EXPECT_EQ(call[1].index, 0u);
  EXPECT_EQ(k.elements_of(call[0])[0].index, 8u);
  EXPECT_EQ(k.elements_of(call[2])[0].index, 6u);
  EXPECT_EQ(k.operands_of(k.instructions[5])[3].kind, OperandKind::kCallTargets);
  EXPECT_EQ(k.call_target_lists[0], (std::vector<uint32_t>{0, 0}));
  EXPECT_TRUE(module.functions[0].address_taken);
  const auto again = load_module(print_module(module));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(equivalent(module, *again));
}

TEST(Resolver, MalformedCallsAndAliasesNamePlaceAndExpectation) {
  const struct {
    const char* text;
    const char* message;
  } wrong[] = {
      {".alias a, b;",                                                            "4:1: expected two declared functions, found 'a' and 'b'"},
      {".func a() { ret; }\n.func b() { ret; }\n.alias a, b;",
       "6:1: expected 'a' without a body and 'b' with one"                                                                                 },
      {".func a(.reg .b32 x);\n.func b() { ret; }\n.alias a, b;",
       "6:1: 'a' is declared in another way than 'b'"                                                                                      },
      {".alias a b;",                                                             "4:10: expected ',', found 'b'"                          },
      {".entry k() {\n.reg .b64 d;\ncall d, ();\n}",
       "6:1: expected a prototype or a list of targets of the indirect call"                                                               },
      {".entry k() {\n.reg .b64 d;\nl: .calltargets missing;\ncall d, (), l;\n}",
       "6:1: expected a function, found 'missing'"                                                                                         },
      {".func b(.reg .b32 x) { ret; }\n.entry k() {\n.reg .b64 d;\nl: .calltargets b;\n"
       "call d, (), l;\n}",                                                "8:1: expected 0 results and 1 arguments, found 0 and 0" },
      {".entry k() {\n.reg .v2 .pred p;\n}",                                      "5:16: expected a vector register of 2 or 4 numbers"     },
  };
  for (const auto& w : wrong) EXPECT_EQ(failure(w.text).message(), w.message) << w.text;
}

TEST(Resolver, InstructionsPrintForReports) {
  const Module module = load_body("@!%p1 ld.global.v2.b32 {%r0,_}, [%d0+8];");
  const Function& k = module.functions[0];
  EXPECT_EQ(print_instruction(module, k, k.instructions[0]),
            "@!%r0_1 ld.global.v2.b32 {%r2_0, _}, [%r3_0+8]");
}

}  // namespace
}  // namespace jitgemm::ptx::resolver_test
