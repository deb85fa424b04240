/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests see of libjitgemm_fake_cuda.so: a CUDA driver without a GPU. Host memory is its device
 * memory; kernels do not run, their launches are recorded. It checks its callers as the driver's
 * documentation says that the driver does. Knows nothing of jitgemm.
 *
 * Environment, read by each cuInit:
 *   JITGEMM_FAKE_CUDA_CAPABILITY  "9.0" (default)
 *   JITGEMM_FAKE_CUDA_SM_COUNT    "132" (default)
 *   JITGEMM_FAKE_CUDA_DEVICES     "1" (default)
 *   JITGEMM_FAKE_CUDA_CAPTURE     CUstreamCaptureStatus of every stream: "0" (default), "1", "2"
 *   JITGEMM_FAKE_CUDA_FAIL        calls that fail, with their CUresult:
 * "cuMemAlloc_v2=2,cuFuncLoad=999"
 */
#ifndef JITGEMM_TESTS_FAKE_CUDA_H
#define JITGEMM_TESTS_FAKE_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FAKE_CUDA_PARAMETER_BYTES 768
#define FAKE_CUDA_RING 1024

typedef struct fake_cuda_launch {
  uint64_t index; /* of all launches since the library was loaded; from 0 */
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes;
  uint32_t programmatic_serialization;
  uint32_t reserved;
  const void* stream;
  const void* kernel;
  const void* context; /* current at the launch; NULL if none was */
  unsigned char parameters[FAKE_CUDA_PARAMETER_BYTES];
} fake_cuda_launch;

/* A CUtensorMap as this driver encodes it: what it was asked for. */
#define FAKE_CUDA_TENSOR_MAP_MAGIC 0x70616d74u
typedef struct fake_cuda_tensor_map {
  uint32_t magic;
  uint8_t type, rank, interleave, swizzle;
  uint8_t l2_promotion, out_of_bounds_fill;
  uint8_t element_strides[5];
  uint8_t reserved;
  uint16_t box[5];
  uint16_t reserved2;
  uint64_t address;
  uint64_t extents[5];
  uint64_t strides[4];
} fake_cuda_tensor_map; /* 112 bytes; the other 16 are zero */

/* The number of launches so far. */
uint64_t jitgemm_fake_cuda_launches(void);
/* The launch of that index into *launch; 0 if it is not among the last FAKE_CUDA_RING. */
int jitgemm_fake_cuda_launch(uint64_t index, fake_cuda_launch* launch);
/* Allocations and primary contexts that are held now. */
int64_t jitgemm_fake_cuda_allocations(void);
int64_t jitgemm_fake_cuda_contexts(void);

#ifdef __cplusplus
}
#endif

#endif
