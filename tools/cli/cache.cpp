// SPDX-License-Identifier: Apache-2.0
// jitgemm cache list|stat|clear: what lies in the folder of compiled kernels.
#include "cli.h"
#include "json.h"
#include "support/digest.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

Status list(Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const std::vector<CacheListing> entries, context->cache().list());
  Json json = document("cache list");
  json["entries"] = Json::array();
  bool corrupt = false;
  for (const CacheListing& entry : entries) {
    std::string target = "?";
    std::string name = "?";
    Json row = {
        {"key",      entry.hex            },
        {"bytes",    entry.bytes          },
        {"modified", entry.modified_unix_s}
    };
    if (entry.head) {
      if (const auto fields = read_key_fields(entry.head->key)) {
        Json key = Json::object();
        for (const KeyField& field : *fields) {
          if (field.tag == "target") target = field.value;
          if (field.tag == "template") name = field.value;
          key[field.tag] = field.value;
        }
        row["fields"] = key;
      }
      row["registers"] = entry.head->metadata.registers;
      row["compile_ms"] = entry.head->metadata.compile_ms;
    } else {
      corrupt = true;
      row["problem"] = entry.problem;
    }
    json["entries"].push_back(row);
    if (!cli.flags.json) {
      fmt::print("{}  {:>8}  {:<8}  {}\n", entry.hex.substr(0, 16), entry.bytes, target,
                 entry.head ? name : entry.problem);
    }
  }
  if (cli.flags.json) print(json);
  if (corrupt) cli.exit_code = kExitCorrupt;
  return ok_status();
}

Status stat(Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const CacheStat found, context->cache().stat());
  static constexpr const char* kModes[] = {"memory only", "read-only", "read-write"};
  const char* mode = kModes[static_cast<int>(found.mode)];
  if (cli.flags.json) {
    Json json = document("cache stat");
    json.update({
        {"mode",       mode            },
        {"folder",     found.root      },
        {"entries",    found.entries   },
        {"bytes",      found.bytes     },
        {"temp_files", found.temp_files}
    });
    print(json);
  } else {
    fmt::print("folder     {}\nmode       {}\nentries    {}\nbytes      {}\ntemporary  {}\n",
               found.root, mode, found.entries, found.bytes, found.temp_files);
  }
  return ok_status();
}

Status clear(Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const RemovedFiles removed, context->cache().clear());
  if (cli.flags.json) {
    Json json = document("cache clear");
    json.update({
        {"entries", removed.entries},
        {"bytes",   removed.bytes  }
    });
    print(json);
  } else {
    fmt::print("removed {} entries, {} bytes\n", removed.entries, removed.bytes);
  }
  return ok_status();
}

}  // namespace

void add_cache_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("cache", "Look at or clear the folder of compiled kernels");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Status (*body)(Cli&)) {
    command->add_subcommand(name, help)->callback([body, &cli] {
      const Status status = body(cli);
      if (!status.ok()) cli.finish(status);
    });
  };
  add("list", "One line an entry", list);
  add("stat", "How much there is", stat);
  add("clear", "Remove every entry", clear);
}

}  // namespace jitgemm::cli
