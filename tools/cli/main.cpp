// SPDX-License-Identifier: Apache-2.0
// The jitgemm command: one file a verb; this file only names them.
#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app{"jitgemm: run-time specialised GEMM kernels for NVIDIA GPUs"};
  CLI11_PARSE(app, argc, argv);
  return 0;
}
