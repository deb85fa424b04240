// SPDX-License-Identifier: Apache-2.0
// The same header and the same code as C++.
#include "header_alone.c"  // NOLINT(bugprone-suspicious-include)
