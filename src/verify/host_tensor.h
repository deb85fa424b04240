// SPDX-License-Identifier: Apache-2.0
// A dense, row-major tensor in host memory: what files hold, generators draw and the CLI passes on.
// It owns its bytes; element access and strides are the business of MatrixView.
#pragma once

#include "problem/dtype.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm {

struct HostTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  int64_t element_count() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
  }
  // Elements as T; the caller knows that sizeof(T) is the width of the dtype.
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

// A tensor of zero bytes. The shape must be non-negative and its byte count must fit 63 bits.
inline HostTensor make_host_tensor(std::string name, DType dtype, std::vector<int64_t> shape) {
  HostTensor tensor{std::move(name), dtype, std::move(shape), {}};
  tensor.bytes.resize(static_cast<size_t>(tensor.element_count()) *
                      static_cast<size_t>(dtype_info(dtype).bytes));
  return tensor;
}

}  // namespace jitgemm
