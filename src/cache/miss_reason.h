// SPDX-License-Identifier: Apache-2.0
// Why a lookup found nothing usable. Shared by the layers of the cache; knows nothing of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jitgemm {

enum class MissReason : uint8_t {
  kAbsent,       // no such entry; the ordinary miss
  kCorrupt,      // read whole, and the content is not what the format promises
  kVersion,      // intact, but of another format version
  kKeyMismatch,  // intact, but it answers another key
  kUnsafe,       // link, no regular file, foreign owner, writable by all, too large
  kIoError,      // the system refused; nothing is known about the content
};
inline constexpr size_t kMissReasonCount = 6;

// "absent", "corrupt", "version", "key_mismatch", "unsafe", "io_error".
std::string_view miss_reason_name(MissReason reason);

}  // namespace jitgemm
