#include "kedge/model/files/model_folder.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include "kedge/core/content_hash.h"
#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/model/files/run_summary.h"
#include "kedge/model/files/weight_files.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhatItHolds =
    "a model folder holds config.json, model.safetensors (or shards with model.safetensors.index.json) and the tokenizer's files";
constexpr std::string_view kFromNemo =
    "a NeMo checkpoint is not read; NeMo itself writes it as a Hugging Face folder: `nemo llm export ... target=hf`, or for NeMo 1 "
    "the convert_*_nemo_to_hf.py script of the model's family in scripts/checkpoint_converters";

constexpr std::string_view kCompanions[] = {"added_tokens.json",
                                            "chat_template.jinja",
                                            "chat_template.json",
                                            "encoder.json",
                                            "generation_config.json",
                                            "merges.txt",
                                            "sentencepiece.bpe.model",
                                            "special_tokens_map.json",
                                            "spiece.model",
                                            "tokenizer.json",
                                            "tokenizer.model",
                                            "tokenizer_config.json",
                                            "vocab.bpe",
                                            "vocab.json",
                                            "vocab.txt"};
constexpr const char* kMoreTemplates = "additional_chat_templates";

std::optional<Path> folder_from_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  const char* home = std::getenv("HOME");
  if (text.starts_with("~/") && home != nullptr) return Path(home) / text.substr(2);
  return Path(text);
}

// As the huggingface_hub package finds it.
Path hub_cache() {
  if (const auto cache = folder_from_environment("HF_HUB_CACHE")) return *cache;
  if (const auto home = folder_from_environment("HF_HOME")) return *home / "hub";
  if (const auto cache = folder_from_environment("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  return folder_from_environment("HOME").value_or(".") / ".cache" / "huggingface" / "hub";
}

// "Org/Name" or "Name", as the hub allows them; nothing that could lead out of the cache.
bool is_hub_name(std::string_view name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed) && std::count(name.begin(), name.end(), '/') <= 1 &&
         !name.starts_with('/') && !name.ends_with('/') && !name.starts_with('.') && name.find("/.") == std::string_view::npos;
}

// The snapshot that `main` named when it was last fetched; none if the cache has no such model.
std::optional<Path> find_in_cache(const Path& model, std::string_view where) {
  if (!is_folder(model)) return std::nullopt;
  const Path ref = model / "refs" / "main";
  check(is_file(ref), where, ": ", model.string(), " has no refs/main: an incomplete download?");
  std::string commit = read_text(ref);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0) commit.pop_back();
  const bool is_hash = !commit.empty() && std::all_of(commit.begin(), commit.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  check(is_hash, ref.string(), ": expected the name of a snapshot, found \"", commit, "\"");
  const Path snapshot = model / "snapshots" / commit;
  check(is_folder(snapshot), where, ": ", ref.string(), " names the snapshot ", commit, ", which does not exist: an incomplete download?");
  return snapshot;
}

[[noreturn]] void refuse_file(const Path& file, std::string_view where) {
  const std::string extension = file.extension().string();
  std::string why = str("is a file; ", kWhatItHolds);
  if (extension == ".nemo") why = kFromNemo;
  if (extension == ".gguf") why = "GGUF files are not read; name the Hugging Face folder that it was made from";
  if (is_pickled(file)) why = kPickledRefusal;
  throw UsageError(str(where, ": ", file.string(), ": ", why));
}

bool is_nemo_folder(const Path& folder) {
  const auto holds = [&](const char* name) { return is_folder(folder / name); };
  return (is_file(folder / "model_config.yaml") && (holds("model_weights") || holds("weights"))) || (holds("context") && holds("weights"));
}

// A checkpoint's record has the hashes of its files, unless it is from before there were hashes. The model's files are read once in a
// process, however often it is named.
void check_saved_bytes(const Path& checkpoint, const std::string& here) {
  static std::mutex mutex;
  static std::map<Path, Json> known;  // hashes that were compared
  const Path record = checkpoint / "meta.json";
  if (!is_file(record)) return;
  const Json json = Json::parse(read_text(record), record.string());
  const Json* hashes = json.find("hashes");
  if (hashes == nullptr) return;
  const Path place = fs::weakly_canonical(checkpoint);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(place); found != known.end() && found->second == *hashes) return;
  std::string damage;
  for (const auto& [name, hash] : hashes->as_object(record.string())) {
    if (!name.starts_with("model/")) continue;
    const std::string& saved = hash.as_text(record.string());
    const std::string one = is_file(checkpoint / name) ? file_damage(checkpoint, name, saved) : name + " is missing";
    if (!one.empty()) damage += (damage.empty() ? "" : "; ") + one;
  }
  check(damage.empty(), here, damage);
  known.insert_or_assign(place, *hashes);
}

// A complete run that goes on keeps its old model until it is complete again.
bool went_on(const Path& run) {
  const Path starts = run / "run.json";
  if (!is_file(starts)) return false;
  const auto summary = read_run_summary(run, Json::parse(read_text(starts), starts.string()));
  return summary && (summary->is_old || !summary->is_complete());
}

// Runs and checkpoints keep their model in a folder of that name.
std::optional<Path> model_inside(const Path& folder, const std::string& here) {
  const Path model = folder / "model";
  const std::string instead = str("give one of its checkpoints, ", (folder / "checkpoints" / "NAME").string(),
                                  ", or take the best or newest: kedge export ", folder.string(), " OUT");
  if (is_file(model / "config.json")) {
    check_saved_bytes(folder, here);
    check(!went_on(folder), here, "a run that went on after it wrote its model, and is not complete; ", instead, ". The earlier model is ",
          model.string());
    return model;
  }
  check(!is_file(model / "adapter_config.json"), here, "its model/ holds adapters, which need their base model: give that here and ",
        model.string(), " as the adapter (--adapter, model.peft.restore_from_path), or merge them into a complete model: kedge export ",
        folder.string(), " OUT --merge");
  check(!is_folder(folder / "checkpoints"), here, "a run that has not written a model yet; ", instead);
  return std::nullopt;
}

Path checked_model_folder(const Path& folder, std::string_view where) {
  if (is_file(folder / "config.json")) return folder;
  const std::string here = str(where, ": ", folder.string(), ": ");
  if (const auto model = model_inside(folder, here)) return *model;
  check(!is_nemo_folder(folder), here, kFromNemo);
  if (const Path adapter = folder / "adapter_config.json"; is_file(adapter)) {
    const Json json = Json::parse(read_text(adapter), adapter.string());
    const Json* base = json.find("base_model_name_or_path");
    throw UsageError(str(here, "is an adapter, not a model: name its base model here",
                         base != nullptr && base->is_text() ? str(" (adapter_config.json says ", base->as_text("base"), ")") : ""));
  }
  throw UsageError(str(here, "no config.json; ", kWhatItHolds));
}

}  // namespace

Path find_model_folder(const std::string& given, std::string_view where) {
  check(!given.empty(), where, ": expected a model folder, or Org/Name of a model in the Hugging Face cache");
  if (is_folder(given)) return checked_model_folder(given, where);
  if (is_file(given)) refuse_file(given, where);
  const std::string looked = fs::absolute(given).lexically_normal().string();
  check(is_hub_name(given), where, ": ", looked, ": no such folder; ", kWhatItHolds);

  std::string cached = "models--" + given;
  if (const size_t slash = cached.find('/'); slash != std::string::npos) cached.replace(slash, 1, "--");
  const Path model = hub_cache() / cached;
  const auto snapshot = find_in_cache(model, where);
  check(snapshot.has_value(), where, ": no model ", given, "; looked for the folder ", looked, " and in the Hugging Face cache for ",
        model.string(), ". kedge downloads nothing; `hf download ", given, "` fetches it");
  return checked_model_folder(*snapshot, where);
}

std::vector<Path> companion_files(const Path& folder) {
  std::vector<Path> files;
  for (const std::string_view name : kCompanions)
    if (is_file(folder / name)) files.emplace_back(name);
  if (is_folder(folder / kMoreTemplates))
    for (const auto& entry : fs::directory_iterator(folder / kMoreTemplates))
      if (is_file(entry.path())) files.push_back(Path(kMoreTemplates) / entry.path().filename());
  std::sort(files.begin(), files.end());
  return files;
}

void copy_companions(const Path& from, const Path& to) {
  check(is_folder(from), from.string(), ": no such folder");
  make_folder(to);
  if (fs::equivalent(from, to)) return;
  for (const Path& file : companion_files(from)) {
    make_folder((to / file).parent_path());
    write_atomic(to / file, read_text(from / file));
  }
}

}  // namespace kedge
