/* SPDX-License-Identifier: Apache-2.0
 *
 * What an installed package must be able to do: plan, compile, load, and say no to a wrong call. */
#include <jitgemm/jitgemm.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  jitgemm_context_options options = JITGEMM_CONTEXT_OPTIONS_INIT;
  jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  jitgemm_context* context = NULL;
  jitgemm_device* device = NULL;
  jitgemm_operation* operation = NULL;
  char text[4096];
  size_t length = sizeof(text);
  options.cache_mode = "memory";
  problem.m = 8;
  problem.n = 64;
  problem.k = 128;
  if (jitgemm_context_create(&options, &context) != JITGEMM_STATUS_OK ||
      jitgemm_device_open(context, "sim", JITGEMM_ARCH_SM_100A, &device) != JITGEMM_STATUS_OK ||
      jitgemm_gemm_prepare(device, &problem, &operation) != JITGEMM_STATUS_OK ||
      jitgemm_operation_describe(operation, text, &length) != JITGEMM_STATUS_OK) {
    fprintf(stderr, "%s\n", jitgemm_last_error());
    return 1;
  }
  if (strstr(text, "sm_100a m=8 n=64 k=128") == NULL) return 2;
  arguments.m = 8;
  if (jitgemm_gemm_launch(operation, &arguments, NULL) != JITGEMM_STATUS_INVALID_ARGUMENT) return 3;
  if (strcmp(jitgemm_last_error(), "a: expected an address, found NULL") != 0) return 4;
  jitgemm_operation_release(operation);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
  printf("jitgemm %s works\n", jitgemm_version());
  return 0;
}
