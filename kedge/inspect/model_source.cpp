#include "kedge/inspect/model_source.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/inspect/run_overview.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

std::string steps_text(const std::vector<Checkpoint>& checkpoints) {
  std::string text;
  for (const Checkpoint& one : checkpoints) text += str(text.empty() ? "" : ", ", one.step());
  return text.empty() ? "no complete ones" : text;
}

ModelSource source_of(const Checkpoint& checkpoint, const Path& started_in, const std::string& rank) {
  verify_checkpoint(checkpoint);
  check(is_folder(checkpoint.folder / "model"), checkpoint.folder.string(), ": holds no model/");
  return {checkpoint.folder / "model", started_in, str("the checkpoint of step ", checkpoint.step(), rank), checkpoint.step()};
}

// The model of a complete run is final, unless the run was resumed since.
std::optional<ModelSource> finished_model(const RunOnDisk& run) {
  const Path model = run.folder / "model";
  const RunEnd end = end_of(run, run.checkpoints.empty() ? 0 : run.checkpoints.back().step(), false);
  if (!is_folder(model) || end.status != "complete") return std::nullopt;
  return ModelSource{model, run.started_in, "the final model of the complete run", end.model_step.value_or(end.step)};
}

ModelSource find_in_run(const RunOnDisk& run, const ModelWish& wish) {
  const std::string name = run.folder.string();
  if (wish.step) {
    const auto found =
        std::find_if(run.checkpoints.begin(), run.checkpoints.end(), [&](const Checkpoint& one) { return one.step() == *wish.step; });
    check(found != run.checkpoints.end(), name, ": no checkpoint of step ", *wish.step, "; there are ", steps_text(run.checkpoints));
    return source_of(*found, run.started_in, "");
  }
  const std::optional<ModelSource> model = finished_model(run);
  if (model && !wish.best && !wish.last) return *model;
  check(!run.checkpoints.empty(), name,
        model ? str(": no complete checkpoint; without ", wish.best ? "--best" : "--last", " the final model is taken")
              : ": the run has written no model and no complete checkpoint");
  const CheckpointConfig config = ranking_of(read_settings(run));
  const std::vector<Checkpoint> ranked = rank_checkpoints(run.checkpoints, config);
  if (!wish.last && !ranked.empty()) return source_of(ranked.front(), run.started_in, str(", the best by ", config.monitor));
  check(!wish.best, name, ": no checkpoint has ", config.monitor, ", by which the best would be chosen");
  return source_of(run.checkpoints.back(), run.started_in, ", the newest");
}

}  // namespace

bool is_checkpoint(const Path& folder) { return is_file(folder / "meta.json") && is_folder(folder / "state"); }

std::optional<Path> run_of_checkpoint(const Path& checkpoint) {
  const Path run = fs::weakly_canonical(checkpoint).parent_path().parent_path();
  return is_run(run) ? std::optional(run) : std::nullopt;
}

std::optional<ModelSource> find_model_source(const Path& folder, const ModelWish& wish) {
  const int num_wishes = int{wish.step.has_value()} + int{wish.best} + int{wish.last};
  check(num_wishes <= 1, "--step, --best and --last name different checkpoints: give one of them");
  if (is_run(folder)) return find_in_run(open_run(folder), wish);
  check(num_wishes == 0, "--step, --best and --last: ", folder.string(), " is not the folder of a run");
  if (!is_checkpoint(folder)) return std::nullopt;
  const std::optional<Path> run = run_of_checkpoint(folder);
  return source_of(read_checkpoint(folder), run ? open_run(*run).started_in : fs::current_path(), "");
}

}  // namespace kedge
