// SPDX-License-Identifier: Apache-2.0
// The folder of the cache as a safe place for named, immutable byte strings: what may be opened,
// how a file appears under its name in one step, and how old ones go away. Everything is relative
// to held descriptors and nothing below the root follows a link. It must not know what the bytes
// mean.
#pragma once

#include "cache/file_ops.h"
#include "cache/miss_reason.h"
#include "support/result.h"
#include "support/sha256.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {

// Where the entry of a digest lies below v1: "ab" and "cdef....jgk".
struct EntryName {
  std::string shard;
  std::string file;

  std::string path() const { return shard + "/" + file; }
  std::string hex() const { return shard + file.substr(0, 62); }
};
EntryName entry_name_of(const Sha256Digest& digest);
// Whether a name found in the folder can be an entry's.
bool is_shard_name(std::string_view name);
bool is_entry_file_name(std::string_view name);

class CacheFolder {
 public:
  struct Problem {
    MissReason reason = MissReason::kAbsent;
    std::string detail;
    int error = 0;  // -errno behind kIoError
  };
  struct Read {
    bool ok = false;
    std::string bytes;
    uint64_t file_bytes = 0;
    Problem problem;  // without ok
  };
  struct File {
    EntryName name;
    uint64_t bytes = 0;
    uint64_t inode = 0;
    int64_t modified_s = 0;
    int64_t modified_ns = 0;
  };
  enum class Published { kNew, kExists };

  // Creates <root>/v1 and <root>/v1/tmp (0700) unless read_only. When the system lets us read but
  // not write there, the folder opens read-only by itself. `ops` outlives the folder.
  static Result<std::unique_ptr<CacheFolder>> open(const std::string& root, bool read_only,
                                                   const FileOps* ops);

  bool writable() const { return tmp_.valid(); }
  int descriptor() const { return version_.get(); }

  // At most `limit` bytes from the front; a file above max_file_bytes is kUnsafe. A hit older than
  // touch_age_s gets a new time (negative: never).
  Read read(const EntryName& name, uint64_t limit, uint64_t max_file_bytes,
            int64_t touch_age_s) const;

  // Writes a private file, flushes it to the disk and gives it its name, unless the name exists:
  // then `replace_existing` is asked whether what is there is unusable.
  struct Publication {
    Published result = Published::kNew;
    bool replaced = false;
  };
  Result<Publication> publish(const EntryName& name, std::string_view bytes,
                              const std::function<bool()>& replace_existing) const;

  // Regular files with an entry's name, in no order.
  Result<std::vector<File>> files() const;
  // False when the file is gone or is no longer the one that was listed.
  bool remove(const File& file) const;
  Result<std::vector<std::string>> temp_names() const;
  // The number of files removed: all that are older than `age_s`.
  uint64_t remove_old_temps(int64_t age_s) const;

 private:
  explicit CacheFolder(const FileOps* ops) : ops_(ops) {}

  Result<UniqueFd> open_folder(int parent, const char* name, bool follow_link) const;
  Read read_once(const EntryName& name, uint64_t limit, uint64_t max_file_bytes,
                 int64_t touch_age_s) const;
  Result<std::string> write_temp(std::string_view bytes) const;
  // 0, -EEXIST or another -errno.
  int give_name(const char* temp, int shard, const char* file) const;

  const FileOps* ops_;
  UniqueFd version_;  // <root>/v1
  UniqueFd tmp_;      // <root>/v1/tmp; not valid: read-only
};

}  // namespace jitgemm
