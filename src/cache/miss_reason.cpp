// SPDX-License-Identifier: Apache-2.0
#include "cache/miss_reason.h"

namespace jitgemm {

std::string_view miss_reason_name(MissReason reason) {
  switch (reason) {
    case MissReason::kAbsent: return "absent";
    case MissReason::kCorrupt: return "corrupt";
    case MissReason::kVersion: return "version";
    case MissReason::kKeyMismatch: return "key_mismatch";
    case MissReason::kUnsafe: return "unsafe";
    case MissReason::kIoError: return "io_error";
  }
  return "unknown";
}

}  // namespace jitgemm
