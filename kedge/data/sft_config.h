#pragma once
// The keys of `model.data` for SFT: files, templates and special tokens of prompt-response and chat data.
#include <array>
#include <map>
#include <string>

#include "kedge/core/config_schema.h"
#include "kedge/data/chat_prompt.h"
#include "kedge/data/messages.h"

namespace kedge {

enum class TruncationSide { right, left };
constexpr auto enum_names(TruncationSide) {
  return std::array<EnumName<TruncationSide>, 2>{{{"right", TruncationSide::right}, {"left", TruncationSide::left}}};
}

// One split: `model.data.train_ds`, or `validation_ds`, whose defaults follow train_ds.
struct SftFilesConfig {
  bool follows_train = false;  // no key: says which of the two this is
  Json file_path = nullptr;
  int64_t global_batch_size = 128;
  int64_t micro_batch_size = 1;
  bool shuffle = true;
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
    field("global_batch_size", global_batch_size, "rows of one step", or_train("global_batch_size"), at_least(1));
    field("micro_batch_size", micro_batch_size, "rows of one forward pass", or_train("micro_batch_size"), at_least(1));
    field("shuffle", shuffle, "a new random order each epoch; false: the file's");
    field("drop_last", drop_last, "leave out an incomplete last batch");
    field("max_seq_length", max_seq_length, "longest row", or_train("max_seq_length", "${...encoder_seq_length}"), at_least(2),
          unit("tokens"));
    field("label_key", label_key, "the field that is trained on; last in prompt_template", or_train("label_key"));
    field("prompt_template", prompt_template, "text with {field} placeholders; \\n and other escapes are decoded",
          or_train("prompt_template"));
    field("truncation_field", truncation_field, "fields to shorten where a row is too long, with commas between them",
          or_train("truncation_field"));
    field("truncation_method", truncation_method, "the side tokens are taken from", or_train("truncation_method"));
    field("add_bos", add_bos, "put BOS first", or_train("add_bos"));
    field("add_sep", add_sep, "put id 0 between prompt and answer", or_train("add_sep"));
    field("add_eos", add_eos, "put EOS last", or_train("add_eos"));
    field("pad_to_max_length", pad_to_max_length, "make every batch max_seq_length wide");
    field("packed_sequence", packed_sequence, "the file holds packed rows");
    field.ignored("min_seq_length", "no row is too short");
    field.ignored("memmap_workers", "the index of a file is built in seconds");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("index_mapping_dir", "the index of a file is kept in memory");
    field.ignored("hf_dataset", "a JSON file is read in place");
    field.ignored("output_original_text", "the text is always at hand");
    field.ignored("packed_sequence_return_cu_seqlen", "sequences of a pack never see each other");
    field.ignored("names", "a metric goes by the name of its split");
  }
};

struct SftDataConfig {
  bool chat = false;
  ChatPromptTokens chat_prompt_tokens;
  bool sample = false;
  RoleNames roles = default_roles();
  SftFilesConfig train_ds;
  SftFilesConfig validation_ds = {.follows_train = true, .shuffle = false};

  void fields(auto&& field) {
    field("chat", chat, "rows are conversations; false: prompt and response fields");
    field("chat_prompt_tokens", chat_prompt_tokens, "special tokens between turns, for {\"conversations\"} rows");
    field("sample", sample, "go on over the data when max_steps wants more rows than there are");
    field("roles", roles, "roles of {\"messages\"} rows as the file calls them: as the chat template does");
    field("train_ds", train_ds, "training data");
    field("validation_ds", validation_ds, "validation data");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("dataloader_type", "the reference does not read it either");
  }
};

}  // namespace kedge
