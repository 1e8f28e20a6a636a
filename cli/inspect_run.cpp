#include "cli/inspect_run.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/inspect/model_source.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/safetensors.h"

#include "cli/text/json_lines.h"
#include "cli/text/run_overview_text.h"

namespace kedge::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameWidth = 13;

bool output_is_utf8() { return is_utf8_locale(std::getenv("LC_ALL"), std::getenv("LC_CTYPE"), std::getenv("LANG")); }

// The result of checking every byte of a checkpoint's folder.
struct Verdict {
  Path folder;
  std::optional<Checkpoint> checkpoint = {};  // none: incomplete
  std::vector<std::string> damage = {};

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& one : damage) all += (all.empty() ? "" : "; ") + one;
    if (!damage.empty()) return (checkpoint ? "DAMAGED: " : "INCOMPLETE: ") + all;
    return checkpoint->has_hashes() ? "every byte as it was saved" : "complete by file sizes; it was saved without hashes";
  }
};

// Are all files of the one hard links to the other's?
bool are_twins(const Checkpoint& a, const Checkpoint& b) {
  return std::equal(
      a.files.begin(), a.files.end(), b.files.begin(), b.files.end(), [&](const CheckpointFile& one, const CheckpointFile& other) {
        std::error_code error;
        return one.name == other.name && one.hash == other.hash && fs::equivalent(a.folder / one.name, b.folder / other.name, error);
      });
}

Verdict verdict_on(const Path& folder, const std::vector<Verdict>& before) {
  Verdict verdict{.folder = folder};
  try {
    verdict.checkpoint = read_checkpoint(folder);
  } catch (const UsageError& error) {
    std::string what = error.what();
    if (const std::string opening = folder.string() + ": "; what.starts_with(opening)) what.erase(0, opening.size());
    verdict.damage.push_back(what);
    return verdict;
  }
  for (const Verdict& other : before)
    if (other.checkpoint && are_twins(*verdict.checkpoint, *other.checkpoint)) {
      verdict.damage = other.damage;
      return verdict;
    }
  verdict.damage = find_damage(*verdict.checkpoint);
  return verdict;
}

int print_verdicts(const std::vector<Verdict>& verdicts, bool as_json) {
  bool is_damaged = false;
  for (const Verdict& verdict : verdicts) {
    is_damaged = is_damaged || !verdict.damage.empty();
    Json::Array damage;
    for (const std::string& one : verdict.damage) damage.emplace_back(one);
    if (as_json) {
      print_json_line(Json::Object{{"checkpoint", verdict.folder.string()},
                                   {"step", verdict.checkpoint ? Json(verdict.checkpoint->step()) : Json()},
                                   {"whole", verdict.checkpoint.has_value()},
                                   {"hashes", verdict.checkpoint && verdict.checkpoint->has_hashes()},
                                   {"damage", std::move(damage)}});
    } else {
      print_text(str(verdict.folder.string(), "\n  ", verdict.text(), "\n"));
    }
  }
  if (!as_json && verdicts.empty()) print_text("no checkpoints\n");
  return is_damaged ? kExitWorld : kExitOk;
}

// Its own, and those of a critic in its process.
std::vector<Verdict> verify_run(const Path& run) {
  std::set<Path> folders;
  for (const Path& all : {run / "checkpoints", run / "critic" / "checkpoints"}) {
    if (!is_folder(all)) continue;
    for (const auto& entry : fs::directory_iterator(all))
      if (entry.is_directory() && !entry.path().filename().string().starts_with('.')) folders.insert(entry.path());
  }
  std::vector<Verdict> verdicts;
  for (const Path& folder : folders) verdicts.push_back(verdict_on(folder, verdicts));
  return verdicts;
}

std::string numbers_text(const std::map<std::string, int64_t>& numbers) {
  std::string text;
  for (const auto& [name, value] : numbers)
    if (name != "step") text += str(text.empty() ? "" : ", ", name, " ", value);
  return text;
}

// Of many metrics those of validation, or else those of training.
std::string metrics_text(const std::map<std::string, double>& metrics) {
  for (const std::string_view prefix : {"val_", "train_"}) {
    std::string text;
    for (const auto& [name, value] : metrics)
      if (name.starts_with(prefix)) text += str(text.empty() ? "" : ", ", name, " ", format_number(value));
    if (!text.empty()) return text;
  }
  return "";
}

struct StateTensor {
  std::string name, type;
  std::vector<int64_t> shape;
};

std::vector<StateTensor> state_tensors(const Path& checkpoint) {
  std::vector<StateTensor> tensors;
  const Path file = checkpoint / "state" / "state.safetensors";
  if (!is_file(file)) return tensors;
  const SafetensorsFile opened(file);
  for (const TensorEntry& entry : opened.entries())
    tensors.push_back({entry.name, entry.type ? std::string(name_of(*entry.type)) : entry.type_name, entry.shape});
  return tensors;
}

std::string text_of(const StateTensor& tensor) {
  std::string shape;
  for (const int64_t extent : tensor.shape) shape += (shape.empty() ? "" : " x ") + with_commas(extent);
  return str(tensor.name, " ", tensor.type, " ", shape);
}

Json json_of(const Checkpoint& checkpoint, const std::optional<NetworkFacts>& network, const std::optional<Path>& run) {
  Json::Object counters, metrics;
  for (const auto& [name, value] : checkpoint.meta.counters) counters.emplace_back(name, value);
  for (const auto& [name, value] : checkpoint.meta.metrics) metrics.emplace_back(name, value);
  Json::Array files, tensors;
  for (const CheckpointFile& file : checkpoint.files)
    files.push_back(Json::Object{{"file", file.name}, {"bytes", file.bytes}, {"hash", file.hash.empty() ? Json() : Json(file.hash)}});
  for (const StateTensor& tensor : state_tensors(checkpoint.folder))
    tensors.push_back(
        Json::Object{{"name", tensor.name}, {"type", tensor.type}, {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())}});
  return Json::Object{{"folder", checkpoint.folder.string()},
                      {"run", run ? Json(run->string()) : Json()},
                      {"step", checkpoint.step()},
                      {"counters", std::move(counters)},
                      {"metrics", std::move(metrics)},
                      {"network", network ? network_json(*network) : Json()},
                      {"state", std::move(tensors)},
                      {"files", std::move(files)},
                      {"record", checkpoint.meta.record}};
}

// What it was trained with, as stored in the checkpoint.
std::string settings_text(const Json& record) {
  const Json* identity = record.find("identity");
  if (identity == nullptr) return "";
  std::string text;
  for (const auto& [key, label] : {std::pair{"model.optim.lr", "lr"},
                                   {"model.seed", "seed"},
                                   {"model.global_batch_size", "batch"},
                                   {"model.data.train_ds.global_batch_size", "batch"},
                                   {"trainer.precision", "precision"},
                                   {"ranks", "ranks"}})
    if (const std::string value = setting_text(*identity, key); !value.empty()) text += str(text.empty() ? "" : ", ", label, " ", value);
  return text;
}

std::string checkpoint_text(const Checkpoint& checkpoint, const std::optional<NetworkFacts>& network, const std::optional<Path>& run,
                            const PageLook& look) {
  FactPage page(kNameWidth, look);
  page.raw(checkpoint.folder.string());
  page.add("step", str(checkpoint.step()));
  page.add("of", run ? str("kedge ", open_run(*run).algorithm, ", ", run->string()) : "unknown: it is not in a run's folder");
  page.add("network", network ? network_text(*network) : "cannot be read");
  page.add("trained", network && network->rank > 0 ? "adapters on " + network->base : "all weights");
  page.add("model dtype", network ? network->dtype : "");
  page.add("settings", settings_text(checkpoint.meta.record));
  page.add("counters", numbers_text(checkpoint.meta.counters));
  page.add("metrics", metrics_text(checkpoint.meta.metrics));
  const std::vector<StateTensor> tensors = state_tensors(checkpoint.folder);
  for (size_t i = 0; i < tensors.size(); ++i) page.add(i == 0 ? "state" : "", text_of(tensors[i]));
  int64_t bytes = 0;
  for (size_t i = 0; i < checkpoint.files.size(); ++i) {
    page.add(i == 0 ? "files" : "", str(checkpoint.files[i].name, "  ", format_bytes(checkpoint.files[i].bytes)));
    bytes += checkpoint.files[i].bytes;
  }
  page.add("size", format_bytes(bytes));
  page.add("complete", checkpoint.has_hashes() ? "yes, by the sizes of its files; --verify reads every byte"
                                               : "yes, by the sizes of its files; it was saved without hashes");
  return page.text();
}

std::optional<NetworkFacts> network_of(const Path& checkpoint, const std::optional<Path>& run) {
  try {
    return read_network_facts(checkpoint / "model", run ? open_run(*run).started_in : fs::current_path());
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

}  // namespace

int inspect_run(const std::string& name, const InspectLook& look) {
  if (look.verify) return print_verdicts(verify_run(name), look.json);
  const RunOverview overview = read_run_story(name);
  if (look.command) {
    print_text(command_of(overview) + "\n");
  } else if (look.json) {
    print_json_line(story_json(overview));
  } else {
    print_text(story_text(overview, name, look_of_output(false), output_is_utf8()));
  }
  return kExitOk;
}

int inspect_checkpoint(const std::string& name, const InspectLook& look) {
  if (look.verify) return print_verdicts({verdict_on(name, {})}, look.json);
  const Checkpoint checkpoint = read_checkpoint(name);
  const std::optional<Path> run = run_of_checkpoint(name);
  const std::optional<NetworkFacts> network = network_of(name, run);
  if (look.json) {
    print_json_line(json_of(checkpoint, network, run));
  } else {
    print_text(checkpoint_text(checkpoint, network, run, look_of_output(false)));
  }
  return kExitOk;
}

}  // namespace kedge::cli
