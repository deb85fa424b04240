// SPDX-License-Identifier: Apache-2.0
// What every function of the C ABI does around its body: turns a Status or an exception into a
// jitgemm_status with its message, and reads structs of callers that may be older or newer.
#pragma once

#include "jitgemm/jitgemm.h"

#include "support/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>

namespace jitgemm {

std::string& last_error();  // c_api.cpp

inline jitgemm_status report(const Status& status) {
  if (!status.ok()) last_error() = status.message();
  return static_cast<jitgemm_status>(status.code());
}

// Runs a body that returns Status; no exception leaves.
template <typename Body>
jitgemm_status guarded(Body&& body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    last_error() = "host memory";  // short: needs no allocation
    return JITGEMM_STATUS_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    try {
      last_error() = error.what();
    } catch (const std::bad_alloc&) {
    }
    return JITGEMM_STATUS_INTERNAL;
  }
}

inline Status null_argument(const char* name) {
  return invalid_argument(fmt::format("{}: expected an address, found NULL", name));
}

// A caller's struct may be an older, shorter one, whose missing fields are defaults. A longer one
// is from a newer header: its further fields must be zero, since this library would ignore them.
template <typename Struct>
Status read_struct(const char* name, const Struct* given, Struct& out) {
  if (given == nullptr) return null_argument(name);
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  if (size < sizeof(size_t) || size > 4096) {
    return invalid_argument(fmt::format(
        "{}.struct_size: expected {} (use the _INIT macro), found {}", name, sizeof(Struct), size));
  }
  std::memset(static_cast<void*>(&out), 0, sizeof(out));
  std::memcpy(static_cast<void*>(&out), given, std::min(size, sizeof(Struct)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0)
      return unsupported(fmt::format("{}: a field that this version ({}) does not know is set",
                                     name, jitgemm_version()));
  }
  return ok_status();
}

}  // namespace jitgemm
