#include "cli/output_folder.h"

#include <vector>

#include "kedge/core/error.h"
#include "kedge/model/files/model_folder.h"

namespace kedge::cli {

namespace fs = std::filesystem;

namespace {

void remove_file(const Path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) throw Error(str(file.string(), ": cannot be removed: ", error.message()));
}

}  // namespace

void check_out_folder(const Path& out, bool overwrite) {
  check(!out.empty(), "OUT: expected the name of a folder");
  std::error_code error;
  if (!fs::exists(out, error)) return;
  check(is_folder(out), out.string(), ": is a file where a folder is to be written");
  const bool is_empty = fs::is_empty(out, error);
  check(!error, out.string(), ": cannot be read: ", error.message());
  check(overwrite || is_empty, out.string(), ": is not empty; --overwrite replaces the model in it");
}

bool is_same_folder(const Path& a, const Path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

void remove_model_files(const Path& folder) {
  if (!is_folder(folder)) return;
  std::vector<Path> files = {"config.json", "adapter_config.json", "model.safetensors.index.json"};
  for (const Path& file : companion_files(folder)) files.push_back(file);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().filename());
  for (const Path& file : files) remove_file(folder / file);
}

}  // namespace kedge::cli
