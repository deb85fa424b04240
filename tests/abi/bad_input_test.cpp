// SPDX-License-Identifier: Apache-2.0
// NULL in every parameter that may not be, buffers, and options.
#include "bad_input.h"

namespace jitgemm_abi {
namespace {

struct NullCase {
  const char* parameter;
  jitgemm_status (*call)(const Handles& h);
};

TEST_F(BadInput, NullIsNamed) {
  static const jitgemm_gemm_problem problem = small_problem(kM);
  static const jitgemm_gemm_arguments arguments = arguments_for(kM);
  static jitgemm_device* device;
  static jitgemm_buffer* buffer;
  static jitgemm_operation* operation;
  static size_t length;
  static uint64_t number;
  static char byte;
  const NullCase cases[] = {
      {"context",     [](const Handles&) { return jitgemm_context_create(nullptr, nullptr); }          },
      {"device",
       [](const Handles& h) { return jitgemm_device_open(h.context, "sim", 0, nullptr); }              },
      {"context",     [](const Handles&) { return jitgemm_device_open(nullptr, "sim", 0, &device); }   },
      {"name",
       [](const Handles& h) { return jitgemm_device_open(h.context, nullptr, 0, &device); }            },
      {"device",      [](const Handles&) { return jitgemm_device_synchronize(nullptr, nullptr); }      },
      {"buffer",      [](const Handles& h) { return jitgemm_buffer_create(h.device, 1, nullptr); }     },
      {"device",      [](const Handles&) { return jitgemm_buffer_create(nullptr, 1, &buffer); }        },
      {"buffer",      [](const Handles&) { return jitgemm_buffer_write(nullptr, 0, &byte, 1); }        },
      {"source",      [](const Handles& h) { return jitgemm_buffer_write(h.buffer, 0, nullptr, 1); }   },
      {"buffer",      [](const Handles&) { return jitgemm_buffer_read(nullptr, 0, &byte, 1); }         },
      {"destination",
       [](const Handles& h) { return jitgemm_buffer_read(h.buffer, 0, nullptr, 1); }                   },
      {"problem",     [](const Handles&) { return jitgemm_gemm_plan(nullptr, 900, nullptr, &length); } },
      {"length",      [](const Handles&) { return jitgemm_gemm_plan(&problem, 900, nullptr, nullptr); }},
      {"text",
       [](const Handles&) {
         length = 10;
         return jitgemm_gemm_plan(&problem, 900, nullptr, &length);
       }                                                                                               },
      {"context",     [](const Handles&) { return jitgemm_gemm_compile(nullptr, &problem, 900); }      },
      {"problem",     [](const Handles& h) { return jitgemm_gemm_compile(h.context, nullptr, 900); }   },
      {"device",
       [](const Handles&) { return jitgemm_gemm_prepare(nullptr, &problem, &operation); }              },
      {"problem",
       [](const Handles& h) { return jitgemm_gemm_prepare(h.device, nullptr, &operation); }            },
      {"operation",
       [](const Handles& h) { return jitgemm_gemm_prepare(h.device, &problem, nullptr); }              },
      {"device",
       [](const Handles&) { return jitgemm_gemm_find(nullptr, &problem, nullptr, &operation); }        },
      {"problem",
       [](const Handles& h) { return jitgemm_gemm_find(h.device, nullptr, nullptr, &operation); }      },
      {"operation",
       [](const Handles& h) { return jitgemm_gemm_find(h.device, &problem, nullptr, nullptr); }        },
      {"operation",
       [](const Handles&) { return jitgemm_operation_workspace(nullptr, &number, &number); }           },
      {"bytes",
       [](const Handles& h) { return jitgemm_operation_workspace(h.exact, nullptr, &number); }         },
      {"alignment",
       [](const Handles& h) { return jitgemm_operation_workspace(h.exact, &number, nullptr); }         },
      {"operation",
       [](const Handles&) { return jitgemm_operation_describe(nullptr, nullptr, &length); }            },
      {"length",
       [](const Handles& h) { return jitgemm_operation_describe(h.exact, nullptr, nullptr); }          },
      {"operation",
       [](const Handles&) { return jitgemm_gemm_launch(nullptr, &arguments, nullptr); }                },
      {"arguments",
       [](const Handles& h) { return jitgemm_gemm_launch(h.exact, nullptr, nullptr); }                 },
      {"operation",   [](const Handles&) { return jitgemm_gemm_check_scales(nullptr, &arguments); }    },
      {"arguments",   [](const Handles& h) { return jitgemm_gemm_check_scales(h.exact, nullptr); }     },
  };
  int number_of_case = 0;
  for (const NullCase& row : cases) {
    const std::string message = std::string(row.parameter) + ": expected an address, found NULL";
    const std::string situation = "case " + std::to_string(number_of_case++);
    expect(row.call(handles), JITGEMM_STATUS_INVALID_ARGUMENT, message.c_str(), situation.c_str());
  }
}

TEST_F(BadInput, NullHandlesAreReleasedAndReadWithoutHarm) {
  jitgemm_context_release(nullptr);
  jitgemm_device_release(nullptr);
  jitgemm_buffer_release(nullptr);
  jitgemm_operation_release(nullptr);
  EXPECT_EQ(jitgemm_buffer_address(nullptr), nullptr);
  EXPECT_EQ(jitgemm_device_arch(nullptr), 0);
}

// ---- Buffers ----------------------------------------------------------------------------------

TEST_F(BadInput, BufferAccessBeyondTheEndIsRefused) {
  char bytes[128] = {};
  const struct {
    size_t offset;
    size_t bytes;
    const char* message;
  } cases[] = {
      {0,        101,      "bytes: 101 at offset 0 are beyond the buffer's 100"                 },
      {101,      0,        "bytes: 0 at offset 101 are beyond the buffer's 100"                 },
      {100,      1,        "bytes: 1 at offset 100 are beyond the buffer's 100"                 },
      {8,        SIZE_MAX, "bytes: 18446744073709551615 at offset 8 are beyond the buffer's 100"},
      {SIZE_MAX, 2,        "bytes: 2 at offset 18446744073709551615 are beyond the buffer's 100"},
  };
  for (const auto& row : cases) {
    expect(jitgemm_buffer_write(handles.buffer, row.offset, bytes, row.bytes),
           JITGEMM_STATUS_INVALID_ARGUMENT, row.message, "write");
    expect(jitgemm_buffer_read(handles.buffer, row.offset, bytes, row.bytes),
           JITGEMM_STATUS_INVALID_ARGUMENT, row.message, "read");
  }
  JITGEMM_ASSERT_OK(jitgemm_buffer_write(handles.buffer, 100, nullptr, 0));
}

TEST_F(BadInput, BufferThatNoHostHasIsOutOfMemory) {
  jitgemm_device* device = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_device_open(handles.context, "sim", 0, &device));
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    jitgemm_buffer* buffer = nullptr;
    const std::string message =
        "the host has no " + std::to_string(bytes) + " bytes for a simulated buffer";
    expect(jitgemm_buffer_create(device, bytes, &buffer), JITGEMM_STATUS_OUT_OF_MEMORY,
           message.c_str(), "sim");
    EXPECT_EQ(buffer, nullptr);
  }
  jitgemm_device_release(device);
}

// ---- Options ----------------------------------------------------------------------------------

TEST(BadOptions, AreRefused) {
  using O = jitgemm_context_options;
  const struct {
    const char* situation;
    void (*change)(O& o);
    const char* message;
  } cases[] = {
      {"cache_mode",                [](O& o) { o.cache_mode = "sometimes"; },
       "cache_mode: expected rw, ro or memory, found 'sometimes'"                                                       },
      {"log_level",                 [](O& o) { o.log_level = "loud"; },
       "log level: expected off, error, warning, info, debug, found 'loud'"                                             },
      {"sim_numerics",              [](O& o) { o.sim_numerics = "ampere"; },
       "sim_numerics: expected auto, exact, hopper or blackwell, found 'ampere'"                                        },
      {"sim_seed",                  [](O& o) { o.sim_seed = "12x"; },         "sim_seed: expected a number, found '12x'"},
      {"sim_threads",               [](O& o) { o.sim_threads = "-1"; },
       "sim_threads: expected a number, found '-1'"                                                                     },
      {"sim_sanitize",              [](O& o) { o.sim_sanitize = "yes"; },
       "sim_sanitize: expected 0, 1 or no-races, found 'yes'"                                                           },
      {"sim_sanitize out of range", [](O& o) { o.sim_sanitize = "2"; },
       "sim_sanitize: expected 0, 1 or no-races, found '2'"                                                             },
      {"struct_size",               [](O& o) { o.struct_size = 1; },
       "options.struct_size: expected 112 (use the _INIT macro), found 1"                                               },
  };
  for (const auto& row : cases) {
    jitgemm_context_options options = memory_options();
    row.change(options);
    jitgemm_context* context = nullptr;
    expect(jitgemm_context_create(&options, &context), JITGEMM_STATUS_INVALID_ARGUMENT, row.message,
           row.situation);
    EXPECT_EQ(context, nullptr) << row.situation;
  }
}

}  // namespace
}  // namespace jitgemm_abi
