// SPDX-License-Identifier: Apache-2.0
// A kernel that tries to reach memory of this process that no buffer covers, by every instruction
// that takes an address: each try must end in a fault before a byte is read or written, with the
// sanitizer's other checks on and off.
#include "sim/models_tensor_map.h"
#include "simrun_test_kernels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>

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
std::string attack_text(const std::string& attack) {
  return module_text(
      ".param .u64 secret, .param .u64 out, .param .align 64 .b8 map[128]", R"(
ld.param.u64 %rd1, [secret];
ld.param.u64 %rd2, [out];
mov.b64 %rd3, map;
cvta.param.u64 %rd3, %rd3;
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

}  // namespace
}  // namespace jitgemm::simrun
