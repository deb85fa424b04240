// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning.h"

#include "cache/file_ops.h"
#include "support/filesystem.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace jitgemm {
namespace {

constexpr const char* kOff = "off";

Result<TuningDatabase> read_tuning_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return TuningDatabase();
  JITGEMM_ASSIGN(const std::string text, read_file(path));
  Result<TuningDatabase> database = TuningDatabase::parse(text);
  if (!database) return database.error().with_context(path);
  return database;
}

// Holds the file beside `path` locked, so that of two writers the second reads what the first
// wrote. The kernel lets go when the holder dies.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    // By name: a child forked meanwhile shares the description.
    if (fd_.valid()) ops_.unlock(fd_.get(), 0);
  }
  Status acquire(const std::string& path) {
    constexpr auto kPause = std::chrono::milliseconds(5);  // a writer takes as long
    constexpr auto kPatience = std::chrono::seconds(20);   // with one that was stopped
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const std::string name = path + ".lock";
    const int fd = ops_.open_at(AT_FDCWD, name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return io_error(fmt::format("{}: {}", name, std::strerror(-fd)));
    fd_ = UniqueFd(&ops_, fd);
    for (;;) {
      const int result = ops_.try_lock(fd_.get(), 0);
      if (result >= 0) return ok_status();
      if (result != -EAGAIN && result != -EACCES) {
        return io_error(fmt::format("{}: cannot lock: {}", name, std::strerror(-result)));
      }
      if (std::chrono::steady_clock::now() > deadline) {
        return io_error(
            fmt::format("{}: another process has held the lock for {} s", name, kPatience.count()));
      }
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  const FileOps ops_ = real_file_ops();
  UniqueFd fd_;
};

Status add_own_rows(const Settings& settings, const Logger& log, TuningDatabase& database) {
  const std::string path = tuning_path(settings);
  if (path.empty()) return ok_status();
  const Result<TuningDatabase> file = read_tuning_file(path);
  if (file) {
    database.merge(*file);
  } else if (!settings.value("tuning_database").empty()) {
    return file.error().with_context("tuning_database");
  } else {
    log.warning("measured plans are left out: " + file.error().message());
  }
  return ok_status();
}

}  // namespace

std::string tuning_path(const Settings& settings) {
  const std::string& given = settings.value("tuning_database");
  if (given == kOff) return {};
  if (!given.empty()) return given;
  const std::string& folder = settings.value("cache_folder");
  if (folder.empty() || settings.value("cache_mode") == "memory") return {};
  return folder + "/tuning.json";
}

Result<TuningDatabase> embedded_tuning() {
  TuningDatabase all;
  for (const std::string_view text : embedded_tuning_files()) {
    JITGEMM_ASSIGN(const TuningDatabase one, TuningDatabase::parse(text));
    all.merge(one);
  }
  return all;
}

Result<TuningDatabase> load_tuning(const Settings& settings, const Logger& log) {
  if (settings.value("tuning_database") == kOff) return TuningDatabase();
  JITGEMM_ASSIGN(TuningDatabase database, embedded_tuning());
  JITGEMM_TRY(add_own_rows(settings, log, database));
  return database;
}

Result<TuningDatabase> open_tuning(const Settings& settings, const Logger& log) {
  TuningDatabase database;
  if (settings.value("tuning_database") == kOff) return database;
  for (const std::string_view text : embedded_tuning_files()) database.add_unread(text);
  JITGEMM_TRY(add_own_rows(settings, log, database));
  return database;
}

Status add_to_tuning_file(const std::string& path, const TuningDatabase& rows) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) JITGEMM_TRY(make_folders(folder));
  FileLock lock;
  JITGEMM_TRY(lock.acquire(path));
  JITGEMM_ASSIGN(TuningDatabase database, read_tuning_file(path));
  database.merge(rows);
  // Readers see the file before or after, and never a part of it.
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  JITGEMM_TRY(write_file(temporary, database.to_json()));
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (!error) return ok_status();
  return io_error(fmt::format("{}: {}", path, error.message()));
}

}  // namespace jitgemm
