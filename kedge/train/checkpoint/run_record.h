#pragma once
// The provenance of a run: program, machine, command line, and input files, each with a hash. Independent of training.
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

namespace kedge {

// 16 digits. Of a file above 64 MiB only 64 pieces of 1 MiB each, spread evenly, and its size are read: enough to distinguish files, and
// fast.
[[nodiscard]] std::string file_hash(const Path& file);

// The unique id of a run: created once, "NAME-1f0c...", after its folder's name, and kept in run.json over restarts.
// A folder without a run, or with one from before there were ids, gets a new one, which run_record() keeps.
[[nodiscard]] std::string run_id(const Path& folder);

struct RunFacts {
  std::string id = {};  // run_id()
  std::vector<std::string> command_line = {};
  std::string torch_version = {}, device = {};
  int64_t num_threads = 1, num_ranks = 1;
  std::vector<Path> model_files = {}, data_files = {};
  std::string parent = {};  // the checkpoint it was forked from, in this start or before; empty: none
  // What is trained.
  int64_t max_steps = 0;  // 0: as many as requested
  int64_t num_trained_parameters = 0;
  std::string dtype = {};  // of the network
};

// One start of a run, with the time and this machine.
[[nodiscard]] Json run_record(const RunFacts& facts);

// Adds the record to FOLDER/run.json, a list with an entry for every start.
void add_run_record(const Path& folder, const Json& record);
[[nodiscard]] int64_t num_starts(const Path& folder);  // this many entries
[[nodiscard]] Path parent_of(const Path& folder);      // that of the newest entry

}  // namespace kedge
