// SPDX-License-Identifier: Apache-2.0
// Which tiles of a grouped product this CTA computes, found on the device while the kernel runs.
// One warp walks over groups, windows of rows and columns and hands each tile to the other roles
// through a ring in shared memory. Included after Spec is defined; knows nothing of operands.
//
// A tile never holds rows of two groups: where groups are ranges of rows, windows begin at a
// group's first row; where every row names its group, windows are fixed and each run of equal names
// inside one is a tile of its own. Whatever the integers in memory are, no row outside [0, m) and
// no group outside [0, groups) is ever named.
#pragma once

#include "device/mbarrier.cuh"
#include "device/params.cuh"
#include "device/tile_walk.cuh"

// The numbers of GroupLayout in src/problem/grouping.h.
enum GroupLayout : int {
  kNotGrouped = 0,
  kRowIndices = 1,
  kEndOffsets = 2,
  kRowPointers = 3,
  kMasked = 4,
};

// Rows [row, end) of one group, columns of out from `column` on. Where every group has rows of its
// own, rows are counted in the group. Rows that are to be zeroed have the group ~g, which is
// negative: g is the group whose rows they lie among, where that matters.
struct GroupTile {
  int group;
  int row;
  int end;
  int column;
};

// Of kMasked: the group that the rows of a tile belong to, whether they are in use or zeroed.
__device__ __forceinline__ int owner_of_rows(int group) {
  return Spec::kZeroUngrouped != 0 && group < 0 ? ~group : group;
}

// Into [0, most], whatever lies in memory.
__device__ __forceinline__ int clamp(int value, int most) {
  return value < 0 ? 0 : value > most ? most : value;
}

// How the scheduling warp hands tiles over: a ring of slots, each with two barriers. A tile without
// rows says that there are no more.
struct WorkRing {
  enum : int { kSlots = 4, kBytes = kSlots * (16 + 16) };

  SharedAddress base;  // a multiple of 16

  __device__ __forceinline__ SharedAddress tile(int slot) const { return base + 16 * slot; }
  __device__ __forceinline__ SharedAddress full(int slot) const {
    return base + 16 * kSlots + 8 * slot;
  }
  __device__ __forceinline__ SharedAddress empty(int slot) const { return full(kSlots + slot); }

  // One thread; `readers` is how many arrivals free a slot.
  __device__ __forceinline__ void init(unsigned readers) const {
    for (int slot = 0; slot < kSlots; ++slot) init_slot(slot, readers);
  }
  __device__ __forceinline__ void init_slot(int slot, unsigned readers) const {
    mbarrier_init(full(slot), 1);
    mbarrier_init(empty(slot), readers);
  }
};

struct WorkWriter {
  WorkRing ring;
  StageCursor<WorkRing::kSlots> cursor;

  // All lanes of a warp, with the same tile.
  __device__ __forceinline__ void put(const GroupTile& tile, int lane) {
    mbarrier_wait(ring.empty(cursor.stage), cursor.phase ^ 1);
    if (lane == 0) {
      asm volatile("st.shared.v4.s32 [%0], {%1, %2, %3, %4};" ::"r"(ring.tile(cursor.stage)),
                   "r"(tile.group), "r"(tile.row), "r"(tile.end), "r"(tile.column)
                   : "memory");
      mbarrier_arrive(ring.full(cursor.stage));
    }
    __syncwarp();
    cursor.next();
  }
};

struct WorkReader {
  WorkRing ring;
  StageCursor<WorkRing::kSlots> cursor;

  // All lanes of a warp, or, with kThread, one thread alone; false at the end.
  template <bool kThread = false>
  __device__ __forceinline__ bool next(GroupTile& tile) {
    open(tile);
    release_slot<kThread>(cursor.stage);
    cursor.next();
    return tile.row < tile.end;
  }

  // The same in steps, for a warp whose registers are scarce: a tile that it has passed may be read
  // again until it is released, which is before the next one is passed.
  __device__ __forceinline__ bool open(GroupTile& tile) const {
    mbarrier_wait(ring.full(cursor.stage), cursor.phase);
    read(cursor.stage, tile);
    return tile.row < tile.end;
  }
  __device__ __forceinline__ void reread_opened(GroupTile& tile) const { read(cursor.stage, tile); }
  __device__ __forceinline__ void pass() { cursor.next(); }
  __device__ __forceinline__ void reread_passed(GroupTile& tile) const { read(passed(), tile); }
  __device__ __forceinline__ void release_passed() const { release_slot<false>(passed()); }

 private:
  __device__ __forceinline__ int passed() const {
    return cursor.stage == 0 ? WorkRing::kSlots - 1 : cursor.stage - 1;
  }
  __device__ __forceinline__ void read(int slot, GroupTile& tile) const {
    asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.group), "=r"(tile.row), "=r"(tile.end), "=r"(tile.column)
                 : "r"(ring.tile(slot))
                 : "memory");
  }
  template <bool kThread>
  __device__ __forceinline__ void release_slot(int slot) const {
    if constexpr (!kThread) __syncwarp();
    if (kThread || threadIdx.x % 32 == 0) mbarrier_arrive(ring.empty(slot));
  }
};

// The walk itself; every lane of one warp calls everything. Order is how the windows of a group and
// its columns follow each other: at(windows, index, window, column tile), both of the size of what
// kCluster CTAs take together, kWindow rows by kColumns columns; kShortLast where a window that is
// half empty takes less time.
template <class Order>
struct GroupWalk {
  enum : int {
    kWindow = Order::kWindow,
    kColumnTiles = (Spec::kN + Order::kColumns - 1) / Order::kColumns,
    kIndices = Spec::kGroupLayout == kRowIndices,
    kZeroes = Spec::kZeroUngrouped != 0,
    // Groups that have rows, zeroed ones included. Where groups share all rows, the rows behind the
    // last are those of one more, which has none itself.
    kOwners = Spec::kGroups + (kZeroes && Spec::kGroupLayout != kMasked ? 1 : 0),
    // Where windows that are half empty take less time they come when all others have been passed:
    // every CTA then has as many of either kind as the next, and ends with short ones.
    kShortLast = Order::kShortLast != 0 && !kIndices,
    // Groups that the walk passes, twice if so.
    kPassed = kOwners * (kShortLast ? 2 : 1),
    // Groups, or rows of a window, that a lane looks at in one step.
    kWanted = ((kIndices ? static_cast<int>(kWindow) : kPassed) + 31) / 32,
    kPerLane = kWanted < 1   ? 1
               : kWanted < 8 ? kWanted
                             : 8,
    kPage = 32 * kPerLane,
    // Windows whose names are read before their turn, so that those without rows pass quickly.
    kAhead = kPerLane == 1   ? 4
             : kPerLane == 2 ? 2
             : kPerLane <= 4 ? 1
                             : 0,
    // Counts of units stop here, so that no content of memory makes one overflow.
    kMostUnits = 1 << 30,
  };

  const int* rows;
  unsigned* invalid;
  int m;
  int lane;
  int unit;  // the next one of this CTA, or of its cluster
  // Where groups are ranges: the page of groups around `unit`, of which lane l has group 32 * i + l
  // as its i-th; with units before the page, and up to and including each group.
  int page = 0;
  int before = 0;
  int through[kPerLane];
  // Where rows name their group: the rest of the window, and its columns.
  int row = 0;
  int row_end = 0;
  int column = 0;
  int ahead[kAhead > 0 ? static_cast<int>(kAhead) : 1][kPerLane];

  __device__ __forceinline__ GroupWalk(const GemmParams& p, int lane_id)
      : rows(p.group_rows),
        invalid(Spec::kCountInvalid != 0 ? p.invalid_count : nullptr),
        m(p.m),
        lane(lane_id),
        unit(static_cast<int>(blockIdx.x) / Order::kCluster) {
    if constexpr (kIndices) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        read_window(unit + i * step(), ahead[i]);
      }
    } else {
      load_page();
    }
  }

  // Every tile of this CTA, then one without rows.
  __device__ __forceinline__ GroupTile next() {
    if constexpr (kIndices) {
      return next_run();
    } else {
      return next_window();
    }
  }

 private:
  // From one unit of this CTA to its next.
  static __device__ __forceinline__ int step() {
    return static_cast<int>(gridDim.x) / Order::kCluster;
  }

  // The rows of a group, in bounds and in order.
  __device__ __forceinline__ void bounds(int group, int& begin, int& end) const {
    begin = 0;
    if constexpr (Spec::kGroupLayout == kMasked) {
      end = clamp(rows[group], m);
    } else if constexpr (Spec::kGroupLayout == kRowPointers) {
      begin = clamp(rows[group], m);
      end = clamp(rows[group + 1], m);
    } else {
      if (group > 0) {
        constexpr int kAlign = Spec::kRowAlignment;
        // Rounded up; beyond m alike when that leaves the range of int.
        const unsigned aligned =
            (static_cast<unsigned>(clamp(rows[group - 1], m)) + kAlign - 1) / kAlign * kAlign;
        begin = aligned > static_cast<unsigned>(m) ? m : static_cast<int>(aligned);
      }
      end = clamp(rows[group], m);
    }
    if (end < begin) end = begin;
  }

  // With rows to be zeroed: those of no group that come with this one. Where groups share all rows
  // they lie before it, else behind its own. Where bounds do not rise it is open what is zeroed.
  __device__ __forceinline__ void gap(int group, int begin, int end, int& first, int& last) const {
    if constexpr (Spec::kGroupLayout == kMasked) {
      first = end;
      last = m;
    } else {
      last = begin;
      if constexpr (Spec::kGroupLayout == kRowPointers) {
        first = group == 0 ? 0 : group == Spec::kGroups ? clamp(rows[group], m) : begin;
      } else {
        first = group == 0 ? 0 : clamp(rows[group - 1], m);
        // A group that ends where the one before did leaves the gap to the next.
        if (group < Spec::kGroups && clamp(rows[group], m) < begin) last = first;
      }
      if (last < first) last = first;
    }
  }

  // Rows of a group, and of the gap that comes with it.
  struct Span {
    int begin, end;
    int gap, gap_end;
    __device__ __forceinline__ int windows() const { return (end - begin + kWindow - 1) / kWindow; }
    __device__ __forceinline__ int gap_windows() const {
      return kZeroes ? (gap_end - gap + kWindow - 1) / kWindow : 0;
    }
    // Of windows(): the last, if it is no more than half full and comes last.
    __device__ __forceinline__ int short_windows() const {
      const int rest = (end - begin) % kWindow;
      return kShortLast && rest > 0 && rest <= kWindow / 2 ? 1 : 0;
    }
    // Those of the first pass, or of the second; without passes, all.
    __device__ __forceinline__ int first_windows() const { return windows() - short_windows(); }
    __device__ __forceinline__ int passed_windows(bool second) const {
      return !kShortLast ? windows() + gap_windows()
             : second    ? short_windows() + gap_windows()
                         : first_windows();
    }
  };
  // Whether what is passed as the `index`-th is a group's short window.
  static __device__ __forceinline__ bool second_pass(int index) {
    return kShortLast && index >= kOwners;
  }
  static __device__ __forceinline__ int owner(int index) {
    return second_pass(index) ? index - kOwners : index;
  }
  __device__ __forceinline__ Span span(int group) const {
    Span s = {m, m, 0, 0};
    if (!kZeroes || group < Spec::kGroups) bounds(group, s.begin, s.end);
    if constexpr (kZeroes) gap(group, s.begin, s.end, s.gap, s.gap_end);
    return s;
  }

  __device__ __forceinline__ int units(int index) const {
    const Span s = span(owner(index));
    const long long count =
        static_cast<long long>(s.passed_windows(second_pass(index))) * kColumnTiles;
    return count > kMostUnits ? static_cast<int>(kMostUnits) : static_cast<int>(count);
  }

  // Integers outside of [0, m], and ends that lie before their begin.
  __device__ __forceinline__ void count_bounds(int group) const {
    const auto outside = [&](int value) { return value < 0 || value > m ? 1u : 0u; };
    unsigned found = outside(rows[group]);
    if constexpr (Spec::kGroupLayout == kRowPointers) {
      if (group + 1 == Spec::kGroups) found += outside(rows[group + 1]);
      if (rows[group + 1] < rows[group]) found += 1;
    } else if constexpr (Spec::kGroupLayout == kEndOffsets) {
      if (group > 0 && rows[group] < rows[group - 1]) found += 1;
    }
    if (found != 0) atomicAdd(invalid, found);
  }

  __device__ __forceinline__ static int add_units(int a, int b) {
    const unsigned sum = static_cast<unsigned>(a) + static_cast<unsigned>(b);
    return sum > kMostUnits ? static_cast<int>(kMostUnits) : static_cast<int>(sum);
  }

  __device__ __forceinline__ void load_page() {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int index = page + 32 * i + lane;
      through[i] = index < kPassed ? units(index) : 0;
      if constexpr (Spec::kCountInvalid != 0) {
        if (blockIdx.x == 0 && index < Spec::kGroups) count_bounds(index);
      }
    }
    int sum = before;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int below = __shfl_up_sync(0xffffffffu, through[i], distance);
        if (lane >= distance) through[i] = add_units(through[i], below);
      }
      through[i] = add_units(through[i], sum);
      sum = __shfl_sync(0xffffffffu, through[i], 31);
    }
  }

  __device__ __forceinline__ GroupTile next_window() {
    while (true) {
      // Groups whose units all lie before this one: a prefix of the page, since counts only grow.
      int passed = 0;
      int start = before;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        const bool is_before = through[i] <= unit;
        passed += __popc(__ballot_sync(0xffffffffu, is_before));
        if (is_before && through[i] > start) start = through[i];
      }
      if (passed < kPage) {
        start = static_cast<int>(__reduce_max_sync(0xffffffffu, static_cast<unsigned>(start)));
        const int index = page + passed;
        if (index >= kPassed) return {0, 0, 0, 0};
        const bool second = second_pass(index);
        const int group = owner(index);
        const Span s = span(group);
        int window, column_tile;
        Order::at(s.passed_windows(second), unit - start, window, column_tile);
        unit += step();
        if (second) window += s.first_windows();
        const bool zeroed = kZeroes && window >= s.windows();
        if (zeroed) window -= s.windows();
        const int first = (zeroed ? s.gap : s.begin) + window * kWindow;
        const int end = zeroed ? s.gap_end : s.end;
        return {zeroed ? ~group : group, first, end - first < kWindow ? end : first + kWindow,
                column_tile * Order::kColumns};
      }
      if (page + kPage >= kPassed) return {0, 0, 0, 0};
      before = __shfl_sync(0xffffffffu, through[kPerLane - 1], 31);
      page += kPage;
      load_page();
    }
  }

  // The names of rows [first, end), of which a lane takes every 32nd; -2 behind the end.
  __device__ __forceinline__ void read_names(int first, int end, int (&raw)[kPerLane]) const {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int at = first + 32 * i + lane;
      raw[i] = at < end ? rows[at] : -2;
    }
  }

  __device__ __forceinline__ void read_window(int of_unit, int (&raw)[kPerLane]) const {
    const int windows = (m + kWindow - 1) / kWindow;
    int first = 0;
    int end = 0;
    if (of_unit < windows * kColumnTiles) {
      int window, column_tile;
      Order::at(windows, of_unit, window, column_tile);
      first = window * kWindow;
      end = m - first < kWindow ? m : first + kWindow;
    }
    read_names(first, end, raw);
  }

  // What was read of the next window, while that of a later one is asked for.
  __device__ __forceinline__ void take_window(int (&raw)[kPerLane]) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      raw[i] = ahead[0][i];
#pragma unroll
      for (int j = 0; j + 1 < kAhead; ++j) ahead[j][i] = ahead[j + 1][i];
    }
    read_window(unit + (kAhead - 1) * step(), ahead[kAhead - 1]);
  }

  __device__ __forceinline__ GroupTile next_run() {
    const int windows = (m + kWindow - 1) / kWindow;
    while (true) {
      int raw[kPerLane];
      if (row >= row_end) {
        if (unit >= windows * kColumnTiles) return {0, 0, 0, 0};
        int window;
        Order::at(windows, unit, window, column);
        unit += step();
        row = window * kWindow;
        row_end = m - row < kWindow ? m : row + kWindow;
        if constexpr (kAhead > 0) {
          take_window(raw);
        } else {
          read_names(row, row_end, raw);
        }
      } else {
        read_names(row, row_end, raw);
      }
      // The run of equal names that begins at `row`.
      int name[kPerLane];
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        const bool is_group = raw[i] >= 0 && raw[i] < Spec::kGroups;
        name[i] = row + 32 * i + lane >= row_end ? -2 : is_group ? raw[i] : -1;
      }
      const int first = __shfl_sync(0xffffffffu, name[0], 0);
      int length = 0;
      bool goes_on = true;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        const unsigned other = __ballot_sync(0xffffffffu, name[i] != first);
        if (goes_on) length += other == 0 ? 32 : __ffs(static_cast<int>(other)) - 1;
        goes_on = goes_on && other == 0;
      }
      if constexpr (Spec::kCountInvalid != 0) {
        unsigned found = 0;
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
          if (32 * i + lane < length && first == -1 && raw[i] != -1) ++found;
        }
        if (column == 0 && blockIdx.x % Order::kCluster == 0 && found != 0) {
          atomicAdd(invalid, found);
        }
      }
      const GroupTile tile = {first, row, row + length, column * Order::kColumns};
      row += length;
      if (first >= 0 || Spec::kZeroUngrouped != 0) return tile;
    }
  }
};
