#include <cstdio>

#include "kedge/core/error.h"
#include "kedge/core/nearest.h"
#include "kedge/data/data_report.h"
#include "kedge/data/harbour_files.h"
#include "kedge/data/hh.h"
#include "kedge/data/model_chat.h"
#include "kedge/data/packing.h"
#include "kedge/data/sft_dataset.h"
#include "kedge/data/tokenizer.h"

#include "cli/commands.h"

namespace kedge::cli {
namespace {

const std::vector<std::string> kCheckPositionals = {"file", "second"};

struct CheckOptions {
  std::string file;
  std::optional<std::string> second;
  DataCheckOptions check;
  int64_t encoder_seq_length = 0;
  std::string model;
  bool json = false;

  void fields(auto&& field) {
    field("file", file, "JSON lines or one JSON list, plain or gzip", required());
    field("second", second, "a second file: how many of its prompts stand in the first too");
    field("as", check.kind, "what the rows are");
    field("model", model, "the model folder whose tokenizer and chat template are used", required());
    field("max_tokens", check.max_tokens, "more is too long", at_least(1));
    field("encoder_seq_length", encoder_seq_length, "what lengths of --data and --sft follow", follows("${max_tokens}"));
    field("attributes", check.num_attributes, "values a regression label has", at_least(1));
    field("data", check.data, "keys of model.data, as --data.add-bos");
    field("sft", check.sft, "keys of SFT's model.data, as --sft.train-ds.prompt-template");
    field("json", json, "print one JSON object instead of text");
  }
};

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int run_check(const Arguments& arguments) {
  CheckOptions options;
  parse_arguments(describe(options), arguments, kCheckPositionals);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(options.model);
  options.check.encoder = encoder_of(*tokenizer);
  options.check.chat = chat_of_model(options.model);
  const DataReport report = check_data(options.file, options.check);
  Json json = to_json(report);
  std::string text = to_text(report);
  if (options.second) {
    const DataReport other = check_data(*options.second, options.check);
    const PromptOverlap overlap = prompt_overlap(options.file, *options.second, options.check);
    text += str("\n", to_text(other), "\n", overlap.num_shared, " of ", overlap.num_prompts, " prompts of ", *options.second, " stand in ",
                options.file, " too", overlap.num_shared > 0 ? ", the first at " + overlap.first : "", "\n");
    json = Json(Json::Object{{"first", std::move(json)}, {"second", to_json(other)}, {"num_shared_prompts", overlap.num_shared}});
  }
  print(options.json ? json.dump() + "\n" : text);
  return kExitOk;
}

int run_prepare(const Arguments& arguments) {
  check(!arguments.empty() && arguments[0] == "hh", "kedge data prepare: wants a kind of data: hh");
  HhConfig config;
  parse_arguments(describe(config), Arguments(arguments.begin() + 1, arguments.end()), {"input"});
  print(to_text(prepare_hh(config)));
  return kExitOk;
}

const std::vector<std::string> kPackPositionals = {"file", "out"};

struct PackOptions {
  std::string file, out, model;
  PackingConfig packing;
  int64_t encoder_seq_length = 0;
  SftDataConfig sft;

  void fields(auto&& field) {
    field("file", file, "prompt-response rows: JSON lines or one JSON list, plain or gzip", required());
    field("out", out, "the file of packs to write", required());
    field("model", model, "the model folder whose tokenizer is used", required());
    packing.fields(field);
    field("encoder_seq_length", encoder_seq_length, "longest row", follows("${pack_size}"));
    field("sft", sft, "keys of SFT's model.data, as --sft.train-ds.prompt-template");
  }
};

int run_pack(const Arguments& arguments) {
  PackOptions options;
  parse_arguments(describe(options), arguments, kPackPositionals);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(options.model);
  SftFilesConfig& files = options.sft.train_ds;
  files.file_path = options.file;
  const SftDataset rows(open_sft_data(files, "FILE"), encoder_of(*tokenizer), files);
  const PackingReport report = write_packs(
      rows.size(), [&](int64_t index) { return rows.get(index); }, options.packing, options.out);
  print(str(options.out, ": ", report.num_rows, " rows in ", report.num_packs, " packs, ", shortest(report.rows_per_pack()),
            " a pack; divide model.data.train_ds.global_batch_size by that and set packed_sequence=true\n"));
  return kExitOk;
}

int run_demo(const Arguments& arguments) {
  HarbourFilesConfig config;
  parse_arguments(describe(config), arguments, {"out"});
  print(to_text(write_harbour_files(config)));
  return kExitOk;
}

}  // namespace

std::string data_flags() {
  CheckOptions check_options;
  HhConfig hh;
  PackOptions pack;
  HarbourFilesConfig demo;
  return str("kedge data check\n", flags_help(describe(check_options), kCheckPositionals), "\nkedge data prepare hh\n",
             flags_help(describe(hh), {"input"}), "\nkedge data pack\n", flags_help(describe(pack), kPackPositionals),
             "\nkedge data demo\n", flags_help(describe(demo), {"out"}));
}

int run_data(const Arguments& arguments) {
  check(!arguments.empty(), "kedge data: wants check, prepare, pack or demo");
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "check") return run_check(rest);
  if (arguments[0] == "prepare") return run_prepare(rest);
  if (arguments[0] == "pack") return run_pack(rest);
  if (arguments[0] == "demo") return run_demo(rest);
  throw UsageError(str("kedge data: wants check, prepare, pack or demo, found \"", arguments[0], "\"",
                       nearest_hint(arguments[0], {"check", "prepare", "pack", "demo"})));
}

}  // namespace kedge::cli
