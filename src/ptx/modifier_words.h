// SPDX-License-Identifier: Apache-2.0
// From one dotted word of a mnemonic to the field of Modifiers that it sets: over types.def,
// modifiers.def, flags.def and the numbered words (.m16n8k16, .x4, .v2, .2d, .cta_group::1).
#pragma once

#include "ptx/modifiers.h"

#include <string_view>

namespace jitgemm::ptx {

// Applies the word; false when it is none that this file knows. "lo" and "hi" are halves of a
// product unless is_comparison.
bool apply_modifier(std::string_view word, bool is_comparison, Modifiers& modifiers);

}  // namespace jitgemm::ptx
