// SPDX-License-Identifier: Apache-2.0
#include "support/status.h"

namespace jitgemm {

std::string_view status_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "OK";
    case StatusCode::kInvalidArgument: return "INVALID_ARGUMENT";
    case StatusCode::kUnsupported: return "UNSUPPORTED";
    case StatusCode::kNotReady: return "NOT_READY";
    case StatusCode::kCaptureNotReady: return "CAPTURE_NOT_READY";
    case StatusCode::kCompileFailed: return "COMPILE_FAILED";
    case StatusCode::kNoCompiler: return "NO_COMPILER";
    case StatusCode::kNoDriver: return "NO_DRIVER";
    case StatusCode::kDeviceError: return "DEVICE_ERROR";
    case StatusCode::kOutOfMemory: return "OUT_OF_MEMORY";
    case StatusCode::kSimulatorFault: return "SIMULATOR_FAULT";
    case StatusCode::kIoError: return "IO_ERROR";
    case StatusCode::kCorruptData: return "CORRUPT_DATA";
    case StatusCode::kVerificationFailed: return "VERIFICATION_FAILED";
    case StatusCode::kInternal: return "INTERNAL";
  }
  return "UNKNOWN";
}

std::string Status::to_string() const {
  if (ok()) return "OK";
  return std::string(status_name(code_)) + ": " + message_;
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

}  // namespace jitgemm
