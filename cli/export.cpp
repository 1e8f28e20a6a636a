#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/inspect/model_source.h"
#include "kedge/inspect/model_summary.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/model/files/weight_check.h"

#include "cli/commands.h"
#include "cli/device_flags.h"
#include "cli/output_folder.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct ExportOptions {
  std::string from, out;
  std::optional<std::string> adapter;
  std::string base;  // the base model of a separate adapter, by name
  bool merge = false;
  std::optional<int64_t> step;
  bool best = false, last = false;
  std::optional<Precision> dtype;
  bool overwrite = false;

  void fields(auto&& field) {
    field("from", from, "folder of a model, a run or a checkpoint, or Org/Name in the Hugging Face cache", required());
    field("out", out, "the folder to write", required());
    field("adapter", adapter, "folder of a LoRA adapter for the model, in PEFT's layout");
    field("merge", merge, "merge the adapter into the weights; otherwise OUT contains only the adapter");
    field("step", step, "runs only: the checkpoint of this step", at_least(0));
    field("best", best, "runs only: the best checkpoint");
    field("last", last, "runs only: the newest checkpoint");
    field("dtype", dtype, "type of the written weights; by default the one in config.json");
    field("overwrite", overwrite, "replace the model in a folder that is not empty");
  }
};

const std::vector<std::string> kExportPositionals = {"from", "out"};

// The base to check the adapter against. Its weights are not needed, except the score head if the adapter has none.
std::unique_ptr<Model> adapter_base(const ExportOptions& options, const Path& folder, const ModelConfig& config) {
  const HeadOptions stored = stored_head(config, WeightFiles(folder));
  const auto own = load_adapter_head(*options.adapter);
  if (stored.kind == HeadKind::score && !own)
    return load_model(folder, {.storage = {.dtype = parse_dtype(config.dtype, "config.json: dtype")}, .head = HeadKind::score});
  return std::make_unique<Model>(config, stored.kind == HeadKind::score ? stored : own.value_or(stored),
                                 StorageOptions{.dtype = at::kBFloat16});
}

// Only the adapter.
void export_adapter(const ExportOptions& options, const Path& folder, const ModelConfig& config) {
  const auto model = adapter_base(options, folder, config);
  load_adapter(*model, *options.adapter, true);  // trainable: with master weights, which keep every bit
  if (options.overwrite) remove_model_files(options.out);
  copy_companions(folder, options.out);
  save_adapter(*model, options.out, options.base);
}

void export_model(const ExportOptions& options, const Path& folder, const ModelConfig& config) {
  const at::ScalarType stored = parse_dtype(config.dtype, (folder / "config.json").string() + ": dtype");
  const at::ScalarType wanted = options.dtype ? dtype_of(*options.dtype) : stored;
  LoadOptions load;
  load.storage.dtype = wanted == stored ? stored : at::kFloat;  // so that nothing is rounded twice
  load.head = config.num_labels > 0 ? HeadKind::score : HeadKind::language;
  if (options.adapter) start_head_of_adapter(load, *options.adapter);
  log_info("reading ", folder.string());
  const auto model = load_model(folder, load);
  if (options.adapter) {
    load_adapter(*model, *options.adapter, true);
    model->merge_adapters();
  }
  if (options.overwrite) remove_model_files(options.out);
  log_info("writing ", options.out);
  save_model(*model, options.out, {.dtype = wanted, .companions = folder});
}

// The folder with the network. If a run or a checkpoint holds adapters, those are exported.
Path find_base(ExportOptions& options, const std::optional<ModelSource>& source) {
  options.base = options.from;
  if (!source) return find_model_folder(options.from, "FROM");
  if (!is_adapter_folder(source->folder)) return find_model_folder(source->folder.string(), "FROM");
  check(!options.adapter, "--adapter: ", source->folder.string(), " holds adapters itself");
  options.adapter = source->folder.string();
  Path base = find_adapter_base(source->folder, source->started_in, "FROM");
  options.base = base.string();
  return base;
}

}  // namespace

std::string export_flags() { return options_help<ExportOptions>(kExportPositionals); }

int run_export(const Arguments& arguments) {
  auto options = parse_options<ExportOptions>(arguments, kExportPositionals);
  const std::optional<ModelSource> source = find_model_source(options.from, {options.step, options.best, options.last});
  const Path folder = find_base(options, source);
  check(options.adapter || !options.merge, "--merge: requires --adapter");
  const bool keeps_adapter = options.adapter && !options.merge;
  check(!keeps_adapter || !options.dtype, "--dtype: a separate adapter is written in fp32; --merge writes a complete model");
  if (source) log_info("taking ", source->what, ": ", source->folder.string());
  check(!is_same_folder(folder, options.out), "OUT: ", options.out, " is FROM itself");
  check(!options.adapter || !is_same_folder(*options.adapter, options.out), "OUT: ", options.out, " is the adapter itself");
  check_out_folder(options.out, options.overwrite);
  const ModelConfig config = load_model_config(folder);
  keeps_adapter ? export_adapter(options, folder, config) : export_model(options, folder, config);
  Json told(Json::Object{{"folder", options.out}, {"holds", keeps_adapter ? "adapter" : "model"}, {"merged", options.merge}});
  if (source) {
    told.set("from", source->folder.string());
    told.set("step", source->step ? Json(*source->step) : Json());
  }
  print_json_line(told);
  return kExitOk;
}

}  // namespace kedge::cli
