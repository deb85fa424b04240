// SPDX-License-Identifier: Apache-2.0
// The same as C++, which the header must also be.
#include "../product.c"
