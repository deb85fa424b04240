/* SPDX-License-Identifier: Apache-2.0
 *
 * One block-scaled product of small integers, checked. Usage: block_scaled_mm [sim | cuda:N]
 */
#include <jitgemm/jitgemm.h>
#include <stdio.h>
#include <string.h>

enum { M = 4, N = 64, K = 256 };
static struct {
  uint8_t a[M][K], b[N][K]; /* F8_E4M3 */
  float out[M][N], a_scales[M][2], b_scales[1][2];
} host = {.b_scales = {{1, 1}}};

#define TRY(call) \
  if ((call) != JITGEMM_STATUS_OK) return fprintf(stderr, "%s\n", jitgemm_last_error()), 1

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "sim";
  const int32_t arch = strcmp(name, "sim") == 0 ? JITGEMM_ARCH_SM_100A : JITGEMM_ARCH_OF_DEVICE;
  jitgemm_context* context;
  jitgemm_device* device;
  jitgemm_operation* operation;
  jitgemm_buffer *data, *workspace;
  jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  uint64_t alignment;
  int wrong = 0;

  for (int i = 0; i < M; ++i) {                  /* row i of a is i + 1 everywhere, and its */
    memset(host.a[i], "\x38\x40\x44\x48"[i], K); /* second block of 128 counts twice */
    host.a_scales[i][0] = 1, host.a_scales[i][1] = 2;
  }
  memset(host.b, 0x38, sizeof host.b); /* 1 */
  problem.m = arguments.m = M, problem.n = N, problem.k = K;
  problem.out_dtype = JITGEMM_F32;

  TRY(jitgemm_context_create(NULL, &context));
  TRY(jitgemm_device_open(context, name, arch, &device));
  TRY(jitgemm_gemm_prepare(device, &problem, &operation)); /* plans, compiles or hits, loads */
  TRY(jitgemm_operation_workspace(operation, &arguments.workspace_bytes, &alignment));
  TRY(jitgemm_buffer_create(device, arguments.workspace_bytes, &workspace));
  TRY(jitgemm_buffer_create(device, sizeof host, &data));
  TRY(jitgemm_buffer_write(data, 0, &host, sizeof host));
  char* base = jitgemm_buffer_address(data);
  arguments.a = base + ((char*)host.a - (char*)&host);
  arguments.b = base + ((char*)host.b - (char*)&host);
  arguments.a_scales = base + ((char*)host.a_scales - (char*)&host);
  arguments.b_scales = base + ((char*)host.b_scales - (char*)&host);
  arguments.out = base + ((char*)host.out - (char*)&host);
  arguments.workspace = jitgemm_buffer_address(workspace);
  TRY(jitgemm_gemm_launch(operation, &arguments, NULL));
  TRY(jitgemm_buffer_read(data, 0, &host, sizeof host)); /* waits for the launch */

  for (int i = 0; i < M * N; ++i) wrong += host.out[i / N][i % N] != 384.0F * (i / N + 1);
  printf("%d of %d results are wrong\n", wrong, M * N);
  jitgemm_buffer_release(data), jitgemm_buffer_release(workspace);
  jitgemm_operation_release(operation);
  jitgemm_device_release(device), jitgemm_context_release(context);
  return wrong != 0;
}
