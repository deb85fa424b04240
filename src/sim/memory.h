// SPDX-License-Identifier: Apache-2.0
// The memories of the simulated machine: global memory (host ranges of the launch), shared memory
// of a CTA, tensor memory of a CTA, and the map of generic addresses. Each knows which of its bytes
// were written. They answer questions; the callers raise the faults. Nothing here knows
// instructions.
#pragma once

#include "sim/race_shadow.h"
#include "sim/shadow.h"
#include "sim/simulator.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace jitgemm::sim {

enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kSharedCta,
  kSharedCluster,
  kLocal,
  kParam,
  kConst
};
std::string_view space_name(Space space);

// Generic addresses (PTX ISA 6.4.1.1). Global and constant memory are host addresses, below 2^48.
// The windows lie above them. A shared address is 32 bit: bits 24 and up hold the rank of the CTA
// in its cluster, the low bits the offset, so a shared::cta address is at the same time the
// shared::cluster address of that CTA, and clearing a bit of the rank addresses the peer, as on the
// hardware.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 56;
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
inline constexpr uint32_t kSharedRankShift = 24;
inline constexpr uint32_t kSharedOffsetMask = (1u << kSharedRankShift) - 1;
// The first kilobyte of shared memory belongs to the system on SM90 and later; address 0 is never
// valid.
inline constexpr uint32_t kSharedReserved = 1024;

// Bits for bytes: one bit says that the byte was written.
class WrittenMap {
 public:
  void resize(uint64_t bytes) { bits_.assign((bytes + 63) / 64 + 1, 0); }
  bool empty() const { return bits_.empty(); }
  void set(uint64_t offset, uint64_t bytes) {
    const uint64_t shift = offset & 63;
    if (bytes < 64 && shift + bytes <= 64) {
      bits_[offset >> 6] |= ((uint64_t{1} << bytes) - 1) << shift;
    } else {
      set_words(offset, bytes);
    }
  }
  void clear(uint64_t offset, uint64_t bytes);
  bool all(uint64_t offset, uint64_t bytes) const {
    const uint64_t shift = offset & 63;
    if (shift + bytes <= 64 && bytes < 64) {
      const uint64_t mask = ((uint64_t{1} << bytes) - 1) << shift;
      return (bits_[offset >> 6] & mask) == mask;
    }
    return first_missing(offset, bytes) == ~uint64_t{0};
  }
  bool any(uint64_t offset, uint64_t bytes) const;
  // Offset of the first byte never written, all ones if there is none.
  uint64_t first_missing(uint64_t offset, uint64_t bytes) const;

 private:
  void set_words(uint64_t offset, uint64_t bytes);
  std::vector<uint64_t> bits_;
};

enum class AccessResult : uint8_t { kOk, kOutOfBounds, kNotReadable, kNotWritable, kNotWritten };

// Global memory, shared by all clusters and host threads of a run. Data accesses are the caller's,
// with the alignment that makes them atomic on the host; the written map here is atomic.
class GlobalMemory {
 public:
  struct Range {
    uint64_t base = 0;
    uint64_t bytes = 0;
    bool readable = true;
    bool writable = true;
    std::string name;     // for reports
    WrittenBits written;  // null: all of it counts as written
    WrittenBits log;      // if any, gets what this launch writes
  };

  // `written` may hold what was written before; it counts only for memory that is not initialised.
  void add(const void* base, uint64_t bytes, bool readable, bool writable, bool initialised,
           std::string name, WrittenBits written = nullptr, WrittenBits log = nullptr);
  // What the grid before this one has written and may still be writing.
  void expect_predecessor(std::vector<WrittenRange> writes) { predecessor_ = std::move(writes); }
  bool has_predecessor() const { return !predecessor_.empty(); }
  bool predecessor_wrote(uint64_t address, uint64_t bytes) const;
  // Call once after the last add. Overlapping ranges are allowed; the narrowest permission wins
  // nowhere: the range that starts last before the address decides.
  void seal();

  // The range that holds [address, address + bytes), or null. `hint` is a cache of the caller.
  const Range* find(uint64_t address, uint64_t bytes, const Range*& hint) const {
    if (hint != nullptr && address - hint->base < hint->bytes &&
        bytes <= hint->bytes - (address - hint->base)) {
      return hint;
    }
    return search(address, bytes, hint);
  }

  // Permission, bounds and (for reads) written check of one access.
  AccessResult check_read(uint64_t address, uint64_t bytes, const Range*& hint) const;
  // Permission and bounds; marks the bytes written.
  AccessResult check_write(uint64_t address, uint64_t bytes, const Range*& hint) const;
  bool is_written(const Range& range, uint64_t address, uint64_t bytes) const;
  void mark_written(const Range& range, uint64_t address, uint64_t bytes) const;
  std::string describe(uint64_t address, uint64_t bytes) const;  // nearest range, for reports

 private:
  const Range* search(uint64_t address, uint64_t bytes, const Range*& hint) const;
  std::vector<Range> ranges_;
  std::vector<WrittenRange> predecessor_;
};

// Shared memory of one CTA. Offsets count from 0, the reserved kilobyte included.
struct SharedMemory {
  std::vector<std::byte> bytes;
  WrittenMap written;
  SharedShadow shadow;
  RaceShadow races;    // of sanitized runs
  WrittenMap copying;  // destinations of cp.async not completed, byte by byte; not written either
  uint32_t copies_in_flight = 0;

  void resize(uint64_t size) {
    bytes.assign(size, std::byte{0});
    copying.resize(size);
    written.resize(size);
    shadow.resize(size);
  }
  uint64_t size() const { return bytes.size(); }
  bool contains(uint64_t offset, uint64_t count) const {
    return offset >= kSharedReserved && offset <= size() && count <= size() - offset;
  }
  template <typename T>
  T load(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  template <typename T>
  void store(uint64_t offset, const T& value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
  }
};

// Tensor memory of one CTA: 128 lanes of 512 columns of 32 bit (PTX ISA 9.7.16.1). A cell is
// addressed by lane << 16 | column. Storage and its flags only: the rules of tcgen05 are in
// exec_tcgen05.
struct TensorMemory {
  static constexpr uint32_t kLanes = 128;
  static constexpr uint32_t kColumns = 512;
  static constexpr uint8_t kWritten = 1;  // flag bits of a cell
  static constexpr uint8_t kPendingWrite =
      2;  // an operation that writes it has not been waited for
  static constexpr uint8_t kPendingRead = 4;

  struct Allocation {
    uint32_t column = 0;
    uint32_t columns = 0;
  };

  std::vector<uint32_t> cells = std::vector<uint32_t>(kLanes * kColumns);
  std::vector<uint8_t> flags = std::vector<uint8_t>(kLanes * kColumns);
  std::vector<Allocation> allocations;  // sorted by column
  bool permit_relinquished = false;
  uint32_t last_allocated_columns = 0;  // 0: none yet

  static uint32_t index(uint32_t lane, uint32_t column) { return lane * kColumns + column; }
  // Lowest free column of a run of `columns` free ones aligned to its own size, or kColumns.
  uint32_t find_free(uint32_t columns) const;
  bool is_allocated(uint32_t column, uint32_t columns) const;
};

}  // namespace jitgemm::sim
