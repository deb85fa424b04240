// SPDX-License-Identifier: Apache-2.0
// What a run with Options::statistics tells beyond counts of instructions: bytes by state space,
// conflicts of shared memory's banks, and who waited for what. Plain values; how they are gathered
// is in statistics_collector.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm::sim {

struct SpaceBytes {
  uint64_t read = 0;
  uint64_t written = 0;
};

// Accesses of one line of PTX to the CTA's own shared memory, which has 32 banks of 4 bytes. A
// request is a warp instruction. A wavefront serves each bank once, and lanes that ask for the same
// word together; a request needs at least `ideal` of them: one for each 128 bytes of its width.
struct SharedAccesses {
  uint32_t line = 0;
  std::string text;
  uint64_t requests = 0;
  uint64_t wavefronts = 0;
  uint64_t ideal = 0;

  uint64_t conflicts() const { return wavefronts - ideal; }
};

// Waits at one line of PTX, for one thing. Steps are those of Statistics::steps.
struct WaitSite {
  std::string what;
  uint32_t line = 0;
  std::string text;
  uint64_t waits = 0;
  uint64_t steps = 0;
  uint64_t longest = 0;
};

// The warps of one index in all CTAs: where kernels give roles to warps, a role.
struct WarpStatistics {
  uint32_t warp = 0;
  uint64_t instructions = 0;
  uint64_t lifetime_steps = 0;  // from its CTA's start to its cluster's end, summed over CTAs
  uint64_t waited_steps = 0;
  std::vector<WaitSite> waits;  // the longest first
};

struct Statistics {
  // Warp instructions executed and asynchronous operations completed, summed over clusters. The
  // only clock that there is: it says who waited for whom, and nothing of time.
  uint64_t steps = 0;
  // ld, st, atom, red, ldmatrix, stmatrix, by where the address leads.
  SpaceBytes global, shared, cluster_shared, local;
  uint64_t parameter_bytes = 0, constant_bytes = 0;
  // Asynchronous copies: bytes that arrived in shared memory, and that were taken from it.
  uint64_t copied_to_shared = 0, copied_from_shared = 0;
  // What of it they read of global memory, once for a multicast and without what is filled in, and
  // wrote to it.
  SpaceBytes copied_global;
  std::vector<SharedAccesses> shared_accesses;  // by line
  std::vector<WarpStatistics> warps;            // by index in the CTA
};

}  // namespace jitgemm::sim
