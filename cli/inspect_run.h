#pragma once
// kedge inspect for the folder of a run and for a checkpoint. Both print; the result is the exit code.
#include "kedge/core/files.h"

namespace kedge::cli {

struct InspectLook {
  bool json = false;
  bool verify = false;   // check every byte of checkpoints against its hash, and print the result
  bool command = false;  // of a run: only the command line that made it
};

// `name` is the folder as the user wrote it.
int inspect_run(const std::string& name, const InspectLook& look);
int inspect_checkpoint(const std::string& name, const InspectLook& look);

}  // namespace kedge::cli
