/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer that multiplies nothing: it refuses n = 128, and a launch writes the number of its set to
 * the first byte of that set's out; of groups, to the first byte of the last group's last row in
 * use; 100 more where its launches may begin early. For a driver whose device memory is the host's.
 */
#include "jitgemm_peer.h"

#include <stdio.h>
#include <stdlib.h>

struct peer {
  int32_t set_count;
  int32_t early;
  uint64_t outs[64];
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
  if (opened == NULL || problem->set_count > 64) return 2;
  opened->set_count = problem->set_count;
  opened->early = 0;
  for (int32_t i = 0; i < problem->set_count; ++i) opened->outs[i] = problem->sets[i].out;
  *peer = opened;
  return 0;
}

int32_t jitgemm_peer_open_grouped(const jitgemm_peer_grouped_problem* problem, void** peer,
                                  char* error, size_t error_bytes) {
  const int32_t* group_rows = (const int32_t*)(uintptr_t)problem->group_rows;
  const int64_t last = problem->groups - 1;
  const int64_t count = problem->counts[last];
  if (problem->n == 128) {
    snprintf(error, error_bytes, "layout %d, %lld groups of %lld rows, the last with %lld",
             (int)problem->layout, (long long)problem->groups, (long long)problem->rows,
             (long long)count);
    return 1;
  }
  struct peer* opened = malloc(sizeof(*opened));
  if (opened == NULL || problem->set_count > 64) return 2;
  /* The integers on the device say the same as the counts. */
  int64_t row = last * problem->rows + count - 1;
  if (problem->layout == 1) {
    for (row = problem->rows - 1; group_rows[row] < 0;) --row;
  } else if (group_rows[last] != count) {
    return 3;
  }
  opened->set_count = problem->set_count;
  opened->early = 0;
  for (int32_t i = 0; i < problem->set_count; ++i) {
    opened->outs[i] = problem->sets[i].out + (uint64_t)(row * problem->n * problem->out_bytes);
  }
  *peer = opened;
  return 0;
}

int32_t jitgemm_peer_launch(void* peer, int32_t set, void* stream, char* error,
                            size_t error_bytes) {
  const struct peer* opened = peer;
  if (set < 0 || set >= opened->set_count || stream == NULL) {
    snprintf(error, error_bytes, "set %d", (int)set);
    return 1;
  }
  *(unsigned char*)(uintptr_t)opened->outs[set] = (unsigned char)(set + opened->early);
  return 0;
}

int32_t jitgemm_peer_programmatic(void* peer, char* error, size_t error_bytes) {
  (void)error;
  (void)error_bytes;
  ((struct peer*)peer)->early = 100;
  return 0;
}

void jitgemm_peer_close(void* peer) {
  free(peer);
}
