// SPDX-License-Identifier: Apache-2.0
// File operations that fail on demand: the Nth call of all, or every call of one operation.
#pragma once

#include "cache/file_ops.h"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm {

// Decides before each call, by the operation's name: 0 to let it through, or -errno. `granted` may
// be lowered for read and write, which then move fewer bytes.
using FaultPlan = std::function<int(const std::string& operation, size_t* granted)>;

inline FileOps with_faults(FaultPlan plan) {
  const FileOps real = real_file_ops();
  FileOps ops = real;
  const auto check = [plan](const char* operation) {
    size_t unused = 0;
    return plan(operation, &unused);
  };
  ops.open_at = [=](int folder, const char* path, int flags, mode_t mode) {
    const int fault = check("open_at");
    return fault != 0 ? fault : real.open_at(folder, path, flags, mode);
  };
  ops.close = [=](int fd) {
    const int fault = check("close");
    const int closed = real.close(fd);  // Linux closes even when it reports an error
    return fault != 0 ? fault : closed;
  };
  ops.read = [=](int fd, char* bytes, size_t count) -> int64_t {
    const int fault = plan("read", &count);
    return fault != 0 ? fault : real.read(fd, bytes, count);
  };
  ops.write = [=](int fd, const char* bytes, size_t count) -> int64_t {
    const int fault = plan("write", &count);
    return fault != 0 ? fault : real.write(fd, bytes, count);
  };
  ops.sync = [=](int) { return check("sync"); };  // not real: tests would wait for the disk
  ops.stat = [=](int fd, struct stat* info) {
    const int fault = check("stat");
    return fault != 0 ? fault : real.stat(fd, info);
  };
  ops.stat_at = [=](int folder, const char* path, struct stat* info) {
    const int fault = check("stat_at");
    return fault != 0 ? fault : real.stat_at(folder, path, info);
  };
  ops.touch = [=](int fd) {
    const int fault = check("touch");
    return fault != 0 ? fault : real.touch(fd);
  };
  ops.make_folder_at = [=](int folder, const char* path, mode_t mode) {
    const int fault = check("make_folder_at");
    return fault != 0 ? fault : real.make_folder_at(folder, path, mode);
  };
  ops.unlink_at = [=](int folder, const char* path) {
    const int fault = check("unlink_at");
    return fault != 0 ? fault : real.unlink_at(folder, path);
  };
  ops.link_at = [=](int from, const char* source, int to, const char* target) {
    const int fault = check("link_at");
    return fault != 0 ? fault : real.link_at(from, source, to, target);
  };
  ops.rename_at = [=](int from, const char* source, int to, const char* target) {
    const int fault = check("rename_at");
    return fault != 0 ? fault : real.rename_at(from, source, to, target);
  };
  ops.rename_no_replace_at = [=](int from, const char* source, int to, const char* target) {
    const int fault = check("rename_no_replace_at");
    return fault != 0 ? fault : real.rename_no_replace_at(from, source, to, target);
  };
  ops.list_folder = [=](int folder, std::vector<std::string>* names) {
    const int fault = check("list_folder");
    return fault != 0 ? fault : real.list_folder(folder, names);
  };
  ops.try_lock = [=](int fd, int64_t offset) {
    const int fault = check("try_lock");
    return fault != 0 ? fault : real.try_lock(fd, offset);
  };
  ops.unlock = [=](int fd, int64_t offset) {
    const int fault = check("unlock");
    const int unlocked = real.unlock(fd, offset);
    return fault != 0 ? fault : unlocked;
  };
  ops.random_bytes = [=](char* bytes, size_t count) {
    const int fault = check("random_bytes");
    return fault != 0 ? fault : real.random_bytes(bytes, count);
  };
  return ops;
}

// The real operations without waiting for the disk.
inline FileOps without_sync() {
  FileOps ops = real_file_ops();
  ops.sync = [](int) { return 0; };
  return ops;
}

}  // namespace jitgemm
