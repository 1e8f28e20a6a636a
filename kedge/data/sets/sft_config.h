#pragma once
// The keys of `model.data` for SFT: files, templates and special tokens of prompt-response and chat data.
#include <array>
#include <map>
#include <string>

#include "kedge/config/config_schema.h"
#include "kedge/data/sets/messages.h"
#include "kedge/text/chat/chat_prompt.h"

namespace kedge {

enum class TruncationSide { right, left };
constexpr auto enum_names(TruncationSide) {
  return std::array<EnumName<TruncationSide>, 2>{{{"right", TruncationSide::right}, {"left", TruncationSide::left}}};
}

// One split: `model.data.train_ds`, or `validation_ds`, whose defaults follow train_ds.
struct SftFilesConfig {
  bool follows_train = false;  // not a key: which of the two this is
  Json file_path = nullptr;
  int64_t global_batch_size = 128;
  int64_t micro_batch_size = 1;
  bool shuffle = true;  // of train_ds only
  bool drop_last = true;
  int64_t max_seq_length = 4096;
  std::string label_key = "output";
  std::string prompt_template = "{input} {output}";
  std::string truncation_field = "input";
  TruncationSide truncation_method = TruncationSide::right;
  bool add_bos = false;
  bool add_sep = false;
  bool add_eos = true;
  bool pad_to_max_length = false;
  bool packed_sequence = false;

  void fields(auto&& field) {
    const auto or_train = [&](const std::string& name, const std::string& else_follows = "") {
      const std::string expression = follows_train ? "${..train_ds." + name + "}" : else_follows;
      return expression.empty() ? FieldRule([](FieldRules&) {}) : follows(expression);
    };
    field("file_path", file_path, "a file of rows (JSON Lines or a JSON list, plain or gzip), or [weight, file, weight, file, ...]");
    field("global_batch_size", global_batch_size, "rows per step", or_train("global_batch_size"), at_least(1));
    field("micro_batch_size", micro_batch_size, "rows per forward pass", or_train("micro_batch_size"), at_least(1));
    if (follows_train) {
      field.ignored("shuffle", "validation follows the order of the file");
    } else {
      field("shuffle", shuffle, "shuffle every epoch; false: the order of the file");
    }
    field("drop_last", drop_last, "leave out an incomplete last batch");
    field("max_seq_length", max_seq_length, "longest row", or_train("max_seq_length", "${...encoder_seq_length}"), at_least(2),
          unit("tokens"));
    field("label_key", label_key, "field that is trained on; must be the last in prompt_template", or_train("label_key"));
    field("prompt_template", prompt_template, "text with {field} placeholders; \\n and other escapes are decoded",
          or_train("prompt_template"));
    field("truncation_field", truncation_field, "fields to shorten if a row is too long, separated by commas",
          or_train("truncation_field"));
    field("truncation_method", truncation_method, "the side from which tokens are removed", or_train("truncation_method"));
    field("add_bos", add_bos, "put BOS first", or_train("add_bos"));
    field("add_sep", add_sep, "put id 0 between prompt and response", or_train("add_sep"));
    field("add_eos", add_eos, "put EOS last", or_train("add_eos"));
    field("pad_to_max_length", pad_to_max_length, "pad every batch to max_seq_length");
    field("packed_sequence", packed_sequence, "the file contains packed rows");
    field.ignored("min_seq_length", "rows have no minimum length");
    field.ignored("memmap_workers", "the index of a file is built in seconds");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("index_mapping_dir", "the index of a file is kept in memory");
    field.ignored("hf_dataset", "a JSON file is read in place");
    field.ignored("output_original_text", "the text is always available");
    field.ignored("packed_sequence_return_cu_seqlen", "sequences in a pack never attend to each other");
    field.ignored("names", "metrics are named by their split");
  }
};

struct SftDataConfig {
  bool chat = false;
  ChatPromptTokens chat_prompt_tokens;
  bool sample = false;
  RoleNames roles = default_roles();
  SftFilesConfig train_ds;
  SftFilesConfig validation_ds = {.follows_train = true};

  void fields(auto&& field) {
    field("chat", chat, "rows are conversations; false: prompt and response fields");
    field("chat_prompt_tokens", chat_prompt_tokens, "special tokens between turns, for {\"conversations\"} rows");
    field("sample", sample, "repeat the data if max_steps needs more rows than there are");
    field("roles", roles, "map from role names in {\"messages\"} rows to those of the chat template");
    field("train_ds", train_ds, "training data");
    field("validation_ds", validation_ds, "validation data");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("dataloader_type", "NeMo-Aligner does not read it either");
  }
};

}  // namespace kedge
