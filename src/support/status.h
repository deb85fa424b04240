// SPDX-License-Identifier: Apache-2.0
// The one error mechanism: a code that tells a caller what to do, and a message that tells a person
// what was expected and what was found. The codes mirror jitgemm_status in
// include/jitgemm/jitgemm.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace jitgemm {

enum class StatusCode : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // the call is wrong: a parameter's name, what was expected, what was found
  kUnsupported = 2,      // the call is right but this build, arch or shape has no kernel for it
  kNotReady = 3,         // the kernel was not prepared on this device
  kCaptureNotReady = 4,  // as kNotReady, on a stream that is being captured; the capture is intact
  kCompileFailed = 10,   // NVRTC refused the specialised source; the log is in the message
  kNoCompiler = 11,      // NVRTC could not be opened
  kNoDriver = 20,        // the CUDA driver could not be opened
  kDeviceError = 21,     // the CUDA driver reported an error; its name and code are in the message
  kOutOfMemory = 22,     // host or device memory is exhausted
  kSimulatorFault = 30,  // the simulated kernel broke a rule; the report is the message
  kIoError = 40,         // a file could not be read or written
  kCorruptData = 41,     // a file was read and its content is not what its format promises
  kVerificationFailed = 50,
  kInternal = 99,  // a bug in jitgemm
};

// The stable upper-case name, e.g. "INVALID_ARGUMENT".
std::string_view status_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  explicit operator bool() const { return ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // "NAME: message", or "OK".
  std::string to_string() const;
  // The same code with "context: " put before the message; OK stays OK.
  Status with_context(std::string_view context) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status ok_status() {
  return {};
}
inline Status invalid_argument(std::string m) {
  return {StatusCode::kInvalidArgument, std::move(m)};
}
inline Status unsupported(std::string m) {
  return {StatusCode::kUnsupported, std::move(m)};
}
inline Status internal_error(std::string m) {
  return {StatusCode::kInternal, std::move(m)};
}
inline Status io_error(std::string m) {
  return {StatusCode::kIoError, std::move(m)};
}
inline Status corrupt_data(std::string m) {
  return {StatusCode::kCorruptData, std::move(m)};
}

}  // namespace jitgemm
