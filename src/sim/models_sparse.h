// SPDX-License-Identifier: Apache-2.0
// Structured sparsity of matrix A (PTX ISA 9.7.14.6, 9.7.15.6.1, 9.7.16.10.8): a row of K elements
// is stored as K/2 with metadata of four bits a chunk that say where they stand. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jitgemm::sim {

enum class Sparsity : uint8_t {
  kTwoOfFour,       // a chunk of four elements keeps two: two indices of two bits, which differ
  kOneOfTwo,        // of two 32-bit elements one: 0b0100 the first, 0b1110 the second
  kTwoPairsOfFour,  // of eight 4-bit elements, two pairs of neighbours
};

// Of an instruction whose elements have this many bits each, with padding, where they are stored.
Sparsity sparsity_of(int bits);
// Elements of a row that four bits of metadata are about.
uint32_t chunk_elements(Sparsity sparsity);

// The place of an element that must be zero and goes nowhere.
inline constexpr uint32_t kNowhere = ~0u;

// The places in the row of K elements of the elements stored, by chunk; empty if the metadata of
// some chunk means nothing. `metadata`: four bits a chunk, in the low bits of each entry.
// `equal_indices`: two indices may be equal where the second element is zero, as compressors of
// production leave chunks of zeros; the ISA does not list them.
std::vector<uint32_t> sparse_places(Sparsity sparsity, std::span<const uint8_t> metadata,
                                    bool equal_indices = false);

// Rows of `k` codes in place of the k / 2 each that are stored, by the places of all of them; the
// rest is zero. The rows in which an element that goes nowhere is not zero.
std::vector<size_t> expand_sparse_rows(std::vector<uint32_t>& codes,
                                       std::span<const uint32_t> places, size_t k);

}  // namespace jitgemm::sim
