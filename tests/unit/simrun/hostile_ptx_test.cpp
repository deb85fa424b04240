// SPDX-License-Identifier: Apache-2.0
// A kernel that tries to reach memory of this process that no buffer covers, by every instruction
// that takes an address: each try must end in a fault before a byte is read or written, with the
// sanitizer's other checks on and off.
#include "sim/models_tensor_map.h"
#include "simrun_test_kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <fstream>

namespace jitgemm::simrun {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Memory that belongs to the test and to no buffer.
alignas(1024) std::array<unsigned char, 4096> secret;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

// A map over memory of the process whose size or strides lead far beyond it, or around the address
// space: of the buffer at `base`, so that the first box alone would be legal.
std::string wild_map(uint64_t base, uint64_t rows, uint64_t stride) {
  sim::TensorMap map;
  map.address = base;
  map.rank = 2;
  map.element = sim::TensorElement::kU32;
  map.dims = {16, rows, 1, 1, 1};
  map.strides[0] = stride;
  map.box = {16, 1, 1, 1, 1};
  return hex(sim::encode_tensor_map(map));
}

// The encoding is no secret, so a kernel's author can forge a map over any address.
std::string forged_map() {
  sim::TensorMap map;
  map.address = reinterpret_cast<uint64_t>(secret.data());
  map.rank = 1;
  map.element = sim::TensorElement::kU32;
  map.dims[0] = secret.size() / 4;
  map.box[0] = 16;
  const sim::EncodedMap encoded = sim::encode_tensor_map(map);
  return hex(encoded);
}

// %rd1: the secret's address; %rd2: a buffer of 4096 bytes; %r1: 1024 bytes of shared memory that
// hold zeros; %r2: an mbarrier; %rd3: a tensor map over the secret.
// `all`: every thread of the CTA goes on to the attack, not the first alone.
std::string attack_text(const std::string& attack, bool all = false) {
  return module_text(
      ".param .u64 secret, .param .u64 out, .param .align 64 .b8 map[128]", R"(
mov.u32 %r30, %tid.x;
setp.ne.u32 %p7, %r30, 0;
)" + std::string(all ? "@%p7 bra READY;\n" : "@%p7 ret;\n") + R"(
mov.u32 %r1, bytes;
mov.u32 %r2, bar;
mbarrier.init.shared.b64 [%r2], 1;
fence.mbarrier_init.release.cluster;
mov.u32 %r3, 0;
Z: add.u32 %r4, %r1, %r3;
st.shared.u32 [%r4], 0;
add.u32 %r3, %r3, 4;
setp.lt.u32 %p1, %r3, 1024;
@%p1 bra Z;
fence.proxy.async;
READY:
ld.param.u64 %rd1, [secret];
ld.param.u64 %rd2, [out];
mov.b64 %rd3, map;
cvta.param.u64 %rd3, %rd3;
mov.u32 %r5, 0;
)" + attack,
      ".shared .align 128 .b8 bytes[1024];\n.shared .align 8 .b64 bar;\n.const .u32 c = 1;");
}

TEST(HostilePtx, NoInstructionReachesMemoryOutsideTheBuffers) {
  const char* const attacks[] = {
      "ld.global.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.const.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.global.nc.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.volatile.global.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "ld.acquire.gpu.global.u32 %r6, [%rd1];\nst.global.u32 [%rd2], %r6;",
      "st.global.u32 [%rd1], 7;",
      "st.u32 [%rd1], 7;",
      "st.release.gpu.global.u32 [%rd1], 7;",
      "atom.global.add.u32 %r6, [%rd1], 1;\nst.global.u32 [%rd2], %r6;",
      "atom.add.u32 %r6, [%rd1], 0;\nst.global.u32 [%rd2], %r6;",
      "atom.global.cas.b32 %r6, [%rd1], 0, 0;\nst.global.u32 [%rd2], %r6;",
      "red.global.add.u32 [%rd1], 1;",
      "cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.wait_all;\nld.shared.u32 %r6, [%r1];\n"
      "st.global.u32 [%rd2], %r6;",
      "cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.wait_all;",
      "mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, "
      "[%r2];\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra W;",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
      "mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 16;\n"
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd3, "
      "{%r5}], [%r2];\nW: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra W;\n"
      "ld.shared.u32 %r6, [%r1];\nst.global.u32 [%rd2], %r6;",
      "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd3, {%r5}], [%r1];\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
      "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd3, {%r5}], [%r1];\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;",
      // Beyond the end, before the start, and around the whole address space.
      "ld.global.u32 %r6, [%rd2+4096];",
      "ld.global.u32 %r6, [%rd2+-4];",
      "mov.u64 %rd6, -4;\nld.global.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 0;\nld.global.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 72057594037927936;\nadd.u64 %rd6, %rd6, 1000000;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 144115188075855872;\nadd.u64 %rd6, %rd6, 1000000;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 216172782113783808;\nadd.u64 %rd6, %rd6, 1000000;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 216172782113783808;\nst.u32 [%rd6], 1;",
      "mov.u32 %r6, 1000000;\nld.shared.u32 %r7, [%r6];",
      "mov.u32 %r6, -4;\nld.shared.u32 %r7, [%r6];",
      "mov.u32 %r6, -4;\nst.shared.u32 [%r6], 1;",
      "mov.u32 %r6, 1000000;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r6];",
      "mov.u32 %r6, 1000000;\nmbarrier.init.shared.b64 [%r6], 1;",
      "mov.u32 %r6, 1000000;\natom.shared.add.u32 %r7, [%r6], 1;",
      "mapa.shared::cluster.u32 %r6, %r1, 3;\nld.shared::cluster.u32 %r7, [%r6];",
  };
  const auto launch = [](const char* sanitize) {
    return fmt::format(
        R"({{"schema": 1, "buffers": {{"out": {{"dtype": "U8", "shape": 4096, "fill": {{"value": 1}}}}}},
             "launches": [{{"entry": "k", "block": 1, "parameters": [{{"u64": {}}}, {{"buffer": "out"}},
             {{"hex": "{}"}}]}}], "options": {{"sanitize": {}, "step_limit": 1000000}}}})",
        reinterpret_cast<uint64_t>(secret.data()), forged_map(), sanitize);
  };
  // What surrounds the attacks is harmless.
  ASSERT_EQ(outcome(attack_text("st.global.u32 [%rd2], 7;"), launch("true")), "");
  for (const char* sanitize : {"true", "false"}) {
    for (const char* attack : attacks) {
      secret.fill(0xa5);
      const std::string text = attack_text(attack);
      // The fault is about where the access leads, and not about how it is written.
      EXPECT_THAT(outcome(text, launch(sanitize)),
                  AnyOf(HasSubstr("out of bounds"), HasSubstr("outside its state space"),
                        HasSubstr("read-only memory"), HasSubstr("rank 3 in a cluster of 1")))
          << attack;
      for (const unsigned char byte : secret) ASSERT_EQ(byte, 0xa5) << attack;
    }
  }
}

TEST(HostilePtx, SizesAndOffsetsThatOverflowAreFaults) {
  const char* const attacks[] = {
      // 4 GiB less 16 bytes, from a buffer of 4096; sizes that wrap around the end.
      "mov.u32 %r6, -16;\nmbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r6, "
      "[%r2];",
      "mov.u32 %r6, -16;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], %r6;",
      "mov.u32 %r6, -16;\ncp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], "
      "[%r1], "
      "%r6;",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd2+4080], [%r1], 32;",
      "mov.u64 %rd6, -16;\ncp.async.bulk.global.shared::cta.bulk_group [%rd6], [%r1], 32;",
      "add.u32 %r6, %r1, 1008;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r6], 1024;",
      "mov.u64 %rd6, -8;\nld.global.v2.u64 {%rd7, %rd8}, [%rd6+-8];",
      "mov.u64 %rd6, 9223372036854775792;\nld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd6];",
      "mov.u64 %rd6, 0x7ffffffffffffff0;\nst.u32 [%rd6], 1;",
      "mov.u64 %rd6, 0x00ffffffffffffe0;\nld.u32 %r6, [%rd6];",
      // Windows of other spaces, at their ends.
      "mov.u64 %rd6, 0x01000000fffffffc;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 0x0100000100000000;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 0x02000000fffffffc;\nst.u32 [%rd6], 1;",
      "mov.u64 %rd6, 0x0300000000000100;\nld.u32 %r6, [%rd6];",
      "mov.u64 %rd6, 0x0400000000000010;\nld.u32 %r6, [%rd6];",
      // Parameter and local memory.
      "mov.u64 %rd6, 1000000;\nld.param.u32 %r6, [%rd6];",
      "mov.u64 %rd6, -4;\nld.param.u32 %r6, [%rd6];",
      "mov.u64 %rd6, map;\nadd.u64 %rd6, %rd6, 124;\nld.param.u64 %rd7, [%rd6+4];",
      "mov.u64 %rd6, 1000000;\nld.local.u32 %r6, [%rd6];",
      "mov.u64 %rd6, -4;\nst.local.u32 [%rd6], 1;",
      "mov.u64 %rd7, -1;\nalloca.u64 %rd6, %rd7;\nst.local.u32 [%rd6], 1;",
      "mov.u64 %rd7, 0xffffffff00000010;\nalloca.u64 %rd6, %rd7;\nst.local.u32 [%rd6+64], 1;",
      "alloca.u64 %rd6, 16;\nst.local.u32 [%rd6+16], 1;",
      "alloca.u64 %rd6, 16;\nst.local.u32 [%rd6+-65536], 1;",
      "mov.u64 %rd6, 1000000;\nstackrestore.u64 %rd6;\nalloca.u64 %rd7, 16;\nst.local.u32 [%rd7], "
      "1;",
      // Code.
      "p: .callprototype _ (.param .b32 _);\n{ .param .b32 a;\nst.param.b32 [a], 1;\n"
      "call %rd1, (a), p; }",
      "p: .callprototype _ (.param .b32 _);\nmov.u64 %rd6, 0x0400000000000010;\n"
      "{ .param .b32 a;\nst.param.b32 [a], 1;\ncall %rd6, (a), p; }",
      "mov.u32 %r6, 1000000;\nt: .branchtargets A, B;\nbrx.idx %r6, t;\nA: ret;\nB: ret;",
      // Descriptors of matrices beyond the end of shared memory.
      "mov.u64 %rd6, 0x4000004000013fff;\n"
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, "
      "%f2, "
      "%f3}, %rd6, %rd6, 0, 1, 1, 0, 0;",
  };
  const char* const rules[] = {"out of bounds",     "outside its state space",
                               "never written",     "misaligned",
                               "read-only",         "stack",
                               "illegal operand",   "illegal call",
                               "transaction count", "illegal tensor",
                               "belongs to no CTA", "matrix or tensor descriptor"};
  for (const char* sanitize : {"true", "false"}) {
    const std::string launch = fmt::format(
        R"({{"schema": 1, "buffers": {{"out": {{"dtype": "U8", "shape": 4096, "fill": {{"value": 1}}}}}},
             "launches": [{{"entry": "k", "block": 128, "parameters": [{{"u64": {}}}, {{"buffer": "out"}},
             {{"hex": "{}"}}]}}], "options": {{"sanitize": {}, "step_limit": 1000000}}}})",
        reinterpret_cast<uint64_t>(secret.data()), forged_map(), sanitize);
    for (const char* attack : attacks) {
      secret.fill(0xa5);
      const std::string found = outcome(
          attack_text(attack, std::string(attack).find("wgmma") != std::string::npos), launch);
      EXPECT_THAT(found, HasSubstr("SIMULATOR_FAULT")) << attack;
      bool known = false;
      for (const char* rule : rules) known = known || found.find(rule) != std::string::npos;
      EXPECT_TRUE(known) << attack << "\n" << found;
      for (const unsigned char byte : secret) ASSERT_EQ(byte, 0xa5) << attack;
    }
  }
}

TEST(HostilePtx, TensorMapsThatLeadBeyondTheirMemoryAreFaults) {
  struct Case {
    uint64_t rows, stride;
    int row;
  };
  const Case cases[] = {
      {4096,              64,                       1000      }, // rows behind the end of the buffer
      {uint64_t{1} << 32, uint64_t{1} << 30,        100       }, // far behind it
      {uint64_t{1} << 32, (uint64_t{1} << 40) - 16, 2000000000}, // around the address space
      {uint64_t{1} << 32, 64,                       2000000000}, // a coordinate that is large
  };
  const std::string load =
      "mov.u32 %r6, {};\nmbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 64;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd3, "
      "{{%r5, %r6}}], [%r2];\nW: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra W;";
  const std::string store =
      "mov.u32 %r6, {};\ncp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {{%r5, "
      "%r6}}], "
      "[%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";
  for (const Case& c : cases) {
    for (const std::string& text : {load, store}) {
      secret.fill(0xa5);
      // The first rows lie in memory of the test, and so would a buffer's.
      const std::string launch = fmt::format(
          R"({{"schema": 1, "buffers": {{"out": {{"dtype": "U8", "shape": 4096, "fill": {{"value": 1}}}}}},
               "launches": [{{"entry": "k", "block": 1, "parameters": [{{"u64": 0}}, {{"buffer": "out"}},
               {{"hex": "{}"}}]}}]}})",
          wild_map(reinterpret_cast<uint64_t>(secret.data()), c.rows, c.stride));
      EXPECT_THAT(outcome(attack_text(fmt::format(fmt::runtime(text), c.row)), launch),
                  AnyOf(HasSubstr("out of bounds"), HasSubstr("illegal tensor copy")))
          << c.rows << " " << c.stride;
      for (const unsigned char byte : secret) ASSERT_EQ(byte, 0xa5);
    }
  }
}

TEST(HostilePtx, PixelsThatLeadBeyondTheirMemoryAreFaults) {
  const std::pair<uint64_t, int> cases[] = {
      {256,                      20        }, // pixels behind the end of the buffer
      {(uint64_t{1} << 40) - 16, 1000000000}, // around the address space
  };
  const std::string load =
      "mov.u32 %r6, {};\nmov.u32 %r7, 0;\nmov.u16 %h1, 1;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 512;\n"
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], "
      "[%rd3, {{%r5, %r7, %r6}}], [%r2], {{%h1}};\n"
      "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;\n@!%p2 bra W;";
  const std::string store =
      "mov.u32 %r6, {};\nmov.u32 %r7, 0;\n"
      "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd3, {{%r5, %r7, "
      "%r6}}], [%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";
  for (const auto& [stride, image] : cases) {
    secret.fill(0xa5);
    sim::TensorMap map;
    map.address = reinterpret_cast<uint64_t>(secret.data());
    map.rank = 3;
    map.element = sim::TensorElement::kU32;
    map.dims = {16, 4, uint64_t{1} << 32, 1, 1};
    map.strides = {64, stride, 0, 0};
    map.im2col = true;
    map.box = {16, 8, 1, 1, 1};
    for (const std::string& text : {load, store}) {
      const std::string launch = fmt::format(
          R"({{"schema": 1, "buffers": {{"out": {{"dtype": "U8", "shape": 4096, "fill": {{"value": 1}}}}}},
               "launches": [{{"entry": "k", "block": 1, "parameters": [{{"u64": 0}}, {{"buffer": "out"}},
               {{"hex": "{}"}}]}}]}})",
          hex(sim::encode_tensor_map(map)));
      EXPECT_THAT(outcome(attack_text(fmt::format(fmt::runtime(text), image)), launch),
                  HasSubstr("out of bounds"))
          << stride;
      for (const unsigned char byte : secret) ASSERT_EQ(byte, 0xa5);
    }
  }
}

TEST(HostilePtx, LimitsHoldWhateverTheKernelAsksFor) {
  // Local memory, registers and shared memory of a large grid; recursion; a barrier never met.
  const std::string local = module_text("", ".local .align 8 .b8 a[1000000];\nmov.u64 %rd1, a;");
  EXPECT_THAT(
      outcome(local,
              R"({"schema": 1, "launches": [{"entry": "k", "grid": [1000000], "block": 1024}],
                               "options": {"memory_limit": 1000000}})"),
      HasSubstr("SIMULATOR_FAULT"));
  EXPECT_THAT(outcome(module_text("", "L: bra L;"),
                      R"({"schema": 1, "launches": [{"entry": "k", "grid": [1000], "block": 1024}],
                          "options": {"step_limit": 100000}})"),
              HasSubstr("100000 warp instructions"));
  EXPECT_THAT(outcome(module_text("", "bar.sync 0, 64;"),
                      R"({"schema": 1, "launches": [{"entry": "k", "block": 32}]})"),
              HasSubstr("SIMULATOR_FAULT"));
  const std::string recursion =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.func f;\n.func f { call f; ret; "
      "}\n.visible "
      ".entry k() { call f; ret; }\n";
  EXPECT_NE(outcome(recursion, R"({"schema": 1, "launches": [{"entry": "k", "block": 32}],
                                   "options": {"step_limit": 1000000, "memory_limit": 100000000}})"),
            "");
}

// Resident memory of this process, in bytes.
uint64_t resident() {
  std::ifstream status("/proc/self/statm");
  uint64_t pages = 0, present = 0;
  status >> pages >> present;
  return present * 4096;
}

// Loops that start more and more and wait for none of it: they end at the limit of steps, or are
// told that they do not wait, and the simulator's own memory stays small.
TEST(HostilePtx, WhatIsNeverWaitedForDoesNotUseUpTheHostsMemory) {
  const char* const bodies[] = {
      "cp.async.ca.shared.global [%r1], [%rd2], 4;\nadd.u32 %r1, %r1, 4;\nand.b32 %r1, %r1, "
      "0x7ff;\n"
      "max.u32 %r1, %r1, 1152;",
      "cp.async.commit_group;",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], "
      "1024;\ncp.async.bulk.commit_group;\n"
      "cp.async.bulk.wait_group.read 0;",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 1024;",
      "cp.async.bulk.commit_group;",
      "cp.async.mbarrier.arrive.shared.b64 [%r2];",
      "wgmma.commit_group.sync.aligned;",
      "atom.acq_rel.gpu.global.add.u32 %r6, [%rd2], 1;\nadd.u64 %rd2, %rd2, 4;\nadd.u32 %r7, %r7, "
      "1;\n"
      "and.b32 %r8, %r7, 1023;\nsetp.eq.u32 %p4, %r8, 0;\n@%p4 ld.param.u64 %rd2, [out];",
      "st.global.u32 [%rd2], %r5;\nfence.acq_rel.gpu;\nld.global.u32 %r6, [%rd2];",
  };
  const auto launch = [](const char* races) {
    return fmt::format(
        R"({{"schema": 1, "buffers": {{"out": {{"dtype": "U8", "shape": 4096, "fill": {{"value": 1}}}}}},
             "launches": [{{"entry": "k", "block": 1, "parameters": [{{"u64": 0}}, {{"buffer": "out"}},
             {{"hex": "{}"}}]}}], "options": {{"step_limit": 300000, "races": {}}}}})",
        forged_map(), races);
  };
  for (const char* races : {"true", "false"}) {
    for (const char* body : bodies) {
      const uint64_t before = resident();
      const std::string text =
          attack_text("mov.u32 %r7, 0;\nLOOP:\n" + std::string(body) + "\nbra LOOP;");
      EXPECT_THAT(outcome(text, launch(races)),
                  AnyOf(HasSubstr("step limit reached"), HasSubstr("memory limit reached"),
                        HasSubstr("asynchronous operation still uses"), HasSubstr("data race")))
          << body;
      EXPECT_LT(resident(), before + (uint64_t{400} << 20)) << body;
    }
  }
}

}  // namespace
}  // namespace jitgemm::simrun
