// SPDX-License-Identifier: Apache-2.0
#include "verify/safetensors.h"

#include "support/filesystem.h"
#include "verify/random.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace jitgemm {
namespace {

class SafetensorsTest : public testing::Test {
 protected:
  SafetensorsTest() {
    folder_ = testing::TempDir() + "/safetensors_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string write_raw(const std::string& json, size_t data_bytes) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
    bytes += json + std::string(data_bytes, 'x');
    EXPECT_TRUE(write_file(path("raw"), bytes).ok());
    return path("raw");
  }

  std::string folder_;
};

TEST_F(SafetensorsTest, WhatIsWrittenIsReadBack) {
  std::vector<HostTensor> tensors = {
      make_host_tensor("codes", DType::kF8E4M3, {3, 5}),
      make_host_tensor("scales", DType::kF32, {3, 1}),
      make_host_tensor("exponents", DType::kF8E8M0, {7}),
      make_host_tensor("half", DType::kF16, {2, 2}),
      make_host_tensor("brain", DType::kBF16, {}),
      make_host_tensor("index", DType::kI32, {2}),
      make_host_tensor("none", DType::kF8E5M2, {0, 9}),
  };
  uint8_t next = 1;
  for (HostTensor& tensor : tensors) {
    for (std::byte& byte : tensor.bytes) byte = std::byte{next++};
  }
  const std::map<std::string, std::string> metadata = {
      {"made by", "a test"}
  };
  ASSERT_TRUE(write_safetensors(path("all"), tensors, metadata).ok());
  const auto file = SafetensorsFile::open(path("all"));
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->header().metadata, metadata);
  EXPECT_EQ(file->header().entries.size(), tensors.size());
  for (const HostTensor& tensor : tensors) {
    const auto loaded = file->load(tensor.name);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_EQ(loaded->dtype, tensor.dtype);
    EXPECT_EQ(loaded->shape, tensor.shape);
    EXPECT_EQ(loaded->bytes, tensor.bytes);
    const SafetensorsEntry* entry = file->find(tensor.name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->begin % static_cast<uint64_t>(dtype_info(tensor.dtype).bytes), 0U);
  }
  // The name of the finished file only; no partial file stays behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(SafetensorsTest, AForeignButLegalTypeIsListedAndRefusedOnLoad) {
  const std::string file_path =
      write_raw(R"({"ids":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}  )", 16);
  const auto file = SafetensorsFile::open(file_path);
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_FALSE(file->find("ids")->dtype.has_value());
  EXPECT_EQ(file->load("ids").error().code(), StatusCode::kUnsupported);
  const Status missing = file->load("id").error();
  EXPECT_EQ(missing.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(missing.message().find("no tensor 'id'; it has 'ids'"), std::string::npos);
}

TEST_F(SafetensorsTest, EveryBrokenHeaderIsCorruptDataThatNamesTheFault) {
  struct Case {
    const char* fault;
    const char* json;
    size_t data_bytes;
  };
  const Case cases[] = {
      {"not JSON",                             R"({"a":)",                                                                      0 },
      {"expected '{' first",                   R"([1])",                                                                        0 },
      {"expected '{' first",                   R"( {})",                                                                        0 },
      {"not JSON",                             R"({} x)",                                                                       0 },
      {"expected an object",                   R"({"a":3})",                                                                    0 },
      {"no field 'dtype'",                     R"({"a":{"shape":[],"data_offsets":[0,0]}})",                                    0 },
      {"no field 'shape'",                     R"({"a":{"dtype":"F32","data_offsets":[0,0]}})",                                 0 },
      {"no field 'data_offsets'",              R"({"a":{"dtype":"F32","shape":[]}})",                                           0 },
      {"unknown field 'x'",                    R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})",               4 },
      {"dtype: expected a string",             R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})",                         4 },
      {"unknown dtype 'f32'",                  R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})",                     4 },
      {"unknown dtype 'F99'",                  R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})",                     4 },
      {"shape: expected an array",             R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})",                       4 },
      {"shape: expected integers",             R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",                    4 },
      {"shape: expected integers",             R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})",
       4                                                                                                                          },
      {"exceeds 2^63",
       R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})",                                           4 },
      {"overflows",                            R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
       4                                                                                                                          },
      {"overflows",
       R"({"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})",                                       0 },
      {"whole number of bytes",                R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})",                      2 },
      {"expected 8 bytes",                     R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",                     4 },
      {"two integers",                         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",                       4 },
      {"two integers",                         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})",                    4 },
      {"begin <= end",                         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",                     4 },
      {"begin <= end <= 4",                    R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",                     4 },
      {"overlap",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
           "b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",                                                               6 },
      {"gap",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
           "b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})",                                                               10},
      {"cover 4 of 5",                         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",                     5 },
      {"key 'a' appears twice",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
           "a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",                                                               4 },
      {"key 'dtype' appears twice",
       R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})",                                               4 },
      {"__metadata__: expected an object",     R"({"__metadata__":"x"})",                                                       0 },
      {"__metadata__: 'k': expected a string", R"({"__metadata__":{"k":1}})",                                                   0 },
      {"nested too deeply",                    R"({"a":[[[[[[1]]]]]]})",                                                        0 },
  };
  for (const Case& c : cases) {
    const auto file = SafetensorsFile::open(write_raw(c.json, c.data_bytes));
    ASSERT_FALSE(file) << c.json;
    EXPECT_EQ(file.error().code(), StatusCode::kCorruptData) << c.json;
    EXPECT_NE(file.error().message().find(c.fault), std::string::npos) << c.json << "\n"
                                                                       << file.error().message();
  }
}

TEST_F(SafetensorsTest, BadLengthsAndFilesAreRefused) {
  struct Case {
    const char* name;
    std::string bytes;
  };
  const Case cases[] = {
      {"empty",                             ""            },
      { "seven bytes",                      std::string(7,          '\0')},
      { "header beyond the end", std::string("\x10\0\0\0\0\0\0\0{}",            10)},
      { "greatest length",                      std::string(8, '\xff') + "{}"},
      { "zero length",                      std::string(8,          '\0')},
  };
  for (const Case& c : cases) {
    ASSERT_TRUE(write_file(path("bad"), c.bytes).ok());
    EXPECT_EQ(SafetensorsFile::open(path("bad")).error().code(), StatusCode::kCorruptData)
        << c.name;
  }
  EXPECT_EQ(SafetensorsFile::open(path("absent")).error().code(), StatusCode::kIoError);
  EXPECT_EQ(SafetensorsFile::open(folder_).error().code(), StatusCode::kIoError);
}

TEST_F(SafetensorsTest, AFileCutAfterOpeningFailsTheLoad) {
  ASSERT_TRUE(write_safetensors(path("cut"), {make_host_tensor("t", DType::kF32, {1024})}).ok());
  const auto file = SafetensorsFile::open(path("cut"));
  ASSERT_TRUE(file);
  std::filesystem::resize_file(path("cut"), 200);
  EXPECT_EQ(file->load("t").error().code(), StatusCode::kCorruptData);
}

// Each truncation and many random changes of a good file: an error or a header that satisfies its
// own promises, and never a crash. The sanitizer build makes this a memory test.
TEST_F(SafetensorsTest, MutatedFilesNeverCrash) {
  ASSERT_TRUE(write_safetensors(path("good"),
                                {
                                    make_host_tensor("a", DType::kF32, {4, 4}
                                      ),
                                    make_host_tensor("b", DType::kF8E4M3, {3}
                                      )
  },
                                {{"k", "v"}})
                  .ok());
  const auto good = read_file(path("good"));
  ASSERT_TRUE(good);
  for (size_t size = 0; size < good->size(); ++size) {
    ASSERT_TRUE(write_file(path("cut"), good->substr(0, size)).ok());
    EXPECT_EQ(SafetensorsFile::open(path("cut")).error().code(), StatusCode::kCorruptData) << size;
  }
  const RandomStream random(5, 0);
  const std::string json = good->substr(8, good->size() - 8 - 67);
  int accepted = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    std::string changed = json;
    const int edits = random.integer(8 * round, 1, 3);
    for (int i = 0; i < edits; ++i) {
      const auto draw = 8 * round + 1 + 2 * static_cast<uint64_t>(i);
      const auto at =
          static_cast<size_t>(random.integer(draw, 0, static_cast<int32_t>(changed.size()) - 1));
      changed[at] = static_cast<char>(random.bits(draw + 1));
    }
    const auto header = parse_safetensors_header(changed, 67);
    if (!header) {
      ASSERT_EQ(header.error().code(), StatusCode::kCorruptData);
      continue;
    }
    ++accepted;
    uint64_t covered = 0;
    for (const SafetensorsEntry& entry : header->entries) {
      ASSERT_EQ(entry.begin, covered);
      covered = entry.end;
    }
    ASSERT_EQ(covered, 67U);
  }
  EXPECT_LT(accepted, 10000);
}

TEST_F(SafetensorsTest, TheWriterRefusesWhatItCouldNotReadBack) {
  HostTensor wrong = make_host_tensor("w", DType::kF32, {2});
  wrong.bytes.pop_back();
  struct Case {
    const char* name;
    std::vector<HostTensor> tensors;
  };
  const Case cases[] = {
      {"two of one name",
       {make_host_tensor("t", DType::kF32, {1}), make_host_tensor("t", DType::kF32, {1})}     },
      {"a reserved name",                 {make_host_tensor("__metadata__", DType::kF32, {1})}},
      {"bytes that do not fit the shape", {wrong}                                             },
      {"a name that is not UTF-8",        {make_host_tensor("\xff\xfe", DType::kF32, {1})}    },
  };
  for (const Case& c : cases) {
    EXPECT_EQ(write_safetensors(path("no"), c.tensors).code(), StatusCode::kInvalidArgument)
        << c.name;
    EXPECT_FALSE(std::filesystem::exists(path("no"))) << c.name;
  }
  EXPECT_EQ(write_safetensors(path("no/such/folder"), std::vector<HostTensor>{}).code(),
            StatusCode::kIoError);
}

}  // namespace
}  // namespace jitgemm
