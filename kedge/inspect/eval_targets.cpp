#include "kedge/inspect/eval_targets.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/model/files/model_folder.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

using Run = std::shared_ptr<const RunOnDisk>;

constexpr const char* kAdapterConfig = "adapter_config.json";

bool is_model(const Path& folder) { return is_file(folder / "config.json") || has_adapters(folder); }

EvalTarget model_target(const Path& folder, const Path& from) {
  const auto whole = [](const Path& path) { return fs::weakly_canonical(fs::absolute(path)); };
  return {.folder = whole(folder), .base = whole(base_of(folder, from))};
}

// One of a run that is not an online run.
EvalTarget model_of_run(const Path& folder, const Run& run, int64_t step) {
  EvalTarget target = model_target(folder, run->started_in);
  target.run = run;
  target.step = step;
  return target;
}

EvalTarget checkpoint_target(const Run& run, const Checkpoint& checkpoint) {
  verify_checkpoint(checkpoint);
  if (!trains_online(run->algorithm)) return model_of_run(checkpoint.folder / "model", run, checkpoint.step());
  return {.kind = PolicyKind::checkpoint, .folder = checkpoint.folder, .run = run, .step = checkpoint.step()};
}

// Of runs without rollouts, those that train a policy.
bool trains_from_data(std::string_view algorithm) { return algorithm == "sft" || algorithm == "dpo" || algorithm == "kto"; }

// They start from a model folder, which their settings name.
Path start_of_training(const RunOnDisk& run) {
  const std::string where = run.config.string(),
                    key = run.algorithm == "sft" ? "model.restore_from_path" : "pretrained_checkpoint.restore_from_path";
  const ConfigNode settings = parse_yaml(read_text(run.config), where);
  const ConfigNode* found = settings.find(key);
  check(found != nullptr && !found->is_null(), where, ": no ", key);
  const Path relative = run.started_in / found->text;
  return find_model_folder(is_folder(relative) ? relative.string() : found->text, str(where, ": ", key));
}

EvalTarget start_target(const Run& run) {
  if (!trains_online(run->algorithm)) return model_of_run(start_of_training(*run), run, 0);
  return {.kind = PolicyKind::start, .folder = run->folder, .run = run, .step = 0};
}

// A run's checkpoints are the policy of an online job, the model of training on data, or nothing that generates answers.
Run open_policy_run(const Path& folder) {
  auto run = std::make_shared<const RunOnDisk>(open_run(folder));
  check(trains_online(run->algorithm) || trains_from_data(run->algorithm), folder.string(), ": a run of kedge ", run->algorithm,
        ", which trains no policy; there are no answers to evaluate");
  return run;
}

std::string steps_text(const RunOnDisk& run) {
  std::string text;
  for (const Checkpoint& checkpoint : run.checkpoints) text += str(text.empty() ? "" : ", ", checkpoint.step());
  return text;
}

void add_run(std::vector<EvalTarget>& targets, const Run& run, const std::string& given, const StepChoice& choice) {
  check(!run->checkpoints.empty(), given, ": has no complete checkpoint yet (exp_manager.checkpoint_callback_params says which are kept)");
  for (const int64_t step : choice.steps) {
    const bool there = step == 0 || std::any_of(run->checkpoints.begin(), run->checkpoints.end(),
                                                [&](const Checkpoint& one) { return one.step() == step; });
    check(there, given, ": no checkpoint of step ", step, "; there are ", steps_text(*run));
  }
  targets.push_back(start_target(run));
  for (const Checkpoint& checkpoint : run->checkpoints) {
    const int64_t step = checkpoint.step();
    const bool listed = choice.steps.empty() || std::find(choice.steps.begin(), choice.steps.end(), step) != choice.steps.end();
    if (listed && (choice.every == 0 || step % choice.every == 0)) targets.push_back(checkpoint_target(run, checkpoint));
  }
}

// Runs seen before, so that each is opened once.
class Runs {
 public:
  Run open(const Path& folder) {
    const Path whole = fs::weakly_canonical(folder);
    for (const Run& run : runs_)
      if (run->folder == whole) return run;
    return runs_.emplace_back(open_policy_run(folder));
  }

 private:
  std::vector<Run> runs_;
};

bool same(const EvalTarget& a, const EvalTarget& b) { return a.kind == b.kind && a.folder == b.folder; }

// A model inside a run's folder, by what it is there: "stories model", "stories 30 model".
std::string label_in(const RunOnDisk& run, const Path& model) {
  const bool of_checkpoint = is_file(model.parent_path() / "meta.json");
  const std::string step = of_checkpoint ? str(" ", read_checkpoint(model.parent_path()).step()) : "";
  return str(run.folder.filename().string(), step, " ", model.filename().string());
}

// The shortest distinct names. `labels`: as they were given.
void name_targets(std::vector<EvalTarget>& targets, const std::vector<std::string>& labels) {
  bool one_run = true, names_differ = true;
  std::map<Path, Run> named;  // by the name of its folder
  for (const EvalTarget& target : targets) {
    one_run = one_run && target.step && target.run == targets.front().run;
    if (target.run) names_differ = names_differ && named.emplace(target.run->folder.filename(), target.run).first->second == target.run;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    EvalTarget& target = targets[i];
    if (!target.step) {
      target.name = labels[i];
    } else if (one_run) {
      target.name = std::to_string(*target.step);
    } else {
      target.name = str(names_differ ? target.run->folder.filename().string() : target.run->folder.string(), " ", *target.step);
    }
  }
}

}  // namespace

std::vector<int64_t> parse_whole_numbers(const std::string& text, const std::string& flag) {
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    check(error == std::errc() && number >= 0 && (stop == end || *stop == ','), flag, ": expected integers separated by commas, found \"",
          text, "\"");
    numbers.push_back(number);
    if (stop == end) return numbers;
    at = stop + 1;
  }
}

bool has_adapters(const Path& folder) { return is_file(folder / kAdapterConfig); }

Path base_of(const Path& folder, const Path& from) {
  if (!has_adapters(folder)) return folder;
  const Path file = folder / kAdapterConfig;
  const std::string where = file.string();
  const std::string base = Json::parse(read_text(file), where).at("base_model_name_or_path", where).as_text(where);
  const Path relative = from / base;
  return find_model_folder(is_folder(relative) ? relative.string() : base, where + ": base_model_name_or_path");
}

std::optional<Path> run_around(const Path& folder) {
  Path place = fs::weakly_canonical(folder);
  constexpr int kFoldersAbove = 4;  // RUN, RUN/model, RUN/checkpoints/NAME and RUN/checkpoints/NAME/model
  for (int i = 0; i < kFoldersAbove && !place.empty(); ++i, place = place.parent_path())
    if (is_run(place)) return place;
  return std::nullopt;
}

std::vector<EvalTarget> find_targets(const std::vector<std::string>& given, const StepChoice& choice) {
  Runs runs;
  std::vector<EvalTarget> all;
  std::vector<std::string> all_labels;
  for (const std::string& text : given) {
    std::vector<EvalTarget> found;
    const Path folder = text;
    const std::optional<Path> around = is_folder(folder) ? run_around(folder) : std::nullopt;
    if (around && is_run(folder)) {
      add_run(found, runs.open(folder), text, choice);
    } else if (around && is_file(folder / "meta.json")) {
      const Run run = runs.open(*around);
      found = {start_target(run), checkpoint_target(run, read_checkpoint(fs::weakly_canonical(folder)))};
    } else {
      const bool here = is_folder(folder);
      check(!here || is_model(folder), text, ": neither the folder of a run, nor a checkpoint of one, nor a model folder");
      const Run run = around ? runs.open(*around) : nullptr;
      const Path model = here && has_adapters(folder) ? folder : find_model_folder(text, "kedge eval");
      found = {model_target(model, run ? run->started_in : fs::current_path())};
      found.front().run = run;
      if (run) found.insert(found.begin(), start_target(run));
    }
    for (EvalTarget& target : found)
      if (std::none_of(all.begin(), all.end(), [&](const EvalTarget& other) { return same(other, target); })) {
        const bool inside = target.run && !target.step;
        all_labels.push_back(inside ? label_in(*target.run, target.folder) : text);
        all.push_back(std::move(target));
      }
  }
  name_targets(all, all_labels);
  return all;
}

}  // namespace kedge
