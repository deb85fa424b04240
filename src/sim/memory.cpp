// SPDX-License-Identifier: Apache-2.0
#include "sim/memory.h"

#include "fmt/format.h"

#include <algorithm>
#include <bit>

namespace jitgemm::sim {
namespace {

// The bits [first, first + count) of the word that starts at bit `word_start`.
uint64_t word_mask(uint64_t word_start, uint64_t first, uint64_t last) {
  const uint64_t lo = std::max(first, word_start) - word_start;
  const uint64_t hi = std::min(last, word_start + 64) - word_start;
  const uint64_t upper = hi == 64 ? ~uint64_t{0} : (uint64_t{1} << hi) - 1;
  return upper & ~((uint64_t{1} << lo) - 1);
}

void set_bits(const WrittenBits& bits, uint64_t first, uint64_t end) {
  for (uint64_t w = first & ~uint64_t{63}; w < end; w += 64) {
    const uint64_t mask = word_mask(w, first, end);
    std::atomic<uint64_t>& word = bits[w >> 6];
    if ((word.load(std::memory_order_relaxed) & mask) != mask)
      word.fetch_or(mask, std::memory_order_release);
  }
}

bool any_bit(const WrittenBits& bits, uint64_t first, uint64_t end) {
  for (uint64_t w = first & ~uint64_t{63}; w < end; w += 64) {
    if ((bits[w >> 6].load(std::memory_order_relaxed) & word_mask(w, first, end)) != 0) return true;
  }
  return false;
}

}  // namespace

std::string_view space_name(Space space) {
  switch (space) {
    case Space::kGeneric: return "generic";
    case Space::kGlobal: return "global";
    case Space::kSharedCta: return "shared::cta";
    case Space::kSharedCluster: return "shared::cluster";
    case Space::kLocal: return "local";
    case Space::kParam: return "param";
    case Space::kConst: return "const";
  }
  return "";
}

void WrittenMap::set_words(uint64_t offset, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  for (uint64_t w = offset & ~uint64_t{63}; w < end; w += 64)
    bits_[w >> 6] |= word_mask(w, offset, end);
}

void WrittenMap::clear(uint64_t offset, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  for (uint64_t w = offset & ~uint64_t{63}; w < end; w += 64)
    bits_[w >> 6] &= ~word_mask(w, offset, end);
}

bool WrittenMap::any(uint64_t offset, uint64_t bytes) const {
  const uint64_t end = offset + bytes;
  for (uint64_t w = offset & ~uint64_t{63}; w < end; w += 64) {
    if ((bits_[w >> 6] & word_mask(w, offset, end)) != 0) return true;
  }
  return false;
}

uint64_t WrittenMap::first_missing(uint64_t offset, uint64_t bytes) const {
  const uint64_t end = offset + bytes;
  for (uint64_t w = offset & ~uint64_t{63}; w < end; w += 64) {
    const uint64_t missing = ~bits_[w >> 6] & word_mask(w, offset, end);
    if (missing != 0) return w + static_cast<uint64_t>(std::countr_zero(missing));
  }
  return ~uint64_t{0};
}

WrittenBits make_written_bits(uint64_t bytes) {
  // Value-initialised: nothing was written.
  return WrittenBits(new std::atomic<uint64_t>[(bytes + 63) / 64]());
}

void GlobalMemory::add(const void* base, uint64_t bytes, bool readable, bool writable,
                       bool initialised, std::string name, WrittenBits written, WrittenBits log) {
  if (bytes == 0) return;
  Range range;
  range.base = reinterpret_cast<uint64_t>(base);
  range.bytes = bytes;
  range.readable = readable;
  range.writable = writable;
  range.name = std::move(name);
  if (!initialised) {
    // One bit a byte, counted from the range's base.
    range.written = written != nullptr ? std::move(written) : make_written_bits(bytes);
  }
  range.log = std::move(log);
  ranges_.push_back(std::move(range));
}

bool GlobalMemory::predecessor_wrote(uint64_t address, uint64_t bytes) const {
  for (const WrittenRange& range : predecessor_) {
    const auto base = reinterpret_cast<uint64_t>(range.base);
    const uint64_t first = std::max(address, base);
    const uint64_t end = std::min(address + bytes, base + range.bytes);
    if (first < end && any_bit(range.written, first - base, end - base)) return true;
  }
  return false;
}

void GlobalMemory::seal() {
  std::stable_sort(ranges_.begin(), ranges_.end(),
                   [](const Range& a, const Range& b) { return a.base < b.base; });
}

const GlobalMemory::Range* GlobalMemory::search(uint64_t address, uint64_t bytes,
                                                const Range*& hint) const {
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t a, const Range& r) { return a < r.base; });
  while (after != ranges_.begin()) {
    --after;
    const uint64_t offset = address - after->base;
    if (offset < after->bytes && bytes <= after->bytes - offset) {
      hint = &*after;
      return hint;
    }
  }
  return nullptr;
}

bool GlobalMemory::is_written(const Range& range, uint64_t address, uint64_t bytes) const {
  if (!range.written) return true;
  const uint64_t first = address - range.base;
  const uint64_t end = first + bytes;
  for (uint64_t w = first & ~uint64_t{63}; w < end; w += 64) {
    const uint64_t mask = word_mask(w, first, end);
    if ((range.written[w >> 6].load(std::memory_order_relaxed) & mask) != mask) return false;
  }
  return true;
}

void GlobalMemory::mark_written(const Range& range, uint64_t address, uint64_t bytes) const {
  const uint64_t first = address - range.base;
  if (range.written) set_bits(range.written, first, first + bytes);
  if (range.log) set_bits(range.log, first, first + bytes);
}

AccessResult GlobalMemory::check_read(uint64_t address, uint64_t bytes, const Range*& hint) const {
  const Range* range = find(address, bytes, hint);
  if (range == nullptr) return AccessResult::kOutOfBounds;
  if (!range->readable) return AccessResult::kNotReadable;
  return is_written(*range, address, bytes) ? AccessResult::kOk : AccessResult::kNotWritten;
}

AccessResult GlobalMemory::check_write(uint64_t address, uint64_t bytes, const Range*& hint) const {
  const Range* range = find(address, bytes, hint);
  if (range == nullptr) return AccessResult::kOutOfBounds;
  if (!range->writable) return AccessResult::kNotWritable;
  mark_written(*range, address, bytes);
  return AccessResult::kOk;
}

std::string GlobalMemory::describe(uint64_t address, uint64_t bytes) const {
  const Range* nearest = nullptr;
  uint64_t distance = ~uint64_t{0};
  for (const Range& r : ranges_) {
    const uint64_t d = address < r.base             ? r.base - address
                       : address - r.base < r.bytes ? 0
                                                    : address - r.base - r.bytes;
    if (d < distance) {
      distance = d;
      nearest = &r;
    }
  }
  std::string text = fmt::format("{} byte(s) at global address {:#x}", bytes, address);
  if (nearest == nullptr) return text + "; the launch declares no memory";
  // A distance that no index explains would only mislead.
  if (distance > uint64_t{1} << 40) return text + ", far from all memory of the launch";
  if (address < nearest->base) {
    return text + fmt::format(", {} byte(s) before {} ({} bytes)", nearest->base - address,
                              nearest->name, nearest->bytes);
  }
  if (address - nearest->base < nearest->bytes) {
    return text + fmt::format(", offset {} of {} ({} bytes)", address - nearest->base,
                              nearest->name, nearest->bytes);
  }
  return text + fmt::format(", {} byte(s) past the end of {} ({} bytes)", distance, nearest->name,
                            nearest->bytes);
}

uint32_t TensorMemory::find_free(uint32_t columns) const {
  for (uint32_t column = 0; column + columns <= kColumns; column += columns) {
    const bool taken =
        std::any_of(allocations.begin(), allocations.end(), [&](const Allocation& a) {
          return a.column < column + columns && column < a.column + a.columns;
        });
    if (!taken) return column;
  }
  return kColumns;
}

bool TensorMemory::is_allocated(uint32_t column, uint32_t columns) const {
  // Allocations may touch, and an access may span two of them.
  uint32_t next = column;
  for (const Allocation& a : allocations) {
    if (a.column <= next && next < a.column + a.columns) next = a.column + a.columns;
  }
  return next >= column + columns;
}

}  // namespace jitgemm::sim
