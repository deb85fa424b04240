// SPDX-License-Identifier: Apache-2.0
// Words<kBytes>::Type: what one load or store of that many bytes moves.
#pragma once

template <int kBytes>
struct Words;
template <>
struct Words<16> {
  using Type = uint4;
};
template <>
struct Words<8> {
  using Type = uint2;
};
template <>
struct Words<4> {
  using Type = unsigned;
};
template <>
struct Words<2> {
  using Type = unsigned short;
};
template <>
struct Words<1> {
  using Type = unsigned char;
};
