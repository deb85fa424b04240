// SPDX-License-Identifier: Apache-2.0
#include "compile/nvrtc_compiler.h"

#include "compile/resource_log.h"
#include "support/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace jitgemm {
namespace {

// Tells builds of one version apart without reading 100 MB: the ELF header and tables lie at both
// ends of the file, and change with any rebuild.
std::string library_fingerprint(const std::string& path) {
  constexpr long kEnd = 1 << 16;
  std::string bytes;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    std::string buffer(kEnd, '\0');
    bytes.append(buffer, 0, std::fread(buffer.data(), 1, buffer.size(), file));
    const std::string head = buffer.substr(0, bytes.size());
    bytes = head;
    std::fseek(file, 0, SEEK_END);
    const long size = std::ftell(file);
    bytes += fmt::format("#{}#", size);
    std::fseek(file, std::max(0L, size - kEnd), SEEK_SET);
    const size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
    bytes.append(buffer, 0, got);
    std::fclose(file);
  }
  return to_hex(sha256(bytes)).substr(0, 16);
}

// The first version, 100 * major + minor, that knows a target.
int first_version_for(std::string_view target) {
  if (target.ends_with('f') || target.starts_with("sm_103")) return 1209;
  if (target.starts_with("sm_100")) return 1208;
  return 1200;
}

// Destroys the program on every way out.
class Program {
 public:
  explicit Program(const NvrtcApi& api) : api_(api) {}
  ~Program() {
    if (handle != nullptr) api_.destroy_program(&handle);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  NvrtcProgram handle = nullptr;

 private:
  const NvrtcApi& api_;
};

}  // namespace

Result<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::open(const std::string& path) {
  JITGEMM_ASSIGN(NvrtcApi api, NvrtcApi::open(path));
  return std::unique_ptr<NvrtcCompiler>(new NvrtcCompiler(std::move(api)));
}

NvrtcCompiler::NvrtcCompiler(NvrtcApi api) : api_(std::move(api)) {
  name_ = fmt::format("nvrtc {}.{}", api_.major, api_.minor);
  identity_ = name_ + " " + library_fingerprint(api_.path);
}

Result<KernelImage> NvrtcCompiler::compile(const KernelSource& source) const {
  const auto start = std::chrono::steady_clock::now();
  if (const int first = first_version_for(source.target); 100 * api_.major + api_.minor < first) {
    return unsupported(fmt::format("arch: {} needs NVRTC {}.{} or newer, found {}.{}",
                                   source.target, first / 100, first % 100, api_.major,
                                   api_.minor));
  }
  std::vector<const char*> header_names;
  std::vector<const char*> header_texts;
  const auto add_header = [&](const SourceFile& file) {
    header_names.push_back(file.name.c_str());
    header_texts.push_back(file.text.c_str());
  };
  add_header(source.files.root);
  for (const SourceFile& file : source.files.headers) add_header(file);

  Program program(api_);
  int result = api_.create_program(
      &program.handle, source.text.c_str(), ("specialized_" + source.name).c_str(),
      static_cast<int>(header_names.size()), header_texts.data(), header_names.data());
  if (result != kNvrtcSuccess) {
    return Status(StatusCode::kCompileFailed,
                  fmt::format("NVRTC refused to create a program: {}", api_.error_string(result)));
  }
  const std::vector<std::string> options = compile_options(source.target);
  std::vector<const char*> option_texts;
  option_texts.reserve(options.size());
  for (const std::string& option : options) option_texts.push_back(option.c_str());
  result = api_.compile_program(program.handle, static_cast<int>(option_texts.size()),
                                option_texts.data());

  const auto fetch = [&](auto size_of, auto get) {
    size_t size = 0;
    std::string bytes;
    if (size_of(program.handle, &size) == kNvrtcSuccess && size > 0) {
      bytes.resize(size);
      if (get(program.handle, bytes.data()) != kNvrtcSuccess) bytes.clear();
    }
    return bytes;
  };
  std::string log = fetch(api_.log_size, api_.log);
  if (result != kNvrtcSuccess) {
    return Status(StatusCode::kCompileFailed,
                  fmt::format("{} could not compile {} for {}: {}\n{}", name_, source.name,
                              source.target, api_.error_string(result), log.c_str()));
  }
  KernelImage image;
  image.entry = source.entry;
  image.target = source.target;
  image.compiler = name_;
  image.ptx = fetch(api_.ptx_size, api_.ptx);
  while (!image.ptx.empty() && image.ptx.back() == '\0') image.ptx.pop_back();
  image.cubin = fetch(api_.cubin_size, api_.cubin);
  if (image.ptx.empty() || image.cubin.empty()) {
    return Status(StatusCode::kCompileFailed,
                  fmt::format("{} gave no PTX or no cubin for {}", name_, source.target));
  }
  read_resource_log(log, image);
  image.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return image;
}

}  // namespace jitgemm
