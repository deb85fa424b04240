/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary contract that callers were compiled against: where each field is, what each number is.
 * A released row never changes; a field that is added is a new row at the end and a new size. */
#include <jitgemm/jitgemm.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(const char* what, size_t found, size_t expected) {
  if (found == expected) return;
  printf("%s: expected %zu, found %zu\n", what, expected, found);
  ++failures;
}

#define OFFSET(type, field, expected) expect(#type "." #field, offsetof(type, field), expected)
#define VALUE(name, expected) expect(#name, (size_t)(name), expected)

int main(void) {
  OFFSET(jitgemm_context_options, struct_size, 0);
  OFFSET(jitgemm_context_options, cache_folder, 8);
  OFFSET(jitgemm_context_options, cache_mode, 16);
  OFFSET(jitgemm_context_options, nvrtc_library, 24);
  OFFSET(jitgemm_context_options, driver_library, 32);
  OFFSET(jitgemm_context_options, template_folder, 40);
  OFFSET(jitgemm_context_options, log_level, 48);
  OFFSET(jitgemm_context_options, sim_numerics, 56);
  OFFSET(jitgemm_context_options, sim_seed, 64);
  OFFSET(jitgemm_context_options, sim_threads, 72);
  OFFSET(jitgemm_context_options, sim_sanitize, 80);
  OFFSET(jitgemm_context_options, log, 88);
  OFFSET(jitgemm_context_options, log_user, 96);
  OFFSET(jitgemm_context_options, tuning_database, 104);
  expect("sizeof jitgemm_context_options", sizeof(jitgemm_context_options), 112);

  OFFSET(jitgemm_gemm_problem, struct_size, 0);
  OFFSET(jitgemm_gemm_problem, m, 8);
  OFFSET(jitgemm_gemm_problem, n, 16);
  OFFSET(jitgemm_gemm_problem, k, 24);
  OFFSET(jitgemm_gemm_problem, a_dtype, 32);
  OFFSET(jitgemm_gemm_problem, b_dtype, 36);
  OFFSET(jitgemm_gemm_problem, scale_dtype, 40);
  OFFSET(jitgemm_gemm_problem, out_dtype, 44);
  OFFSET(jitgemm_gemm_problem, group_n, 48);
  OFFSET(jitgemm_gemm_problem, group_k, 52);
  OFFSET(jitgemm_gemm_problem, a_scale_major, 56);
  OFFSET(jitgemm_gemm_problem, b_scale_major, 60);
  OFFSET(jitgemm_gemm_problem, scale_values, 64);
  OFFSET(jitgemm_gemm_problem, m_policy, 68);
  OFFSET(jitgemm_gemm_problem, lda, 72);
  OFFSET(jitgemm_gemm_problem, ldb, 80);
  OFFSET(jitgemm_gemm_problem, ldo, 88);
  OFFSET(jitgemm_gemm_problem, a_scale_ld, 96);
  OFFSET(jitgemm_gemm_problem, b_scale_ld, 104);
  OFFSET(jitgemm_gemm_problem, alignment, 112);
  OFFSET(jitgemm_gemm_problem, batch_invariant, 116);
  OFFSET(jitgemm_gemm_problem, a_code_dtype, 120);
  OFFSET(jitgemm_gemm_problem, reserved, 124);
  expect("sizeof jitgemm_gemm_problem", sizeof(jitgemm_gemm_problem), 128);

  OFFSET(jitgemm_gemm_arguments, struct_size, 0);
  OFFSET(jitgemm_gemm_arguments, a, 8);
  OFFSET(jitgemm_gemm_arguments, b, 16);
  OFFSET(jitgemm_gemm_arguments, a_scales, 24);
  OFFSET(jitgemm_gemm_arguments, b_scales, 32);
  OFFSET(jitgemm_gemm_arguments, out, 40);
  OFFSET(jitgemm_gemm_arguments, m, 48);
  OFFSET(jitgemm_gemm_arguments, workspace, 56);
  OFFSET(jitgemm_gemm_arguments, workspace_bytes, 64);
  OFFSET(jitgemm_gemm_arguments, flags, 72);
  OFFSET(jitgemm_gemm_arguments, reserved, 76);
  expect("sizeof jitgemm_gemm_arguments", sizeof(jitgemm_gemm_arguments), 80);

  OFFSET(jitgemm_sim_buffer, name, 0);
  OFFSET(jitgemm_sim_buffer, data, 8);
  OFFSET(jitgemm_sim_buffer, bytes, 16);
  expect("sizeof jitgemm_sim_buffer", sizeof(jitgemm_sim_buffer), 24);

  OFFSET(jitgemm_sim_run_arguments, struct_size, 0);
  OFFSET(jitgemm_sim_run_arguments, ptx, 8);
  OFFSET(jitgemm_sim_run_arguments, launch_json, 16);
  OFFSET(jitgemm_sim_run_arguments, folder, 24);
  OFFSET(jitgemm_sim_run_arguments, buffers, 32);
  OFFSET(jitgemm_sim_run_arguments, buffer_count, 40);
  OFFSET(jitgemm_sim_run_arguments, report, 48);
  OFFSET(jitgemm_sim_run_arguments, report_user, 56);
  expect("sizeof jitgemm_sim_run_arguments", sizeof(jitgemm_sim_run_arguments), 64);

  OFFSET(jitgemm_grouped_gemm_problem, struct_size, 0);
  OFFSET(jitgemm_grouped_gemm_problem, m, 8);
  OFFSET(jitgemm_grouped_gemm_problem, n, 16);
  OFFSET(jitgemm_grouped_gemm_problem, k, 24);
  OFFSET(jitgemm_grouped_gemm_problem, groups, 32);
  OFFSET(jitgemm_grouped_gemm_problem, expected_m, 40);
  OFFSET(jitgemm_grouped_gemm_problem, lda, 48);
  OFFSET(jitgemm_grouped_gemm_problem, ldb, 56);
  OFFSET(jitgemm_grouped_gemm_problem, ldo, 64);
  OFFSET(jitgemm_grouped_gemm_problem, a_scale_ld, 72);
  OFFSET(jitgemm_grouped_gemm_problem, b_scale_ld, 80);
  OFFSET(jitgemm_grouped_gemm_problem, a_group_stride, 88);
  OFFSET(jitgemm_grouped_gemm_problem, b_group_stride, 96);
  OFFSET(jitgemm_grouped_gemm_problem, out_group_stride, 104);
  OFFSET(jitgemm_grouped_gemm_problem, a_scale_group_stride, 112);
  OFFSET(jitgemm_grouped_gemm_problem, b_scale_group_stride, 120);
  OFFSET(jitgemm_grouped_gemm_problem, layout, 128);
  OFFSET(jitgemm_grouped_gemm_problem, a_dtype, 132);
  OFFSET(jitgemm_grouped_gemm_problem, b_dtype, 136);
  OFFSET(jitgemm_grouped_gemm_problem, scale_dtype, 140);
  OFFSET(jitgemm_grouped_gemm_problem, out_dtype, 144);
  OFFSET(jitgemm_grouped_gemm_problem, group_n, 148);
  OFFSET(jitgemm_grouped_gemm_problem, group_k, 152);
  OFFSET(jitgemm_grouped_gemm_problem, a_scale_major, 156);
  OFFSET(jitgemm_grouped_gemm_problem, b_scale_major, 160);
  OFFSET(jitgemm_grouped_gemm_problem, scale_values, 164);
  OFFSET(jitgemm_grouped_gemm_problem, m_policy, 168);
  OFFSET(jitgemm_grouped_gemm_problem, alignment, 172);
  OFFSET(jitgemm_grouped_gemm_problem, row_alignment, 176);
  OFFSET(jitgemm_grouped_gemm_problem, zero_ungrouped, 180);
  OFFSET(jitgemm_grouped_gemm_problem, count_invalid, 184);
  OFFSET(jitgemm_grouped_gemm_problem, batch_invariant, 188);
  expect("sizeof jitgemm_grouped_gemm_problem", sizeof(jitgemm_grouped_gemm_problem), 192);

  OFFSET(jitgemm_grouped_gemm_arguments, struct_size, 0);
  OFFSET(jitgemm_grouped_gemm_arguments, a, 8);
  OFFSET(jitgemm_grouped_gemm_arguments, b, 16);
  OFFSET(jitgemm_grouped_gemm_arguments, a_scales, 24);
  OFFSET(jitgemm_grouped_gemm_arguments, b_scales, 32);
  OFFSET(jitgemm_grouped_gemm_arguments, group_rows, 40);
  OFFSET(jitgemm_grouped_gemm_arguments, out, 48);
  OFFSET(jitgemm_grouped_gemm_arguments, m, 56);
  OFFSET(jitgemm_grouped_gemm_arguments, invalid_count, 64);
  OFFSET(jitgemm_grouped_gemm_arguments, workspace, 72);
  OFFSET(jitgemm_grouped_gemm_arguments, workspace_bytes, 80);
  OFFSET(jitgemm_grouped_gemm_arguments, flags, 88);
  OFFSET(jitgemm_grouped_gemm_arguments, reserved, 92);
  expect("sizeof jitgemm_grouped_gemm_arguments", sizeof(jitgemm_grouped_gemm_arguments), 96);

  VALUE(JITGEMM_STATUS_OK, 0);
  VALUE(JITGEMM_STATUS_INVALID_ARGUMENT, 1);
  VALUE(JITGEMM_STATUS_UNSUPPORTED, 2);
  VALUE(JITGEMM_STATUS_NOT_READY, 3);
  VALUE(JITGEMM_STATUS_CAPTURE_NOT_READY, 4);
  VALUE(JITGEMM_STATUS_COMPILE_FAILED, 10);
  VALUE(JITGEMM_STATUS_NO_COMPILER, 11);
  VALUE(JITGEMM_STATUS_NO_DRIVER, 20);
  VALUE(JITGEMM_STATUS_DEVICE_ERROR, 21);
  VALUE(JITGEMM_STATUS_OUT_OF_MEMORY, 22);
  VALUE(JITGEMM_STATUS_SIMULATOR_FAULT, 30);
  VALUE(JITGEMM_STATUS_IO_ERROR, 40);
  VALUE(JITGEMM_STATUS_CORRUPT_DATA, 41);
  VALUE(JITGEMM_STATUS_VERIFICATION_FAILED, 50);
  VALUE(JITGEMM_STATUS_INTERNAL, 99);
  VALUE(JITGEMM_F8_E4M3, 1);
  VALUE(JITGEMM_F8_E5M2, 2);
  VALUE(JITGEMM_F8_E8M0, 3);
  VALUE(JITGEMM_F16, 4);
  VALUE(JITGEMM_BF16, 5);
  VALUE(JITGEMM_F32, 6);
  VALUE(JITGEMM_ARCH_OF_DEVICE, 0);
  VALUE(JITGEMM_ARCH_SM_90A, 900);
  VALUE(JITGEMM_ARCH_SM_100A, 1000);
  VALUE(JITGEMM_ARCH_SM_100F, 1001);
  VALUE(JITGEMM_ARCH_SM_103A, 1030);
  VALUE(JITGEMM_ARCH_SM_103F, 1031);
  VALUE(JITGEMM_SCALE_MAJOR_ROW, 0);
  VALUE(JITGEMM_SCALE_MAJOR_COLUMN, 1);
  VALUE(JITGEMM_SCALE_MAJOR_PACKED, 2);
  VALUE(JITGEMM_GROUPS_ROW_INDICES, 1);
  VALUE(JITGEMM_GROUPS_END_OFFSETS, 2);
  VALUE(JITGEMM_GROUPS_ROW_POINTERS, 3);
  VALUE(JITGEMM_GROUPS_MASKED, 4);
  VALUE(JITGEMM_GROUPS_COLUMNS, 5);
  VALUE(JITGEMM_SCALE_VALUES_ANY, 0);
  VALUE(JITGEMM_SCALE_VALUES_POWER_OF_TWO, 1);
  VALUE(JITGEMM_M_EXACT, 0);
  VALUE(JITGEMM_M_CLASS, 1);
  VALUE(JITGEMM_M_ANY, 2);
  VALUE(JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE, 1);
  VALUE(JITGEMM_LAUNCH_CHECK_ADDRESSES, 2);

  char version[32];
  snprintf(version, sizeof(version), "%d.%d.%d", JITGEMM_VERSION_MAJOR, JITGEMM_VERSION_MINOR,
           JITGEMM_VERSION_PATCH);
  if (strcmp(version, JITGEMM_CMAKE_VERSION) != 0 || strcmp(version, jitgemm_version()) != 0) {
    printf("version: header %s, build %s, library %s\n", version, JITGEMM_CMAKE_VERSION,
           jitgemm_version());
    ++failures;
  }
  return failures != 0;
}
