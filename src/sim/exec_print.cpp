// SPDX-License-Identifier: Apache-2.0
#include "sim/exec_print.h"

#include "sim/access.h"
#include "sim/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

namespace jitgemm::sim {
namespace {

constexpr size_t kMaxText = 4096;        // of a format or a string, in bytes
constexpr uint32_t kMaxWidth = 1024;     // of a field, and of its precision
constexpr size_t kMaxArguments = 256;    // of a call; a driver takes 32
constexpr size_t kMaxPrinted = 1 << 20;  // of a warp's call

const CallSite& site_of(const Warp& w, const Op& op) {
  return w.cta.cluster.grid.kernel->call_sites[op.payload];
}

// Argument `index` of the call; nothing if the program has not written it.
std::optional<uint64_t> argument(const Warp& w, const Op& op, size_t index, uint32_t lane) {
  const auto& arguments = site_of(w, op).arguments;
  if (index >= arguments.size()) return std::nullopt;
  const ParamCopy& c = arguments[index];
  if (c.from_register) {
    if ((w.undefined(c.from_operand) >> lane & 1) != 0) return std::nullopt;
    return w.value(c.from_operand, lane);
  }
  const uint64_t from = lane * w.local_bytes + c.from + (c.from_frame ? w.stack_frame[lane] : 0);
  const uint32_t bytes = std::min<uint32_t>(c.bytes, 8);
  if (!w.local_written.all(from, bytes)) return std::nullopt;
  uint64_t value = 0;
  std::memcpy(&value, w.local.data() + from, bytes);
  return value;
}

// Reads of one lane's call, under the checks of any other read.
class Reader {
 public:
  Reader(Warp& w, const Op& op, uint32_t lane) : w_(w), op_(op), lane_(lane) {}

  bool read(uint64_t address, void* to, uint32_t bytes) {
    Location place;
    if (locate(w_, op_, lane_, Space::kGeneric, address, bytes, 0, place) != Step::kNext ||
        check_read(w_, op_, lane_, place, bytes) != Step::kNext) {
      return false;
    }
    copy_in(to, place.data, bytes);
    return true;
  }
  // Up to the terminating zero, or to the limit.
  bool read_text(uint64_t address, std::string& text) {
    while (text.size() < kMaxText) {
      char c = 0;
      if (!read(address + text.size(), &c, 1)) return false;
      if (c == 0) break;
      text += c;
    }
    return true;
  }

 private:
  Warp& w_;
  const Op& op_;
  uint32_t lane_;
};

// The block of arguments that the compiler lays out: each at a multiple of its size.
class ArgumentBlock {
 public:
  ArgumentBlock(Reader& reader, std::optional<uint64_t> address)
      : reader_(reader), address_(address) {}

  bool next(uint32_t bytes, uint64_t& value) {
    value = 0;
    if (!address_ || ++count_ > kMaxArguments) return true;
    offset_ = (offset_ + bytes - 1) / bytes * bytes;
    if (!reader_.read(*address_ + offset_, &value, bytes)) return false;
    offset_ += bytes;
    return true;
  }

 private:
  Reader& reader_;
  std::optional<uint64_t> address_;
  uint64_t offset_ = 0;
  size_t count_ = 0;
};

// The formats are made by Conversion, which gives each letter an argument of its type.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
template <typename Argument>
void append(std::string& text, const std::string& format, Argument argument) {
  char buffer[2 * kMaxWidth + 512];
  // NOLINTNEXTLINE(*-vararg)
  const int length = std::snprintf(buffer, sizeof(buffer), format.c_str(), argument);
  if (length <= 0) return;
  text.append(buffer, std::min<size_t>(static_cast<size_t>(length), sizeof(buffer) - 1));
}
#pragma GCC diagnostic pop

// One "%...": flags, width, precision, size and letter.
struct Conversion {
  std::string flags;  // with width and precision
  uint32_t bytes = 4;
  char letter = 0;

  // From behind the '%'. False: a read failed, which is the lane's fault.
  bool parse(const std::string& format, size_t& at, ArgumentBlock& block) {
    while (at < format.size() && std::strchr("-+ #0", format[at]) != nullptr) flags += format[at++];
    if (!number(format, at, block)) return false;
    if (at < format.size() && format[at] == '.') {
      flags += format[at++];
      if (!number(format, at, block)) return false;
    }
    uint32_t longs = 0, shorts = 0;
    for (; at < format.size() && std::strchr("hlLjzt", format[at]) != nullptr; ++at) {
      if (format[at] == 'h') {
        ++shorts;
      } else {
        ++longs;
      }
    }
    letter = at < format.size() ? format[at++] : '\0';
    bytes = longs != 0 ? 8 : 4;
    narrow_ = shorts == 0 ? 0 : shorts == 1 ? 16 : 8;
    return true;
  }

  bool print(std::string& text, Reader& reader, ArgumentBlock& block) const {
    uint64_t value = 0;
    switch (letter) {
      case 'd':
      case 'i': {
        if (!block.next(bytes, value)) return false;
        const uint32_t unused = 64 - (narrow_ != 0 ? narrow_ : 8 * bytes);
        append(text, "%" + flags + "lld",
               static_cast<long long>(static_cast<int64_t>(value << unused) >> unused));
        return true;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        if (!block.next(bytes, value)) return false;
        if (narrow_ != 0) value &= (uint64_t{1} << narrow_) - 1;
        append(text, "%" + flags + "ll" + letter, static_cast<unsigned long long>(value));
        return true;
      }
      case 'c':
        if (!block.next(4, value)) return false;
        append(text, "%" + flags + "c", static_cast<int>(value & 0xff));
        return true;
      case 'p':
        if (!block.next(8, value)) return false;
        append(text, "%" + flags + "s", fmt::format("{:#x}", value).c_str());
        return true;
      case 's': {
        if (!block.next(8, value)) return false;
        std::string argument = "(null)";
        if (value != 0) {
          argument.clear();
          if (!reader.read_text(value, argument)) return false;
        }
        if (flags.empty()) {
          text += argument;
        } else {
          append(text, "%" + flags + "s", argument.c_str());
        }
        return true;
      }
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        if (!block.next(8, value)) return false;
        append(text, "%" + flags + letter, std::bit_cast<double>(value));
        return true;
      case '%': text += '%'; return true;
      default:  // not of printf
        text += "%" + flags;
        if (letter != 0) text += letter;
        return true;
    }
  }

 private:
  bool number(const std::string& format, size_t& at, ArgumentBlock& block) {
    if (at < format.size() && format[at] == '*') {
      ++at;
      uint64_t value = 0;
      if (!block.next(4, value)) return false;
      const auto wanted = static_cast<int32_t>(value);
      if (wanted < 0 && flags.ends_with('.')) {  // as if there were no precision
        flags.pop_back();
        return true;
      }
      if (wanted < 0) flags += '-';
      flags += std::to_string(
          std::min<uint32_t>(static_cast<uint32_t>(std::abs(int64_t{wanted})), kMaxWidth));
      return true;
    }
    uint32_t value = 0;
    bool any = false;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at, any = true)
      value = std::min(kMaxWidth, value * 10 + static_cast<uint32_t>(format[at] - '0'));
    if (any) flags += std::to_string(value);
    return true;
  }

  uint32_t narrow_ = 0;  // bits of a shorter integer
};

// What one lane prints. False: it has faulted.
bool print_lane(Warp& w, const Op& op, uint32_t lane, std::string& text) {
  Reader reader(w, op, lane);
  const std::optional<uint64_t> format_address = argument(w, op, 0, lane);
  if (!format_address || *format_address == 0) {
    text += "(null)";
    return true;
  }
  std::string format;
  if (!reader.read_text(*format_address, format)) return false;
  std::optional<uint64_t> block_address = argument(w, op, 1, lane);
  if (block_address == uint64_t{0}) block_address.reset();
  ArgumentBlock block(reader, block_address);
  for (size_t at = 0; at < format.size() && text.size() < kMaxPrinted;) {
    const char c = format[at++];
    if (c != '%') {
      text += c;
      continue;
    }
    Conversion conversion;
    if (!conversion.parse(format, at, block) || !conversion.print(text, reader, block))
      return false;
  }
  return true;
}

// A text of an assertion as far as it can be read: that the assertion failed is the fault to tell.
std::string quiet_text(const Warp& w, std::optional<uint64_t> address) {
  std::string text;
  const GlobalMemory& memory = w.cta.cluster.grid.memory;
  const GlobalMemory::Range* hint = nullptr;
  while (address && text.size() < kMaxText &&
         memory.check_read(*address + text.size(), 1, hint) == AccessResult::kOk) {
    const char c = *reinterpret_cast<const char*>(*address + text.size());
    if (c == 0) return text;
    text += c >= 0x20 && c != 0x7f ? c : '?';
  }
  return text.empty() ? "?" : text;
}

}  // namespace

Step print_formatted(Warp& w, const Op& op, LaneMask active) {
  GridState& grid = w.cta.cluster.grid;
  if (!grid.options.print) return Step::kNext;
  std::string text;
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    if (!print_lane(w, op, static_cast<uint32_t>(std::countr_zero(rest)), text))
      return Step::kFault;
  }
  const std::lock_guard lock(grid.print_mutex);
  grid.options.print(text);
  return Step::kNext;
}

std::string describe_assertion(const Warp& w, const Op& op, uint32_t lane) {
  return fmt::format("{}, at {}:{}, in {}", quiet_text(w, argument(w, op, 0, lane)),
                     quiet_text(w, argument(w, op, 1, lane)), argument(w, op, 2, lane).value_or(0),
                     quiet_text(w, argument(w, op, 3, lane)));
}

}  // namespace jitgemm::sim
