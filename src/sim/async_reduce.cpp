// SPDX-License-Identifier: Apache-2.0
#include "sim/async_reduce.h"

#include "sim/models_number_formats.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

namespace jitgemm::sim {
namespace {

using ptx::Operation;

template <typename Word, typename F>
void update(std::byte* target, F combine) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(target));
  Word old = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(old, combine(old), std::memory_order_relaxed)) {
  }
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Word: the unsigned type of the element; T: how it compares and adds.
template <typename Word, typename T>
Word combine_integer(Operation operation, Word old, Word operand) {
  const T a = std::bit_cast<T>(old);
  const T b = std::bit_cast<T>(operand);
  switch (operation) {
    case Operation::kAdd: return old + operand;
    case Operation::kMin: return std::bit_cast<Word>(std::min(a, b));
    case Operation::kMax: return std::bit_cast<Word>(std::max(a, b));
    case Operation::kAnd: return old & operand;
    case Operation::kOr: return old | operand;
    case Operation::kXor: return old ^ operand;
    case Operation::kInc: return old >= operand ? Word{0} : old + 1;
    case Operation::kDec: return old == 0 || old > operand ? operand : old - 1;
    default: return old;
  }
}

template <typename T>
T combine_float(Operation operation, T a, T b) {
  switch (operation) {
    case Operation::kAdd: return a + b;
    case Operation::kMin: return std::fmin(a, b);
    case Operation::kMax: return std::fmax(a, b);
    default: return a;
  }
}

uint32_t flushed(uint32_t bits) {
  return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits;
}

uint16_t bf16_nearest_even(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace

uint32_t reduce_bytes(ReduceType type) {
  switch (type) {
    case ReduceType::kF16:
    case ReduceType::kBf16: return 2;
    case ReduceType::kU32:
    case ReduceType::kS32:
    case ReduceType::kF32:
    case ReduceType::kF32Ftz: return 4;
    case ReduceType::kU64:
    case ReduceType::kS64:
    case ReduceType::kF64: return 8;
  }
  return 0;
}

bool reduce_is_legal(Operation operation, ReduceType type) {
  const bool small_float = type == ReduceType::kF16 || type == ReduceType::kBf16;
  const bool is_float = small_float || type == ReduceType::kF32 || type == ReduceType::kF32Ftz ||
                        type == ReduceType::kF64;
  switch (operation) {
    case Operation::kAdd: return true;
    case Operation::kMin:
    case Operation::kMax: return !is_float || small_float;
    case Operation::kAnd:
    case Operation::kOr:
    case Operation::kXor: return !is_float;
    case Operation::kInc:
    case Operation::kDec: return type == ReduceType::kU32 || type == ReduceType::kU64;
    default: return false;
  }
}

void reduce_element(Operation operation, ReduceType type, std::byte* target,
                    const std::byte* operand) {
  switch (type) {
    case ReduceType::kU32:
      return update<uint32_t>(target, [&](uint32_t old) {
        return combine_integer<uint32_t, uint32_t>(operation, old, load<uint32_t>(operand));
      });
    case ReduceType::kS32:
      return update<uint32_t>(target, [&](uint32_t old) {
        return combine_integer<uint32_t, int32_t>(operation, old, load<uint32_t>(operand));
      });
    case ReduceType::kU64:
      return update<uint64_t>(target, [&](uint64_t old) {
        return combine_integer<uint64_t, uint64_t>(operation, old, load<uint64_t>(operand));
      });
    case ReduceType::kS64:
      return update<uint64_t>(target, [&](uint64_t old) {
        return combine_integer<uint64_t, int64_t>(operation, old, load<uint64_t>(operand));
      });
    case ReduceType::kF32:
      return update<uint32_t>(target, [&](uint32_t old) {
        return std::bit_cast<uint32_t>(
            combine_float(operation, std::bit_cast<float>(old), load<float>(operand)));
      });
    case ReduceType::kF32Ftz:
      return update<uint32_t>(target, [&](uint32_t old) {
        const float sum = combine_float(operation, std::bit_cast<float>(flushed(old)),
                                        std::bit_cast<float>(flushed(load<uint32_t>(operand))));
        return flushed(std::bit_cast<uint32_t>(sum));
      });
    case ReduceType::kF64:
      return update<uint64_t>(target, [&](uint64_t old) {
        return std::bit_cast<uint64_t>(
            combine_float(operation, std::bit_cast<double>(old), load<double>(operand)));
      });
    case ReduceType::kF16:
      return update<uint16_t>(target, [&](uint16_t old) {
        const double a = to_double(NumberFormat::kF16, old);
        const double b = to_double(NumberFormat::kF16, load<uint16_t>(operand));
        return f16_from_double(combine_float(operation, a, b));
      });
    case ReduceType::kBf16:
      return update<uint16_t>(target, [&](uint16_t old) {
        const auto a = static_cast<float>(to_double(NumberFormat::kBf16, old));
        const auto b = static_cast<float>(to_double(NumberFormat::kBf16, load<uint16_t>(operand)));
        return bf16_nearest_even(combine_float(operation, a, b));
      });
  }
}

}  // namespace jitgemm::sim
