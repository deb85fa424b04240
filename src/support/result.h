// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or a Status. Member names follow std::expected, which C++20 lacks.
#pragma once

#include "support/status.h"

#include <cstdlib>
#include <optional>
#include <utility>

namespace jitgemm {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok())
      status_ = internal_error("a Result was made from an OK status without a value");
  }

  bool has_value() const { return value_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Status& error() const { return status_; }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

 private:
  // Reading the value of a failed Result is a bug of the caller: stop at once, in every build.
  T& checked() {
    if (!value_) std::abort();
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace jitgemm

#define JITGEMM_CONCAT_INNER(a, b) a##b
#define JITGEMM_CONCAT(a, b) JITGEMM_CONCAT_INNER(a, b)

// Returns the error of a Status expression to the caller.
#define JITGEMM_TRY(expression)                                                           \
  do {                                                                                    \
    if (::jitgemm::Status try_status = (expression); !try_status.ok()) return try_status; \
  } while (false)

// JITGEMM_ASSIGN(auto x, f()): x gets the value, or the error is returned to the caller.
#define JITGEMM_ASSIGN(declaration, expression) \
  JITGEMM_ASSIGN_INNER(JITGEMM_CONCAT(assign_result_, __LINE__), declaration, expression)
#define JITGEMM_ASSIGN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                                 \
  if (!temporary) return temporary.error();                      \
  declaration = std::move(*temporary)
