#pragma once
// The keys of `model.data` that all data sets but SFT's share (SFT's are in sft_config.h): where rows come from, what their
// fields are called, and how text becomes ids.
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/config_schema.h"
#include "kedge/data/messages.h"
#include "kedge/data/rows.h"

namespace kedge {

// Names of a row's fields where they are not the usual ones (docs/data.md).
struct FieldNames {
  std::optional<std::string> prompt, response, chosen, rejected, label;
  RoleNames roles = default_roles();

  void fields(auto&& field) {
    field("prompt", prompt, "the prompt, text or messages; null: the first of text, prompt, messages, conversations that is there");
    field("response", response, "the answer; null: response or completion");
    field("chosen", chosen, "the better answer; null: chosen or chosen_response");
    field("rejected", rejected, "the worse answer; null: rejected or rejected_response");
    field("label", label, "attribute values, or whether an answer is wanted; null: label or preference");
    field("roles", roles, "roles as the file calls them: as the chat template does");
  }
};

struct DataConfig {
  std::string data_impl = "jsonl";
  Json data_prefix;
  std::optional<std::string> splits_string;
  int64_t seq_length = 4096;
  bool add_bos = false;
  bool append_eod = false;
  bool drop_over_long = false;
  std::optional<std::string> prompt_template;
  FieldNames names;

  void fields(auto&& field) {
    field("data_impl", data_impl, "kind of file: json or jsonl, plain or gzip");
    field("data_prefix", data_prefix,
          "{train: [FILE], validation: [FILE], test: [FILE]}, or a list with splits_string; "
          "[0.3, a, 0.7, b] blends files by weight");
    field("splits_string", splits_string, "shares of train, validation and test in files given as a list: \"98,1,1\"");
    field("seq_length", seq_length, "longest example", follows("${..encoder_seq_length}"), at_least(1), unit("tokens"));
    field("add_bos", add_bos, "put BOS before the prompt");
    field("append_eod", append_eod, "put EOS behind the text");
    field("drop_over_long", drop_over_long, "leave out rows that are too long, at load; false: the next that fits stands in");
    field("prompt_template", prompt_template, "text with {field} placeholders that makes the prompt; null: a field is the prompt");
    field("fields", names, "names of a row's fields where they are not the usual ones");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("skip_warmup", "there are no mmap data sets here");
    field.ignored("index_mapping_dir", "the index of a file is built in seconds and kept in memory");
    field.ignored("dataloader_type", "the reference does not read it either");
    field.refused("apply_ftfy", "not supported; repair the text before", {"false", "False"});
    field.refused("reset_position_ids", "not supported", {"false", "False"});
    field.refused("reset_attention_mask", "not supported", {"false", "False"});
    field.refused("eod_mask_loss", "not supported", {"false", "False"});
  }
};

// All files that it names.
[[nodiscard]] std::vector<Path> data_files(const DataConfig& config, std::string_view key);

// Opens the files of every split. `key` is where the section stands, "model.data".
[[nodiscard]] std::map<std::string, Rows> open_data(const DataConfig& config, std::string_view key, int64_t rows_per_example = 1);

}  // namespace kedge
