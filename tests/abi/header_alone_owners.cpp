// SPDX-License-Identifier: Apache-2.0
// The C++ header compiles alone, twice.
#include <jitgemm/jitgemm.hpp>
// clang-format off: it would drop the second
#include <jitgemm/jitgemm.hpp>
