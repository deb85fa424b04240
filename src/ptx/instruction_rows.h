// SPDX-License-Identifier: Apache-2.0
// The rows of the instruction table, by family, and the notation that they are written in. It is
// the manual's, reduced to one line a form:
//
//   mnemonic   add{.sat}.s32         .word must be there, {.word} may be
//              .<rn|rz>  {.<rn|rz>}  one of several; @set stands for a named list
//              (instruction_table.cpp) .m64n#k32             # is any number
//              ~.aligned             not written, but set: bar.sync is always aligned
//   operands   a                     read: register, immediate, special register or symbol address
//              =d  +d                written; read and written
//              [a]  [map, {c}]       address; an address and coordinates in one pair of brackets
//              {a}                   vector; {a}*n: of n elements
//              =p|=q                 a pair; =p|?=q: the second may be left out with its bar
//              ?a                    may be left out
//              a?word                there exactly when .word is in the mnemonic
//              #a  $a                an immediate only; a register only
//              (a)                   list of a call
//   a:type     what the operand must be wide: a type word, 0-3 (that type of the mnemonic; 0 is the
//              default), 2x (twice type 0), ge0 ge1 (that type or wider), frag (64 bits for .f64,
//              else 32), any; or label, targets, function, prototype
//   *count     a number, vec (as .v2/.v4/.v8 say, a scalar without), dim, pack (elements that fill
//              type 0), num (as .xN says), or a fragment rule of fragment_size.h
#pragma once

#include "ptx/instruction_table.h"

#include <span>

namespace jitgemm::ptx {

std::span<const FormRow> integer_rows();
std::span<const FormRow> float_rows();
std::span<const FormRow> compare_and_logic_rows();
std::span<const FormRow> move_and_convert_rows();
std::span<const FormRow> memory_rows();
std::span<const FormRow> copy_rows();
std::span<const FormRow> control_and_sync_rows();
std::span<const FormRow> warp_matrix_rows();
std::span<const FormRow> tensor_core_rows();

}  // namespace jitgemm::ptx
