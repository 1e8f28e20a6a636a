#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/inspect/model_source.h"
#include "kedge/inspect/model_summary.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/model/files/weight_check.h"
#include "kedge/model/spec/lora_config.h"

#include "cli/commands.h"
#include "cli/inspect_run.h"

namespace kedge::cli {
namespace {

struct InspectOptions {
  std::string folder;
  bool json = false, verify = false, command = false;

  void fields(auto&& field) {
    field("folder", folder, "the folder of a run, a checkpoint, a model or an adapter, or Org/Name in the Hugging Face cache", required());
    field("json", json, "print one JSON object instead of text");
    field("verify", verify, "read every byte of the checkpoint, or of all the run's checkpoints; exit code 1 if one is damaged");
    field("command", command, "runs only: print only the command line that started the run, quoted for a shell");
  }
};

const std::vector<std::string> kInspectPositionals = {"folder"};

// A line of the table and a member of the JSON object.
struct Fact {
  std::string name;
  std::string text;
  Json value;
};

struct Counts {
  int64_t total = 0, embedding = 0, layer = 0, head = 0;
  int64_t lora = 0;  // of adapters of the usual rank on the usual layers
};

Counts count_parameters(const ModelConfig& config, const HeadOptions& head) {
  const ModelParameters parameters = make_parameters(config, head);
  Counts counts;
  for (const ParameterSpec& spec : parameters.specs) {
    counts.total += spec.size();
    if (spec.name.starts_with("layers.0.")) counts.layer += spec.size();
  }
  const auto size_of = [&](int place) { return place < 0 ? 0 : parameters.specs[static_cast<size_t>(place)].size(); };
  counts.embedding = size_of(parameters.embedding) + size_of(parameters.positions);
  counts.head =
      parameters.head == parameters.embedding ? 0 : size_of(parameters.head) + size_of(parameters.score) + size_of(parameters.score_bias);
  const LoraConfig lora;
  for (const LinearSlice& slice : select_slices(lora, linear_slices(config, parameters), config.num_layers, "peft"))
    counts.lora += lora.adapter_dim * (slice.in_size + slice.rows);
  return counts;
}

// Weights, gradients and both moments; activations come on top.
std::vector<Fact> memory_facts(const Counts& counts) {
  const int64_t fp32 = 4 * counts.total, bf16 = 2 * counts.total;
  const int64_t train_fp32 = 16 * counts.total, train_bf16 = 18 * counts.total, train_lora = 2 * counts.total + 18 * counts.lora;
  const LoraConfig lora;
  return {{"memory to infer", str(format_bytes(bf16), " in bf16, ", format_bytes(fp32), " in fp32"),
           Json::Object{{"bf16_bytes", bf16}, {"fp32_bytes", fp32}}},
          {"memory to train",
           str(format_bytes(train_bf16), " in bf16 with fp32 master weights, ", format_bytes(train_fp32), " in fp32, ",
               format_bytes(train_lora), " with adapters (rank ", lora.adapter_dim, " on ", lora.target_modules.front(), ", ",
               with_commas(counts.lora), " parameters) on bf16; activations not counted"),
           Json::Object{
               {"bf16_bytes", train_bf16}, {"fp32_bytes", train_fp32}, {"lora_bf16_bytes", train_lora}, {"lora_parameters", counts.lora}}}};
}

std::string_view name_of_rope(RopeType type) {
  switch (type) {
    case RopeType::plain:
      return "default";
    case RopeType::linear:
      return "linear";
    case RopeType::dynamic:
      return "dynamic";
    case RopeType::yarn:
      return "yarn";
    case RopeType::llama3:
      return "llama3";
  }
  return "";
}

Fact position_fact(const ModelConfig& config) {
  if (config.learned_positions)
    return {"positions", str("learned, ", config.max_positions), Json::Object{{"kind", "learned"}, {"max", config.max_positions}}};
  const RopeConfig& rope = config.rope;
  const std::string_view type = name_of_rope(rope.type);
  return {
      "positions",
      str("rotary", rope.type == RopeType::plain ? "" : str(" (", type, " scaling by ", rope.factor, ")"), ", theta ",
          format_number(rope.theta), ", up to ", config.max_positions),
      Json::Object{{"kind", "rotary"}, {"rope_type", type}, {"theta", rope.theta}, {"factor", rope.factor}, {"max", config.max_positions}}};
}

Fact window_fact(const ModelConfig& config) {
  Json::Array windows;
  std::set<int64_t> sizes;
  int64_t num_sliding = 0;
  for (const int64_t window : config.windows) {
    windows.emplace_back(window);
    if (window == 0) continue;
    sizes.insert(window);
    num_sliding += 1;
  }
  std::string text = "none: every token attends to all before it";
  if (num_sliding > 0) text = str(*sizes.begin(), " tokens in ", num_sliding, " of ", config.num_layers, " layers");
  return {"window", std::move(text), num_sliding > 0 ? Json(std::move(windows)) : Json()};
}

std::vector<Fact> shape_facts(const ModelConfig& config, const HeadOptions& head, const Counts& counts) {
  const bool scores = head.kind == HeadKind::score;
  return {{"family", std::string(name_of(config.family)), name_of(config.family)},
          {"layers",
           str(config.num_layers, " of hidden size ", config.hidden_size, ", MLP ", config.mlp_size, " (", config.gated ? "gated " : "",
               name_of(config.activation), ")"),
           Json::Object{{"count", config.num_layers}, {"hidden_size", config.hidden_size}, {"mlp_size", config.mlp_size}}},
          {"attention", str(config.num_heads, " heads, ", config.num_kv_heads, " of keys and values, of ", config.head_dim, " channels"),
           Json::Object{{"heads", config.num_heads}, {"kv_heads", config.num_kv_heads}, {"head_dim", config.head_dim}}},
          position_fact(config),
          window_fact(config),
          {"vocabulary", str(config.vocab_size), config.vocab_size},
          {"head",
           scores ? str("score, ", head.num_labels, head.num_labels == 1 ? " label" : " labels", head.score_bias ? ", with a bias" : "")
                  : str("language model, ", config.tied ? "tied to the embedding" : "not tied"),
           Json::Object{{"kind", scores ? "score" : "language"},
                        {"labels", scores ? head.num_labels : 0},
                        {"tied", config.tied && !scores},
                        {"bias", head.score_bias}}},
          {"parameters",
           str(with_commas(counts.total), ": embedding ", with_commas(counts.embedding), ", a layer ", with_commas(counts.layer), ", head ",
               with_commas(counts.head)),
           Json::Object{{"total", counts.total}, {"embedding", counts.embedding}, {"layer", counts.layer}, {"head", counts.head}}},
          {"dtype", config.dtype, config.dtype}};
}

Fact weight_fact(const WeightFiles& files, const Path& folder) {
  std::map<std::string, int64_t> types;
  for (const std::string& name : files.names()) {
    const TensorEntry& entry = *files.find(name);
    types[entry.type ? std::string(name_of(*entry.type)) : entry.type_name] += 1;
  }
  std::string text;
  Json by_type = Json::Object{}, sizes = Json::Object{};
  for (const auto& [type, count] : types) {
    text += str(text.empty() ? "" : ", ", count, " ", type);
    by_type.set(type, count);
  }
  int64_t bytes = 0;
  std::set<Path> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") names.insert(entry.path().filename());
  for (const Path& name : names) {
    const auto size = static_cast<int64_t>(std::filesystem::file_size(folder / name));
    sizes.set(name.string(), size);
    bytes += size;
  }
  return {"weights", str(text, " tensors, ", format_bytes(bytes), " in ", names.size(), names.size() == 1 ? " file" : " files"),
          Json::Object{{"tensors", by_type}, {"file_bytes", sizes}}};
}

void print_facts(const Path& folder, const std::vector<Fact>& facts, bool as_json) {
  std::string text;
  if (as_json) {
    Json json(Json::Object{{"folder", folder.string()}});
    for (const Fact& fact : facts) {
      std::string key = fact.name;
      std::replace(key.begin(), key.end(), ' ', '_');
      json.set(key, fact.value);
    }
    text = json.dump() + "\n";
  } else {
    size_t width = 0;
    for (const Fact& fact : facts) width = std::max(width, fact.name.size());
    text = folder.string() + "\n";
    for (const Fact& fact : facts) text += str("  ", fact.name, std::string(width - fact.name.size() + 2, ' '), fact.text, "\n");
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

std::string joined(const std::vector<Path>& files) {
  std::string text;
  for (const Path& file : files) text += (text.empty() ? "" : ", ") + file.string();
  return text;
}

// Throws what load_model would throw, after the report is out.
void inspect_model(const Path& folder, bool as_json) {
  const ModelConfig config = load_model_config(folder);
  HeadOptions head{config.num_labels > 0 ? HeadKind::score : HeadKind::language, std::max<int64_t>(config.num_labels, 1), false};
  std::string problems;
  std::optional<Fact> weights;
  try {
    const WeightFiles files(folder);
    head = stored_head(config, files);
    const std::vector<WeightSlice> table = parameter_layout(config, make_parameters(config, head));
    problems = check_weights(files, table, {.head = head.kind}).text(folder.string(), config);
    weights = weight_fact(files, folder);
  } catch (const UsageError& error) {
    problems = error.what();
  }
  const Counts counts = count_parameters(config, head);
  std::vector<Fact> facts = shape_facts(config, head, counts);
  if (weights) facts.push_back(*weights);
  const std::vector<Path> others = companion_files(folder);
  Json::Array names;
  for (const Path& file : others) names.emplace_back(file.string());
  facts.push_back({"other files", others.empty() ? "none: no tokenizer" : joined(others), std::move(names)});
  for (Fact& fact : memory_facts(counts)) facts.push_back(std::move(fact));
  facts.push_back({"complete", problems.empty() ? "yes: every tensor is present" : "no", problems.empty()});
  print_facts(folder, facts, as_json);
  check(problems.empty(), problems);
}

void inspect_adapter(const Path& folder, bool as_json) {
  const LoraConfig config = load_adapter_config(folder);
  const WeightFiles files = WeightFiles::single(folder / "adapter_model.safetensors");
  int64_t num_parameters = 0;
  std::set<std::string> modules, kinds;
  for (const std::string& name : files.names()) {
    int64_t size = 1;
    for (const int64_t extent : files.find(name)->shape) size *= extent;
    num_parameters += size;
    if (name.find(".lora_") == std::string::npos) continue;  // of the score head
    const std::string module = name.substr(0, name.find(".lora_"));
    modules.insert(module);
    kinds.insert(module.substr(module.rfind('.') + 1));
  }
  Json::Array targets;
  std::string target_text;
  for (const std::string& kind : kinds) {
    targets.emplace_back(kind);
    target_text += (target_text.empty() ? "" : ", ") + kind;
  }
  const Path config_file = folder / "adapter_config.json";
  const Json json = Json::parse(read_text(config_file), config_file.string());
  const Json* base = json.find("base_model_name_or_path");
  const std::string base_name = base != nullptr && base->is_text() ? base->as_text("") : "";
  const auto num_modules = static_cast<int64_t>(modules.size());
  const auto head = load_adapter_head(folder);
  const int64_t num_labels = head ? head->num_labels : 0;
  print_facts(
      folder,
      {{"adapter", "LoRA", "LORA"},
       {"base model", base_name.empty() ? "not named" : base_name, base_name},
       {"rank", str(config.adapter_dim), config.adapter_dim},
       {"alpha", format_number(config.alpha.value_or(0)), config.alpha.value_or(0)},
       {"scale", format_number(config.scale()), config.scale()},
       {"dropout", format_number(config.adapter_dropout), config.adapter_dropout},
       {"targets", str(target_text, " (", num_modules, " linear layers)"), Json::Object{{"kinds", targets}, {"modules", num_modules}}},
       {"score head", head ? str(num_labels, num_labels == 1 ? " label" : " labels", head->score_bias ? " and a bias" : "") : "none",
        num_labels},
       {"trainable parameters", with_commas(num_parameters), num_parameters},
       weight_fact(files, folder)},
      as_json);
}

// Names of the runs in a folder.
std::vector<std::string> runs_in(const Path& folder) {
  std::vector<std::string> names;
  if (!is_folder(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory() && is_run(entry.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string inspect_flags() { return options_help<InspectOptions>(kInspectPositionals); }

int run_inspect(const Arguments& arguments) {
  const auto options = parse_options<InspectOptions>(arguments, kInspectPositionals);
  const Path given = options.folder;
  const InspectLook look{.json = options.json, .verify = options.verify, .command = options.command};
  if (is_run(given)) return inspect_run(options.folder, look);
  check(!is_folder(given / "checkpoints"), options.folder,
        ": a run that never started: it has neither config.yaml nor run.json; its log.txt may show why");
  if (const std::vector<std::string> runs = runs_in(given); !runs.empty())
    throw UsageError(str(options.folder, ": contains runs but is not one itself; inspect one of them: ", (given / runs.front()).string(),
                         runs.size() == 1 ? "" : str(", or one of ", runs.size() - 1, " more"), ". kedge dashboard ", options.folder,
                         " shows them all"));
  check(!options.command, "--command: ", options.folder, " is not the folder of a run");
  if (is_checkpoint(given)) return inspect_checkpoint(options.folder, look);
  check(!options.verify, "--verify: ", options.folder, " is neither a checkpoint nor the folder of a run");
  if (is_file(given / "adapter_config.json") && !is_file(given / "config.json")) {
    inspect_adapter(given, options.json);
  } else {
    inspect_model(find_model_folder(options.folder, "DIR"), options.json);
  }
  return kExitOk;
}

}  // namespace kedge::cli
