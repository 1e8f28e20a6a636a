#include <cstdio>
#include <utility>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/data/check/data_report.h"
#include "kedge/data/check/hh.h"
#include "kedge/data/sets/chat_dataset.h"
#include "kedge/data/sets/packing.h"
#include "kedge/data/sets/sft_dataset.h"
#include "kedge/text/chat/model_chat.h"
#include "kedge/text/tokenizer/tokenizer.h"

#include "cli/commands.h"
#include "cli/demo/harbour_files.h"

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
    field("second", second, "a second file: count its prompts that are also in the first");
    field("as", check.kind, "format of the rows");
    field("model", model, "the model folder whose tokenizer and chat template are used", required());
    field("max_tokens", check.max_tokens, "longer rows count as too long", at_least(1));
    field("encoder_seq_length", encoder_seq_length, "default of the length settings under --data and --sft", follows("${max_tokens}"));
    field("attributes", check.num_attributes, "number of values in a regression label", at_least(1));
    field("data", check.data, "keys of model.data, for example --data.add-bos");
    field("sft", check.sft, "keys of SFT's model.data, for example --sft.train-ds.prompt-template");
    field("json", json, "print one JSON object instead of text");
  }
};

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int run_check(const Arguments& arguments) {
  auto options = parse_options<CheckOptions>(arguments, kCheckPositionals);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(options.model);
  options.check.encoder = encoder_of(*tokenizer);
  options.check.chat = chat_of_model(options.model);
  std::vector<DataReport> reports = {check_data(options.file, options.check)};
  Json json = to_json(reports[0]);
  std::string text = to_text(reports[0]);
  if (options.second) {
    const DataReport& other = reports.emplace_back(check_data(*options.second, options.check));
    const PromptOverlap overlap = prompt_overlap(options.file, *options.second, options.check);
    text += str("\n", to_text(other), "\n", overlap.num_shared, " of ", overlap.num_prompts, " prompts of ", *options.second, " are in ",
                options.file, " too", overlap.num_shared > 0 ? ", the first at " + overlap.first : "", "\n");
    json = Json(Json::Object{{"first", std::move(json)}, {"second", to_json(other)}, {"num_shared_prompts", overlap.num_shared}});
  }
  print(options.json ? json.dump() + "\n" : text);
  bool usable = true;
  for (const DataReport& one : reports) {
    if (one.num_good > 0) continue;
    log_error(one.name, ": none of its ", one.num_examples, one.num_examples == 1 ? " row" : " rows", " can be used");
    usable = false;
  }
  return usable ? kExitOk : kExitUsage;
}

int run_prepare(const Arguments& arguments) {
  check(!arguments.empty() && arguments[0] == "hh", "kedge data prepare: expected a kind of data: hh");
  const auto config = parse_options<HhConfig>(Arguments(arguments.begin() + 1, arguments.end()), {"input"});
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
    field("file", file, "prompt-response rows, or conversations with --sft.chat: JSON lines or one JSON list, plain or gzip", required());
    field("out", out, "output file for the packs", required());
    field("model", model, "the model folder whose tokenizer is used", required());
    packing.fields(field);
    field("encoder_seq_length", encoder_seq_length, "longest row", follows("${pack_size}"));
    field("sft", sft, "keys of SFT's model.data, for example --sft.train-ds.prompt-template");
  }
};

int run_pack(const Arguments& arguments) {
  auto options = parse_options<PackOptions>(arguments, kPackPositionals);
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(options.model);
  SftFilesConfig& files = options.sft.train_ds;
  files.file_path = options.file;
  Rows rows = open_sft_data(files, "FILE");
  const auto pack = [&](const auto& set) {
    return write_packs(
        set.size(), [&](int64_t index) { return set.get(index); }, options.packing, options.out);
  };
  const PackingReport report =
      options.sft.chat
          ? pack(ChatDataset(std::move(rows), encoder_of(*tokenizer), options.sft, files.max_seq_length, chat_of_model(options.model)))
          : pack(SftDataset(std::move(rows), encoder_of(*tokenizer), files));
  print(str(options.out, ": ", report.num_rows, " rows in ", report.num_packs, " packs, ", shortest(report.rows_per_pack()),
            " a pack; divide model.data.train_ds.global_batch_size by that and set packed_sequence=true\n"));
  return kExitOk;
}

int run_demo(const Arguments& arguments) {
  const auto config = parse_options<HarbourFilesConfig>(arguments, {"out"});
  print(to_text(write_harbour_files(config)));
  return kExitOk;
}

}  // namespace

std::string data_flags() {
  return str("kedge data check\n", options_help<CheckOptions>(kCheckPositionals), "\nkedge data prepare hh\n",
             options_help<HhConfig>({"input"}), "\nkedge data pack\n", options_help<PackOptions>(kPackPositionals), "\nkedge data demo\n",
             options_help<HarbourFilesConfig>({"out"}));
}

int run_data(const Arguments& arguments) {
  check(!arguments.empty(), "kedge data: expected check, prepare, pack or demo");
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (arguments[0] == "check") return run_check(rest);
  if (arguments[0] == "prepare") return run_prepare(rest);
  if (arguments[0] == "pack") return run_pack(rest);
  if (arguments[0] == "demo") return run_demo(rest);
  throw UsageError(str("kedge data: expected check, prepare, pack or demo, found \"", arguments[0], "\"",
                       nearest_hint(arguments[0], {"check", "prepare", "pack", "demo"})));
}

}  // namespace kedge::cli
