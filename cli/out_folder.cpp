#include "cli/out_folder.h"

#include <vector>

#include "kedge/core/error.h"
#include "kedge/model/model_folder.h"

namespace kedge::cli {

namespace fs = std::filesystem;

void check_out_folder(const Path& out, bool overwrite) {
  check(!out.empty(), "OUT: wants the name of a folder");
  if (!fs::exists(out)) return;
  check(fs::is_directory(out), out.string(), ": is a file where a folder is to be written");
  check(overwrite || fs::is_empty(out), out.string(), ": is not empty; --overwrite replaces the model in it");
}

bool is_same_folder(const Path& a, const Path& b) { return fs::exists(a) && fs::exists(b) && fs::equivalent(a, b); }

void remove_model_files(const Path& folder) {
  if (!is_folder(folder)) return;
  std::vector<Path> files = {"config.json", "adapter_config.json", "model.safetensors.index.json"};
  for (const Path& file : companion_files(folder)) files.push_back(file);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().filename());
  for (const Path& file : files) fs::remove(folder / file);
}

}  // namespace kedge::cli
