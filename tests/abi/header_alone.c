/* SPDX-License-Identifier: Apache-2.0
 *
 * The header compiles alone, twice, and its initialisers are complete. */
#include <jitgemm/jitgemm.h>
/* clang-format off: it would drop the second */
#include <jitgemm/jitgemm.h>
/* clang-format on */

jitgemm_context_options header_alone_options(void);
jitgemm_gemm_problem header_alone_problem(void);
jitgemm_gemm_arguments header_alone_arguments(void);

jitgemm_context_options header_alone_options(void) {
  const jitgemm_context_options options = JITGEMM_CONTEXT_OPTIONS_INIT;
  return options;
}
jitgemm_gemm_problem header_alone_problem(void) {
  const jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  return problem;
}
jitgemm_gemm_arguments header_alone_arguments(void) {
  const jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  return arguments;
}
