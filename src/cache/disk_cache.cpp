// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_cache.h"

#include "cache/cache_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace jitgemm {
namespace {

uint64_t memory_size(const CacheEntry& entry) {
  return entry.key.size() + entry.ptx.size() + entry.cubin.size();
}

MissReason reason_of(const Status& status) {
  return status.code() == StatusCode::kUnsupported ? MissReason::kVersion : MissReason::kCorrupt;
}

}  // namespace

struct DiskCache::AtomicCounters {
  using Counter = std::atomic<uint64_t>;
  Counter hits = 0, memory_hits = 0, published = 0, replaced = 0, already_present = 0;
  Counter publish_failures = 0, evicted = 0, lock_failures = 0;
  std::array<Counter, kMissReasonCount> misses = {};
};

DiskCache::DiskCache(DiskCacheOptions options, Logger log, FileOps ops)
    : options_(std::move(options)),
      log_(std::move(log)),
      ops_(std::move(ops)),
      counters_(std::make_unique<AtomicCounters>()) {}

DiskCache::~DiskCache() = default;

std::unique_ptr<DiskCache> DiskCache::open(DiskCacheOptions options, Logger log, FileOps ops) {
  std::unique_ptr<DiskCache> cache(
      new DiskCache(std::move(options), std::move(log), std::move(ops)));
  const std::string& root = cache->options_.root;
  if (root.empty()) {
    cache->problem_ = "there is no folder to keep them in";
    return cache;
  }
  auto folder = CacheFolder::open(root, cache->options_.read_only, &cache->ops_);
  if (!folder) {
    cache->problem_ = fmt::format("'{}' cannot be used: {}", root, folder.error().message());
    cache->log_.warning(fmt::format("cache: {}; kernels are kept in memory only", cache->problem_));
    return cache;
  }
  cache->folder_ = std::move(*folder);
  if (cache->options_.read_only) {
    cache->problem_ = fmt::format("'{}' was opened to be read only", root);
  } else if (!cache->folder_->writable()) {
    cache->problem_ = fmt::format("'{}' is not writable", root);
    cache->log_.warning(fmt::format("cache: {}; new kernels are not stored", cache->problem_));
  }
  return cache;
}

CacheMode DiskCache::mode() const {
  if (!folder_) return CacheMode::kMemoryOnly;
  return folder_->writable() ? CacheMode::kReadWrite : CacheMode::kReadOnly;
}

std::string DiskCache::entry_path(const CanonicalKey& key) const {
  if (!folder_) return {};
  return fmt::format("{}/v1/{}", options_.root, entry_name_of(key.digest).path());
}

// --- Lookup ------------------------------------------------------------------------------------

CacheLookup DiskCache::find(const CanonicalKey& key) {
  CacheLookup lookup;
  {
    const std::lock_guard guard(memory_mutex_);
    if (const auto found = memory_.find(key.bytes); found != memory_.end()) {
      lookup.entry = *found->second;
    }
  }
  if (lookup.entry) {
    ++counters_->memory_hits;
    ++counters_->hits;
    return lookup;
  }
  if (folder_) lookup = find_on_disk(key);
  if (lookup.entry) {
    ++counters_->hits;
  } else {
    count_miss(key, lookup);
  }
  return lookup;
}

CacheLookup DiskCache::find_on_disk(const CanonicalKey& key) {
  CacheLookup lookup;
  auto read = folder_->read(entry_name_of(key.digest), kMaxEntryBytes, kMaxEntryBytes,
                            options_.touch_age_s);
  if (!read.ok) {
    lookup.miss = read.problem.reason;
    lookup.detail = std::move(read.problem.detail);
    return lookup;
  }
  auto entry = parse_entry(read.bytes);
  if (!entry) {
    lookup.miss = reason_of(entry.error());
    lookup.detail = entry.error().message();
  } else if (entry->key != key.bytes) {
    lookup.miss = MissReason::kKeyMismatch;
    lookup.detail = "the file answers another key";
  } else {
    lookup.entry = std::move(*entry);
  }
  return lookup;
}

void DiskCache::count_miss(const CanonicalKey& key, const CacheLookup& lookup) {
  ++counters_->misses[static_cast<size_t>(lookup.miss)];
  const LogLevel level = lookup.miss == MissReason::kAbsent ? LogLevel::kDebug : LogLevel::kWarning;
  if (!log_.enabled(level)) return;
  const std::string_view separator = lookup.detail.empty() ? "" : ": ";
  log_.log(level, fmt::format("cache miss ({}) for {}{}{}", miss_reason_name(lookup.miss),
                              key.hex(), separator, lookup.detail));
}

// --- Publication -------------------------------------------------------------------------------

PublishOutcome DiskCache::publish(const CanonicalKey& key, const CacheEntry& entry) {
  const auto bytes = entry.key == key.bytes
                         ? write_entry(entry)
                         : Result<std::string>(invalid_argument("key: differs from the entry's"));
  if (!bytes) {
    ++counters_->publish_failures;
    log_.warning(fmt::format("cache: {} is not stored: {}", key.hex(), bytes.error().message()));
    return PublishOutcome::kRejected;
  }
  const bool to_disk = folder_ && folder_->writable();
  const PublishOutcome outcome =
      to_disk ? publish_to_disk(key, *bytes) : PublishOutcome::kMemoryOnly;
  if (outcome == PublishOutcome::kMemoryOnly || outcome == PublishOutcome::kFailed) {
    keep_in_memory(key, entry);
    return outcome;
  }
  if (publishes_until_eviction_.fetch_sub(1) <= 0) {
    publishes_until_eviction_ = options_.publishes_per_eviction;
    evict();
  }
  return outcome;
}

PublishOutcome DiskCache::publish_to_disk(const CanonicalKey& key, const std::string& bytes) {
  const auto existing_is_unusable = [&] {
    const CacheLookup existing = find_on_disk(key);
    return !existing.entry && existing.miss != MissReason::kIoError &&
           existing.miss != MissReason::kAbsent;
  };
  const auto published = folder_->publish(entry_name_of(key.digest), bytes, existing_is_unusable);
  if (!published) {
    ++counters_->publish_failures;
    log_.warning(
        fmt::format("cache: {} is not stored: {}", key.hex(), published.error().message()));
    return PublishOutcome::kFailed;
  }
  if (published->result == CacheFolder::Published::kExists) {
    ++counters_->already_present;
    return PublishOutcome::kAlreadyPresent;
  }
  ++counters_->published;
  if (!published->replaced) return PublishOutcome::kPublished;
  ++counters_->replaced;
  log_.info(fmt::format("cache: replaced the unusable entry {}", key.hex()));
  return PublishOutcome::kReplaced;
}

void DiskCache::keep_in_memory(const CanonicalKey& key, const CacheEntry& entry) {
  const uint64_t size = memory_size(entry);
  if (size > options_.memory_cap_bytes) return;
  auto kept = std::make_shared<const CacheEntry>(entry);
  const std::lock_guard guard(memory_mutex_);
  if (!memory_.emplace(key.bytes, std::move(kept)).second) return;
  memory_order_.push_back(key.bytes);
  memory_bytes_ += size;
  while (memory_bytes_ > options_.memory_cap_bytes) {
    const auto oldest = memory_.find(memory_order_.front());
    memory_bytes_ -= memory_size(*oldest->second);
    memory_.erase(oldest);
    memory_order_.pop_front();
  }
}

KeyLock DiskCache::lock(const CanonicalKey& key, std::chrono::steady_clock::time_point deadline) {
  if (mode() != CacheMode::kReadWrite) {
    return KeyLock::failed("the cache folder is not written to");
  }
  KeyLock lock = KeyLock::acquire(&ops_, folder_->descriptor(), lock_offset(key.digest), deadline);
  if (!lock.held()) {
    ++counters_->lock_failures;
    log_.info(fmt::format("cache: {} is compiled without its lock: {}", key.hex(), lock.problem()));
  }
  return lock;
}

// --- Housekeeping ------------------------------------------------------------------------------

CacheCounters DiskCache::counters() const {
  CacheCounters values;
  values.hits = counters_->hits;
  values.memory_hits = counters_->memory_hits;
  for (size_t i = 0; i < kMissReasonCount; ++i) values.misses[i] = counters_->misses[i];
  values.published = counters_->published;
  values.replaced = counters_->replaced;
  values.already_present = counters_->already_present;
  values.publish_failures = counters_->publish_failures;
  values.evicted = counters_->evicted;
  values.lock_failures = counters_->lock_failures;
  return values;
}

Result<CacheStat> DiskCache::stat() const {
  CacheStat stat;
  stat.mode = mode();
  stat.root = options_.root;
  stat.counters = counters();
  if (!folder_) {
    const std::lock_guard guard(memory_mutex_);
    stat.entries = memory_.size();
    stat.bytes = memory_bytes_;
    return stat;
  }
  JITGEMM_ASSIGN(const auto files, folder_->files());
  JITGEMM_ASSIGN(const auto temps, folder_->temp_names());
  stat.entries = files.size();
  for (const auto& file : files) stat.bytes += file.bytes;
  stat.temp_files = temps.size();
  return stat;
}

Result<std::vector<CacheListing>> DiskCache::list() const {
  std::vector<CacheListing> listings;
  if (!folder_) return listings;
  JITGEMM_ASSIGN(const auto files, folder_->files());
  for (const auto& file : files) {
    CacheListing listing;
    listing.hex = file.name.hex();
    listing.bytes = file.bytes;
    listing.modified_unix_s = file.modified_s;
    const auto read = folder_->read(file.name, kMaxEntryHeadBytes, kMaxEntryBytes, -1);
    if (!read.ok) {
      if (read.problem.reason == MissReason::kAbsent) continue;  // evicted since it was listed
      listing.problem = read.problem.detail;
    } else if (auto head = parse_entry_head(read.bytes, read.file_bytes); !head) {
      listing.problem = head.error().message();
    } else if (to_hex(head->key_digest) != listing.hex) {
      listing.problem = "the file answers another key";
    } else {
      listing.head = std::move(*head);
    }
    listings.push_back(std::move(listing));
  }
  std::sort(listings.begin(), listings.end(),
            [](const CacheListing& a, const CacheListing& b) { return a.hex < b.hex; });
  return listings;
}

std::vector<std::string> DiskCache::key_values(std::string_view tag) const {
  std::vector<std::string> values;
  auto listings = list();
  if (!listings) return values;
  std::stable_sort(listings->begin(), listings->end(),
                   [](const CacheListing& a, const CacheListing& b) {
                     return a.modified_unix_s > b.modified_unix_s;
                   });
  for (const CacheListing& listing : *listings) {
    if (!listing.head) continue;
    const auto fields = read_key_fields(listing.head->key);
    if (!fields) continue;
    for (const KeyField& field : *fields) {
      if (field.tag == tag &&
          std::find(values.begin(), values.end(), field.value) == values.end()) {
        values.push_back(field.value);
      }
    }
  }
  return values;
}

Result<RemovedFiles> DiskCache::clear() {
  RemovedFiles removed;
  {
    const std::lock_guard guard(memory_mutex_);
    if (!folder_) {
      removed.entries = memory_.size();
      removed.bytes = memory_bytes_;
    }
    memory_.clear();
    memory_order_.clear();
    memory_bytes_ = 0;
  }
  if (!folder_) return removed;
  if (!folder_->writable()) {
    return invalid_argument(fmt::format("cache '{}': opened for reading only", options_.root));
  }
  JITGEMM_ASSIGN(const auto files, folder_->files());
  for (const auto& file : files) {
    if (!folder_->remove(file)) continue;
    ++removed.entries;
    removed.bytes += file.bytes;
  }
  removed.temp_files = folder_->remove_old_temps(options_.temp_age_s);
  return removed;
}

RemovedFiles DiskCache::evict() {
  RemovedFiles removed;
  if (mode() != CacheMode::kReadWrite) return removed;
  // Unlike a publication, eviction is pointless twice: without the lock, somebody else is at it.
  const KeyLock lock = KeyLock::acquire(&ops_, folder_->descriptor(), kEvictionLockOffset,
                                        std::chrono::steady_clock::time_point::min());
  if (!lock.held() && lock.waited()) return removed;

  removed.temp_files = folder_->remove_old_temps(options_.temp_age_s);
  auto files = folder_->files();
  if (!files || options_.cap_bytes == 0) return removed;
  uint64_t total = 0;
  for (const auto& file : *files) total += file.bytes;
  if (total <= options_.cap_bytes) return removed;

  std::sort(files->begin(), files->end(), [](const auto& a, const auto& b) {
    return std::pair(a.modified_s, a.modified_ns) < std::pair(b.modified_s, b.modified_ns);
  });
  // A little below the cap, so that the next publication does not evict again.
  const uint64_t goal = options_.cap_bytes - options_.cap_bytes / 10;
  const int64_t now = ops_.unix_seconds();
  for (const auto& file : *files) {
    // Times in the future come from a clock that is off; they count as young.
    if (total <= goal || now - file.modified_s < options_.young_s) break;
    if (!folder_->remove(file)) continue;
    total -= file.bytes;
    ++removed.entries;
    removed.bytes += file.bytes;
  }
  counters_->evicted += removed.entries;
  if (removed.entries > 0) {
    log_.info(fmt::format("cache: evicted {} entries, {} bytes", removed.entries, removed.bytes));
  }
  return removed;
}

}  // namespace jitgemm
