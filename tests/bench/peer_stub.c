/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer that multiplies nothing: it refuses n = 128, and a launch writes the number of its set to
 * the first byte of that set's out. For a driver whose device memory is the host's. */
#include "jitgemm_peer.h"

#include <stdio.h>
#include <stdlib.h>

struct peer {
  jitgemm_peer_problem problem;
};

int32_t jitgemm_peer_version(void) {
  return JITGEMM_PEER_VERSION;
}

const char* jitgemm_peer_name(void) {
  return "stub";
}

int32_t jitgemm_peer_open(const jitgemm_peer_problem* problem, void** peer, char* error,
                          size_t error_bytes) {
  if (problem->n == 128) {
    snprintf(error, error_bytes, "n = 128 with %d sets of m = %lld (%lld) is not for me",
             (int)problem->set_count, (long long)problem->m, (long long)problem->padded_m);
    return 1;
  }
  struct peer* opened = malloc(sizeof(*opened));
  if (opened == NULL) return 2;
  opened->problem = *problem;
  *peer = opened;
  return 0;
}

int32_t jitgemm_peer_launch(void* peer, int32_t set, void* stream, char* error,
                            size_t error_bytes) {
  const struct peer* opened = peer;
  if (set < 0 || set >= opened->problem.set_count || stream == NULL) {
    snprintf(error, error_bytes, "set %d", (int)set);
    return 1;
  }
  *(unsigned char*)(uintptr_t)opened->problem.sets[set].out = (unsigned char)set;
  return 0;
}

void jitgemm_peer_close(void* peer) {
  free(peer);
}
