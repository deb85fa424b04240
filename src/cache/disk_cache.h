// SPDX-License-Identifier: Apache-2.0
// Compiled kernels under their keys, shared by processes through a folder. Stands between compile
// and load: find() before compiling, publish() after. Nothing that happens here is an error of the
// caller: whatever goes wrong is a miss or a lost publication, one log line and one counter.
// Correct without any lock; the lock only saves work. It must not know where its root comes from,
// nor kernels.
//
//   <root>/v1/<2 hex>/<62 hex>.jgk   an entry (cache_entry.h), named by the SHA-256 of its key
//   <root>/v1/tmp/                   files being written
//   <root>/v1/lock                   never deleted, always empty; bytes of it are locked
#pragma once

#include "cache/cache_entry.h"
#include "cache/file_ops.h"
#include "cache/key_lock.h"
#include "cache/miss_reason.h"
#include "support/digest.h"
#include "support/log.h"
#include "support/result.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

class CacheFolder;

struct DiskCacheOptions {
  std::string root = {};                   // absolute; empty: memory only
  bool read_only = false;                  // never create, write or touch anything under the root
  uint64_t cap_bytes = uint64_t{2} << 30;  // 0: no cap
  uint64_t memory_cap_bytes = uint64_t{256} << 20;
  int64_t young_s = 600;        // entries younger than this are never evicted
  int64_t temp_age_s = 3600;    // temporary files older than this are removed
  int64_t touch_age_s = 86400;  // a hit renews the time of an entry at most this often
  int64_t publishes_per_eviction = 64;
};

enum class CacheMode : uint8_t { kMemoryOnly, kReadOnly, kReadWrite };

struct CacheLookup {
  std::optional<CacheEntry> entry;
  MissReason miss = MissReason::kAbsent;  // meaningful without an entry
  std::string detail;                     // what was found wrong, for a person; empty when absent
};

enum class PublishOutcome : uint8_t {
  kPublished,       // the file is new
  kAlreadyPresent,  // an intact entry of this key was there; ours is dropped
  kReplaced,        // an unusable entry was there; ours took its place
  kMemoryOnly,      // there is no folder to write to; kept for this process
  kFailed,          // the system refused; kept for this process
  kRejected,        // the entry breaks its format (an empty or non-ELF cubin, ...); nothing is kept
};

struct CacheCounters {
  uint64_t hits = 0;
  uint64_t memory_hits = 0;                            // of hits, those answered without the folder
  std::array<uint64_t, kMissReasonCount> misses = {};  // by MissReason
  uint64_t published = 0;                              // files made, replaced ones included
  uint64_t replaced = 0;
  uint64_t already_present = 0;
  uint64_t publish_failures = 0;
  uint64_t evicted = 0;
  uint64_t lock_failures = 0;  // deadlines passed and locks refused
  uint64_t all_misses() const {
    uint64_t sum = 0;
    for (const uint64_t count : misses) sum += count;
    return sum;
  }
};

struct CacheStat {
  CacheMode mode = CacheMode::kMemoryOnly;
  std::string root;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t temp_files = 0;
  CacheCounters counters;  // of this object, since it was opened
};

struct CacheListing {
  std::string hex;  // 64 digits
  uint64_t bytes = 0;
  int64_t modified_unix_s = 0;
  std::optional<EntryHead> head;  // payloads are not verified by a listing
  std::string problem;            // set when there is no head
};

struct RemovedFiles {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t temp_files = 0;
};

// Every member may be called by several threads at once.
class DiskCache {
 public:
  // Never fails: a root that cannot be used safely gives memory-only mode and a warning.
  static std::unique_ptr<DiskCache> open(DiskCacheOptions options, Logger log,
                                         FileOps ops = real_file_ops());
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  CacheMode mode() const;
  // Why nothing is written to disk; empty where mode() is kReadWrite.
  const std::string& problem() const { return problem_; }
  const std::string& root() const { return options_.root; }
  // Absolute path of the file of a key, whether it exists or not; empty in memory-only mode.
  std::string entry_path(const CanonicalKey& key) const;

  // The entry is verified: key, lengths and digests. Each call opens the file anew.
  CacheLookup find(const CanonicalKey& key);

  // entry.key must be key.bytes. The caller goes on with its own bytes; it need not read back.
  PublishOutcome publish(const CanonicalKey& key, const CacheEntry& entry);

  // Keeps other processes from compiling the same key, as far as that works: waits until `deadline`
  // for the holder, then gives up. Not held means: go on all the same. After a wait, find() again.
  KeyLock lock(const CanonicalKey& key, std::chrono::steady_clock::time_point deadline);

  CacheCounters counters() const;
  Result<CacheStat> stat() const;
  // Sorted by hex. Unreadable entries are listed with their problem.
  Result<std::vector<CacheListing>> list() const;
  // The different values of one text field of the keys of readable entries, that of the newest
  // entry first.
  std::vector<std::string> key_values(std::string_view tag) const;
  // Removes every entry, and temporary files that no live process can be writing.
  Result<RemovedFiles> clear();
  // Removes old temporary files, then the least recently used entries while above the cap.
  // publish() does so from time to time. Nothing is removed while another process is evicting.
  RemovedFiles evict();

 private:
  DiskCache(DiskCacheOptions options, Logger log, FileOps ops);

  CacheLookup find_on_disk(const CanonicalKey& key);
  PublishOutcome publish_to_disk(const CanonicalKey& key, const std::string& bytes);
  void keep_in_memory(const CanonicalKey& key, const CacheEntry& entry);
  void count_miss(const CanonicalKey& key, const CacheLookup& lookup);

  DiskCacheOptions options_;
  Logger log_;
  FileOps ops_;
  std::unique_ptr<CacheFolder> folder_;  // null in memory-only mode
  std::string problem_;

  struct AtomicCounters;
  std::unique_ptr<AtomicCounters> counters_;
  std::atomic<int64_t> publishes_until_eviction_{0};

  mutable std::mutex memory_mutex_;
  std::map<std::string, std::shared_ptr<const CacheEntry>> memory_;  // by key bytes
  std::deque<std::string> memory_order_;                             // oldest first
  uint64_t memory_bytes_ = 0;
};

}  // namespace jitgemm
