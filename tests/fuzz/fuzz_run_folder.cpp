// Bytes as the files of a run's folder, read as kedge dashboard, inspect, report and eval read them. What is asked of one run alone may be
// refused with a UsageError; the list of runs with their numbers, charts and notes, which the dashboard shows of all runs at once, is there
// whatever one of them holds. JSON that is answered is JSON.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kedge/core/error.h"
#include "kedge/inspect/eval_targets.h"
#include "kedge/inspect/model_source.h"
#include "kedge/inspect/server_health.h"

#include "cli/dashboard/dashboard_answers.h"
#include "cli/dashboard/dashboard_numbers.h"
#include "cli/dashboard/dashboard_runs.h"
#include "cli/report/report_answers.h"
#include "cli/report/report_page.h"
#include "cli/text/run_overview_text.h"
#include "tests/fuzz/input_folder.h"

namespace {

using namespace kedge;
using kedge::testing::InputFolder;
using kedge::testing::read_or_refused;

void print(const Json& json) { static_cast<void>(Json::parse(json.dump_compact())); }

// As /api/... answers of all runs.
void show_dashboard(const Path& folder) {
  const cli::DashboardRuns runs({folder.string()});
  for (const auto& run : runs.all()) {
    print(run->summary());
    print(run->notes());
    print(cli::charts_json({run.get()}));
    for (const bool of_main : {true, false}) print(cli::series_json(*run, of_main, {.max_points = 12, .smoothing = 0.5}));
    print(cli::timing_json(*run, 7));
    print(cli::settings_json({run.get()}));
    print(cli::recorded_json(run->folder(), run->settings()));
    for (const RunServer& server : servers_of(run->settings(), run->on_disk().algorithm, run->on_disk().started_in))
      static_cast<void>(why_not_ask(server, run->folder(), false) + server.address());
    for (const auto& key : enum_names(cli::SampleKey{})) print(cli::samples_json(run->folder(), {.key = key.value, .search = "a"}));
    read_or_refused([&] { print(cli::answers_json(run->folder(), std::nullopt, {.search = "A"})); });
    read_or_refused([&] { print(cli::pairs_json(run->folder(), run->folder(), {})); });
  }
}

void inspect(const Path& folder) {
  const RunOverview overview = read_run_story(folder);
  read_or_refused([&] { static_cast<void>(cli::story_text(overview, "run", {.width = 60}, true)); });
  read_or_refused([&] { print(cli::story_json(overview)); });
  read_or_refused([&] { static_cast<void>(command_of(overview)); });
  read_or_refused([&] {
    cli::ReportRun run{.name = "run", .overview = overview, .settings_text = read_text(overview.run.config)};
    run.answers_html = cli::samples_html({});
    static_cast<void>(cli::report_html({.title = "run", .made = "now", .runs = {run}, .settings = {}}));
  });
}

void inspect_checkpoint(const Path& folder) {
  const Checkpoint checkpoint = read_checkpoint(folder);
  static_cast<void>(find_damage(checkpoint));
  static_cast<void>(read_network_facts(folder / "model", folder));
}

void choose_models(const Path& folder) {
  read_or_refused([&] { static_cast<void>(find_targets({folder.string()}, {})); });
  read_or_refused([&] { static_cast<void>(find_targets({folder.string()}, {.steps = {0, 1}, .every = 1})); });
  read_or_refused([&] { static_cast<void>(find_targets({(folder / "checkpoints" / "a").string()}, {})); });
  read_or_refused([&] { static_cast<void>(find_targets({(folder / "model").string()}, {})); });
  for (const ModelWish& wish : {ModelWish{}, {.step = 1}, {.best = true}, {.last = true}})
    read_or_refused([&] { static_cast<void>(find_model_source(folder, wish)); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static InputFolder folder({"config.yaml", "run.json", "metrics.jsonl", "samples.jsonl", "summary.json", "log.txt",
                             "rollouts/step-1.jsonl", "rollouts/step-2.jsonl", "model/config.json", "model/adapter_config.json",
                             "model/adapter_model.safetensors", "checkpoints/a/meta.json", "checkpoints/a/state.bin",
                             "checkpoints/a/model/config.json"});
  folder.write(data, size);
  if (!is_run(folder.path())) return 0;
  show_dashboard(folder.path());
  read_or_refused([] { inspect(folder.path()); });
  read_or_refused([] { inspect_checkpoint(folder.path() / "checkpoints" / "a"); });
  read_or_refused([] { static_cast<void>(read_network_facts(folder.path() / "model", folder.path())); });
  choose_models(folder.path());
  return 0;
}
