/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shared library exports to take part in `jitgemm bench --peer LIBRARY`, in C. Only these
 * declarations are shared: a module includes this file and links nothing of jitgemm.
 *
 *   out[m, n] = sum over blocks kb of 128 columns of
 *       dot(a[m, kb], b[n, kb]) * a_scales[m, kb] * b_scales[n / 128, kb]
 *
 * Codes are FP8 e4m3. All addresses are device memory of the context that is current in every call.
 * Functions return 0, or another number after writing a text of at most `error_bytes` (its zero
 * included) to `error`. The result is checked against float64 before anything is timed.
 */
#ifndef JITGEMM_PEER_H
#define JITGEMM_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JITGEMM_PEER_VERSION 1
#define JITGEMM_PEER_API __attribute__((visibility("default")))

/* One set of operands; a unit that is timed may go through several. Rows are dense. */
typedef struct jitgemm_peer_set {
  uint64_t a;                     /* [padded_m, k] codes; rows from m on are random, too */
  uint64_t b;                     /* [n, k] codes */
  uint64_t a_scales;              /* fp32 [m, k_blocks] */
  uint64_t b_scales;              /* fp32 [n_blocks, k_blocks] */
  uint64_t a_scales_column_major; /* fp32: the same, [k_blocks, padded_m] */
  uint64_t b_scales_padded;       /* fp32: the same, [n_blocks, padded_k_blocks] */
  uint64_t out;                   /* [padded_m, n]; rows from m on are not looked at */
} jitgemm_peer_set;

typedef struct jitgemm_peer_problem {
  int64_t m, n, k;
  int64_t padded_m;        /* m rounded up to a multiple of 4 */
  int64_t k_blocks;        /* k / 128, rounded up */
  int64_t padded_k_blocks; /* rounded up to a multiple of 4 */
  int64_t n_blocks;        /* n / 128, rounded up */
  int32_t out_bytes;       /* 4: fp32, 2: bf16 */
  int32_t set_count;
  const jitgemm_peer_set* sets; /* lives until close */
} jitgemm_peer_problem;

/* Groups of rows with a b each. Row indices (layout 1): the rows of all groups are those of one a,
 * each group begins at a multiple of 128, and rows between groups have index -1 and codes and
 * scales of zero. Masked (layout 4): each group has `rows` rows of its own, in use from the first
 * on.
 *
 *   out[m, n] = sum over blocks kb of
 *       dot(a[m, kb], b[g, n, kb]) * a_scales[m, kb] * b_scales[g, n / 128, kb], g the group of m
 *
 * What is in rows of out that belong to no group is not looked at. */
typedef struct jitgemm_peer_grouped_set {
  uint64_t a;                     /* [matrices, rows, k] codes */
  uint64_t b;                     /* [groups, n, k] codes */
  uint64_t a_scales;              /* fp32 [matrices, rows, k_blocks] */
  uint64_t b_scales;              /* fp32 [groups, n_blocks, k_blocks] */
  uint64_t a_scales_column_major; /* fp32: a's, [matrices, k_blocks, scale_rows] */
  uint64_t out;                   /* [matrices, rows, n] */
} jitgemm_peer_grouped_set;

typedef struct jitgemm_peer_grouped_problem {
  int64_t groups, rows, n, k;
  int64_t matrices;      /* layout 1: 1; layout 4: groups */
  int64_t scale_rows;    /* rows rounded up to a multiple of 4 */
  int64_t k_blocks;      /* k / 128, rounded up */
  int64_t n_blocks;      /* n / 128, rounded up */
  int64_t expected_rows; /* in use, of a usual group */
  int32_t layout;        /* 1: row indices; 4: masked */
  int32_t out_bytes;     /* 4: fp32, 2: bf16 */
  int32_t set_count;
  int32_t reserved;
  uint64_t group_rows;                  /* device, int32: [rows] indices, or [groups] rows in use */
  const int64_t* counts;                /* host: [groups] rows in use */
  const jitgemm_peer_grouped_set* sets; /* both live until close */
} jitgemm_peer_grouped_problem;

/* JITGEMM_PEER_VERSION of the header that the module was built with. */
JITGEMM_PEER_API int32_t jitgemm_peer_version(void);
/* For tables; lower case, without spaces. */
JITGEMM_PEER_API const char* jitgemm_peer_name(void);
/* Whatever must be done once and is not timed: compiling, choosing an algorithm, bringing operands
 * of the sets into another layout. */
JITGEMM_PEER_API int32_t jitgemm_peer_open(const jitgemm_peer_problem* problem, void** peer,
                                           char* error, size_t error_bytes);
/* The same for groups. A module without this function takes part in single products only. */
JITGEMM_PEER_API int32_t jitgemm_peer_open_grouped(const jitgemm_peer_grouped_problem* problem,
                                                   void** peer, char* error, size_t error_bytes);
/* One product of that set, on the CUstream; it may be captured into a graph. */
JITGEMM_PEER_API int32_t jitgemm_peer_launch(void* peer, int32_t set, void* stream, char* error,
                                             size_t error_bytes);
/* Called after open, once, with --pdl on or both: from now on launches of this peer carry the
 * attribute of programmatic stream serialization, so that each may begin before the one in front of
 * it has ended; what it reads and writes it touches after that end, as without. A module without
 * this function is not timed so. */
JITGEMM_PEER_API int32_t jitgemm_peer_programmatic(void* peer, char* error, size_t error_bytes);
JITGEMM_PEER_API void jitgemm_peer_close(void* peer);

#ifdef __cplusplus
}
#endif

#endif
