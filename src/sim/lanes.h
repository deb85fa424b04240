// SPDX-License-Identifier: Apache-2.0
// The lane loop, written once for each shape of a scalar instruction: a functor of one, two or
// three values, applied to the active lanes. "Undefined" passes from sources to the result. Used by
// exec_*.cpp.
#pragma once

#include "sim/exec.h"
#include "sim/machine_state.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace jitgemm::sim {

// 8- and 16-bit values live zero-extended in 32-bit slots.
template <typename T>
using SlotOf = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <typename T>
T from_slot(SlotOf<T> slot) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(slot);
  } else {
    return static_cast<T>(slot);
  }
}

template <typename T>
SlotOf<T> to_slot(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<SlotOf<T>>(value);
  } else {
    return static_cast<SlotOf<T>>(static_cast<std::make_unsigned_t<T>>(value));
  }
}

template <typename F>
inline void for_lanes(LaneMask active, F f) {
  if (active == kAllLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (LaneMask m = active; m != 0; m &= m - 1) f(static_cast<uint32_t>(std::countr_zero(m)));
  }
}

// f(lane) -> Step; stops at the first that isn't kNext.
template <typename F>
inline Step each_lane(LaneMask active, F f) {
  for (LaneMask m = active; m != 0; m &= m - 1) {
    const Step step = f(static_cast<uint32_t>(std::countr_zero(m)));
    if (step != Step::kNext) return step;
  }
  return Step::kNext;
}

// Slots: d, a.
template <typename R, typename A, typename F>
Step unary(Warp& w, const Op& op, LaneMask active) {
  SlotOf<R>* d = w.lanes<SlotOf<R>>(op.slot(0));
  const SlotOf<A>* a = w.lanes<SlotOf<A>>(op.slot(1));
  for_lanes(active, [&](uint32_t i) { d[i] = to_slot<R>(F{}(from_slot<A>(a[i]))); });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// Slots: d, a, b.
template <typename R, typename A, typename B, typename F>
Step binary(Warp& w, const Op& op, LaneMask active) {
  SlotOf<R>* d = w.lanes<SlotOf<R>>(op.slot(0));
  const SlotOf<A>* a = w.lanes<SlotOf<A>>(op.slot(1));
  const SlotOf<B>* b = w.lanes<SlotOf<B>>(op.slot(2));
  for_lanes(active,
            [&](uint32_t i) { d[i] = to_slot<R>(F{}(from_slot<A>(a[i]), from_slot<B>(b[i]))); });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)) | w.undefined(op.slot(2)), active);
  return Step::kNext;
}

// Slots: d, a, b, c.
template <typename R, typename A, typename B, typename C, typename F>
Step ternary(Warp& w, const Op& op, LaneMask active) {
  SlotOf<R>* d = w.lanes<SlotOf<R>>(op.slot(0));
  const SlotOf<A>* a = w.lanes<SlotOf<A>>(op.slot(1));
  const SlotOf<B>* b = w.lanes<SlotOf<B>>(op.slot(2));
  const SlotOf<C>* c = w.lanes<SlotOf<C>>(op.slot(3));
  for_lanes(active, [&](uint32_t i) {
    d[i] = to_slot<R>(F{}(from_slot<A>(a[i]), from_slot<B>(b[i]), from_slot<C>(c[i])));
  });
  w.set_undefined(op.slot(0),
                  w.undefined(op.slot(1)) | w.undefined(op.slot(2)) | w.undefined(op.slot(3)),
                  active);
  return Step::kNext;
}

template <typename T, typename F>
constexpr ExecuteFn unary_same = unary<T, T, F>;
template <typename T, typename F>
constexpr ExecuteFn binary_same = binary<T, T, T, F>;
template <typename T, typename F>
constexpr ExecuteFn ternary_same = ternary<T, T, T, T, F>;

}  // namespace jitgemm::sim
