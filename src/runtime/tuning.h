// SPDX-License-Identifier: Apache-2.0
// Where measured plans come from: what the library ships, then the file that the settings name.
// Knows files and settings, and nothing of how plans are measured.
#pragma once

#include "plan/tuning_database.h"
#include "runtime/options.h"
#include "support/log.h"
#include "support/result.h"

#include <string>

namespace jitgemm {

// The file of the settings: given, or tuning.json in the cache folder; empty if there is none.
std::string tuning_path(const Settings& settings);

// What the library ships, alone.
Result<TuningDatabase> embedded_tuning();

// Both, the later measurement of a row winning. A file that is not there holds nothing. A file that
// was named and cannot be read is an error; the one in the cache folder is then left out, with a
// line of the log.
Result<TuningDatabase> load_tuning(const Settings& settings, const Logger& log);

// The same for looking problems up: what the library ships is read as far as it is asked for.
Result<TuningDatabase> open_tuning(const Settings& settings, const Logger& log);

// Puts the rows into the file, which may hold others, in one step. Writers wait for one another, by
// a lock on <path>.lock, which stays; IO_ERROR after 20 s.
Status add_to_tuning_file(const std::string& path, const TuningDatabase& rows);

}  // namespace jitgemm
