// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace jitgemm {
namespace {

constexpr mode_t kPrivateFolder = S_IRWXU;
constexpr mode_t kPrivateFile = S_IRUSR | S_IWUSR;
constexpr std::string_view kSuffix = ".jgk";

Status system_error(std::string_view what, int negative_errno) {
  return io_error(fmt::format("{}: {}", what, std::strerror(-negative_errno)));
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The system forbids writing, which is an ordinary way to share a cache.
bool forbids_writing(int error) {
  return error == -EROFS || error == -EACCES || error == -EPERM;
}

CacheFolder::Read failed(MissReason reason, std::string detail) {
  CacheFolder::Read read;
  read.problem.reason = reason;
  read.problem.detail = std::move(detail);
  return read;
}

// Part of temporary names, so that machines sharing a volume do not meet.
std::string host_name() {
  std::array<char, 65> buffer = {};
  if (::gethostname(buffer.data(), buffer.size() - 1) != 0) return "host";
  std::string name(buffer.data());
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
      },
      '_');
  return name.empty() ? "host" : name;
}

// Makes the root and its parents; what is missing is made private.
int make_root(const FileOps& ops, const std::string& root) {
  for (size_t at = root.find('/', 1);; at = root.find('/', at + 1)) {
    const std::string path = root.substr(0, at);
    const int made = ops.make_folder_at(AT_FDCWD, path.c_str(), kPrivateFolder);
    if (made < 0 && made != -EEXIST && at == std::string::npos) return made;
    if (at == std::string::npos) return 0;
  }
}

}  // namespace

EntryName entry_name_of(const Sha256Digest& digest) {
  const std::string hex = to_hex(digest);
  return {hex.substr(0, 2), hex.substr(2) + std::string(kSuffix)};
}

bool is_shard_name(std::string_view name) {
  return name.size() == 2 && is_hex(name);
}

bool is_entry_file_name(std::string_view name) {
  return name.size() == 62 + kSuffix.size() && name.ends_with(kSuffix) &&
         is_hex(name.substr(0, 62));
}

Result<UniqueFd> CacheFolder::open_folder(int parent, const char* name, bool follow_link) const {
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow_link ? 0 : O_NOFOLLOW);
  UniqueFd folder(ops_, ops_->open_at(parent, name, flags, 0));
  if (!folder.valid()) return system_error(fmt::format("cannot open '{}'", name), folder.get());
  struct stat info = {};
  if (const int error = ops_->stat(folder.get(), &info); error < 0) {
    return system_error(fmt::format("cannot examine '{}'", name), error);
  }
  if (info.st_uid != ops_->effective_uid() && info.st_uid != 0) {
    return invalid_argument(fmt::format("'{}' belongs to user {}", name, info.st_uid));
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return invalid_argument(fmt::format("'{}' is writable by every user", name));
  }
  return folder;
}

Result<std::unique_ptr<CacheFolder>> CacheFolder::open(const std::string& root, bool read_only,
                                                       const FileOps* ops) {
  if (root.empty() || root.front() != '/') {
    return invalid_argument(fmt::format("root: expected an absolute path, found '{}'", root));
  }
  std::unique_ptr<CacheFolder> folder(new CacheFolder(ops));
  if (!read_only) {
    if (const int error = make_root(*ops, root); error < 0 && !forbids_writing(error)) {
      return system_error(fmt::format("cannot create '{}'", root), error);
    }
  }
  JITGEMM_ASSIGN(const UniqueFd root_folder, folder->open_folder(AT_FDCWD, root.c_str(), true));
  if (!read_only) {
    const int error = ops->make_folder_at(root_folder.get(), "v1", kPrivateFolder);
    if (error < 0 && error != -EEXIST && !forbids_writing(error)) {
      return system_error(fmt::format("cannot create '{}/v1'", root), error);
    }
  }
  JITGEMM_ASSIGN(folder->version_, folder->open_folder(root_folder.get(), "v1", false));
  if (read_only) return folder;

  const int error = ops->make_folder_at(folder->version_.get(), "tmp", kPrivateFolder);
  if (error < 0 && error != -EEXIST) {
    if (forbids_writing(error)) return folder;
    return system_error(fmt::format("cannot create '{}/v1/tmp'", root), error);
  }
  JITGEMM_ASSIGN(UniqueFd tmp, folder->open_folder(folder->version_.get(), "tmp", false));
  folder->tmp_ = std::move(tmp);
  return folder;
}

CacheFolder::Read CacheFolder::read(const EntryName& name, uint64_t limit, uint64_t max_file_bytes,
                                    int64_t touch_age_s) const {
  Read result = read_once(name, limit, max_file_bytes, touch_age_s);
  // On a network file system another client may have replaced the file under our handle: once more.
  if (!result.ok && result.problem.error == -ESTALE) {
    result = read_once(name, limit, max_file_bytes, touch_age_s);
  }
  return result;
}

CacheFolder::Read CacheFolder::read_once(const EntryName& name, uint64_t limit,
                                         uint64_t max_file_bytes, int64_t touch_age_s) const {
  const auto io = [](std::string_view what, int64_t error) {
    const int code = static_cast<int>(error);
    Read read = failed(MissReason::kIoError, fmt::format("{}: {}", what, std::strerror(-code)));
    read.problem.error = code;
    return read;
  };
  const UniqueFd shard(ops_, ops_->open_at(version_.get(), name.shard.c_str(),
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
  if (shard.get() == -ENOENT) return failed(MissReason::kAbsent, "");
  if (shard.get() == -ENOTDIR || shard.get() == -ELOOP) {
    return failed(MissReason::kUnsafe, "its folder is a link or no folder");
  }
  if (!shard.valid()) return io("cannot open its folder", shard.get());
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const UniqueFd file(ops_, ops_->open_at(shard.get(), name.file.c_str(),
                                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (file.get() == -ENOENT) return failed(MissReason::kAbsent, "");
  if (file.get() == -ELOOP) return failed(MissReason::kUnsafe, "a symbolic link");
  if (file.get() == -ENXIO) return failed(MissReason::kUnsafe, "no regular file");
  if (!file.valid()) return io("cannot open", file.get());

  struct stat info = {};
  if (const int error = ops_->stat(file.get(), &info); error < 0)
    return io("cannot examine", error);
  if (!S_ISREG(info.st_mode)) return failed(MissReason::kUnsafe, "no regular file");
  if (info.st_uid != ops_->effective_uid() && info.st_uid != 0) {
    return failed(MissReason::kUnsafe, fmt::format("belongs to user {}", info.st_uid));
  }
  if ((info.st_mode & S_IWOTH) != 0) return failed(MissReason::kUnsafe, "writable by every user");
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > max_file_bytes) {
    return failed(MissReason::kUnsafe, fmt::format("{} bytes, above {}", size, max_file_bytes));
  }

  Read result;
  result.file_bytes = size;
  result.bytes.resize(std::min(size, limit));
  for (size_t at = 0; at < result.bytes.size();) {
    const int64_t got = ops_->read(file.get(), result.bytes.data() + at, result.bytes.size() - at);
    if (got < 0) return io("cannot read", got);
    if (got == 0) return failed(MissReason::kCorrupt, "the file shrank while it was read");
    at += static_cast<size_t>(got);
  }
  result.ok = true;
  if (writable() && touch_age_s >= 0 && ops_->unix_seconds() - info.st_mtim.tv_sec > touch_age_s) {
    ops_->touch(file.get());  // if it fails, the entry merely looks older to the eviction
  }
  return result;
}

Result<std::string> CacheFolder::write_temp(std::string_view bytes) const {
  uint64_t random = 0;
  std::array<char, sizeof(random)> random_bytes = {};
  if (const int error = ops_->random_bytes(random_bytes.data(), random_bytes.size()); error < 0) {
    return system_error("no random bytes", error);
  }
  std::memcpy(&random, random_bytes.data(), sizeof(random));
  std::string name = fmt::format("{}-{}-{:016x}", host_name(), ::getpid(), random);
  UniqueFd file(ops_,
                ops_->open_at(tmp_.get(), name.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivateFile));
  if (!file.valid()) return system_error("cannot create a temporary file", file.get());

  const auto write_all = [&]() -> Status {
    for (size_t at = 0; at < bytes.size();) {
      const int64_t put = ops_->write(file.get(), bytes.data() + at, bytes.size() - at);
      if (put < 0) return system_error("cannot write", static_cast<int>(put));
      if (put == 0) return io_error("cannot write: the system took no bytes");
      at += static_cast<size_t>(put);
    }
    struct stat info = {};
    if (const int error = ops_->stat(file.get(), &info); error < 0) {
      return system_error("cannot examine what was written", error);
    }
    if (static_cast<uint64_t>(info.st_size) != bytes.size()) {
      return io_error(fmt::format("wrote {} bytes, found {}", bytes.size(), info.st_size));
    }
    // Some file systems cannot flush one file; any other failure may mean that the bytes are lost.
    const int synced = ops_->sync(file.get());
    if (synced < 0 && synced != -EINVAL && synced != -ENOSYS && synced != -EOPNOTSUPP) {
      return system_error("cannot flush", synced);
    }
    // Network file systems report a full disk here.
    if (const int error = file.close(); error < 0) return system_error("cannot close", error);
    return ok_status();
  };
  const Status written = write_all();
  if (!written.ok()) {
    ops_->unlink_at(tmp_.get(), name.c_str());
    return written;
  }
  return name;
}

int CacheFolder::give_name(const char* temp, int shard, const char* file) const {
  const int renamed = ops_->rename_no_replace_at(tmp_.get(), temp, shard, file);
  if (renamed >= 0 || (renamed != -ENOSYS && renamed != -EINVAL && renamed != -EOPNOTSUPP)) {
    return renamed;
  }
  const int linked = ops_->link_at(tmp_.get(), temp, shard, file);
  if (linked == -EEXIST) return linked;
  struct stat info = {};
  // Over a network the reply may be lost although the link was made: the link count knows.
  if (linked >= 0 || (ops_->stat_at(tmp_.get(), temp, &info) >= 0 && info.st_nlink == 2)) {
    ops_->unlink_at(tmp_.get(), temp);
    return 0;
  }
  if (linked != -EPERM && linked != -ENOSYS && linked != -EOPNOTSUPP) return linked;
  // No hard links here. A plain rename is atomic too; at worst it replaces an equal entry.
  if (ops_->stat_at(shard, file, &info) >= 0) return -EEXIST;
  return ops_->rename_at(tmp_.get(), temp, shard, file);
}

Result<CacheFolder::Publication> CacheFolder::publish(
    const EntryName& name, std::string_view bytes,
    const std::function<bool()>& replace_existing) const {
  const int made = ops_->make_folder_at(version_.get(), name.shard.c_str(), kPrivateFolder);
  if (made < 0 && made != -EEXIST) return system_error("cannot create its folder", made);
  const UniqueFd shard(ops_, ops_->open_at(version_.get(), name.shard.c_str(),
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!shard.valid()) return system_error("cannot open its folder", shard.get());
  JITGEMM_ASSIGN(const std::string temp, write_temp(bytes));

  Publication publication;
  int error = give_name(temp.c_str(), shard.get(), name.file.c_str());
  if (error == -EEXIST) {
    if (replace_existing()) {
      publication.replaced = true;
      error = ops_->rename_at(tmp_.get(), temp.c_str(), shard.get(), name.file.c_str());
    } else {
      publication.result = Published::kExists;
      ops_->unlink_at(tmp_.get(), temp.c_str());
      return publication;
    }
  }
  if (error < 0) {
    ops_->unlink_at(tmp_.get(), temp.c_str());
    return system_error("cannot give the file its name", error);
  }
  return publication;
}

Result<std::vector<CacheFolder::File>> CacheFolder::files() const {
  std::vector<std::string> shards;
  if (const int error = ops_->list_folder(version_.get(), &shards); error < 0) {
    return system_error("cannot list the cache", error);
  }
  std::vector<File> files;
  for (const std::string& shard_name : shards) {
    if (!is_shard_name(shard_name)) continue;
    const UniqueFd shard(ops_, ops_->open_at(version_.get(), shard_name.c_str(),
                                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
    std::vector<std::string> names;
    if (!shard.valid() || ops_->list_folder(shard.get(), &names) < 0) continue;
    for (std::string& name : names) {
      struct stat info = {};
      if (!is_entry_file_name(name)) continue;
      if (ops_->stat_at(shard.get(), name.c_str(), &info) < 0 || !S_ISREG(info.st_mode)) continue;
      files.push_back({
          {shard_name, std::move(name)},
          static_cast<uint64_t>(info.st_size),
          static_cast<uint64_t>(info.st_ino),
          info.st_mtim.tv_sec,
          info.st_mtim.tv_nsec
      });
    }
  }
  return files;
}

bool CacheFolder::remove(const File& file) const {
  const UniqueFd shard(ops_, ops_->open_at(version_.get(), file.name.shard.c_str(),
                                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
  struct stat info = {};
  if (!shard.valid() || ops_->stat_at(shard.get(), file.name.file.c_str(), &info) < 0) return false;
  if (static_cast<uint64_t>(info.st_ino) != file.inode ||
      static_cast<uint64_t>(info.st_size) != file.bytes || info.st_mtim.tv_sec != file.modified_s ||
      info.st_mtim.tv_nsec != file.modified_ns) {
    return false;
  }
  return ops_->unlink_at(shard.get(), file.name.file.c_str()) >= 0;
}

Result<std::vector<std::string>> CacheFolder::temp_names() const {
  std::vector<std::string> names;
  if (!writable()) return names;
  if (const int error = ops_->list_folder(tmp_.get(), &names); error < 0) {
    return system_error("cannot list the temporary files", error);
  }
  return names;
}

uint64_t CacheFolder::remove_old_temps(int64_t age_s) const {
  const auto names = temp_names();
  if (!names) return 0;
  const int64_t now = ops_->unix_seconds();
  uint64_t removed = 0;
  for (const std::string& name : *names) {
    struct stat info = {};
    if (ops_->stat_at(tmp_.get(), name.c_str(), &info) < 0 || S_ISDIR(info.st_mode)) continue;
    if (now - info.st_mtim.tv_sec <= age_s) continue;
    if (ops_->unlink_at(tmp_.get(), name.c_str()) >= 0) ++removed;
  }
  return removed;
}

}  // namespace jitgemm
