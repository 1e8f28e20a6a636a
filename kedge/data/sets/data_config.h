#pragma once
// The keys of `model.data` that all data sets but SFT's share (SFT's are in sft_config.h): where rows come from, what their
// fields are called, and how text becomes ids.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/config/config_schema.h"
#include "kedge/data/files/rows.h"
#include "kedge/data/sets/messages.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// Names of a row's fields if they are not the usual ones (docs/data.md).
struct FieldNames {
  std::optional<std::string> prompt, response, chosen, rejected, label;
  RoleNames roles = default_roles();

  void fields(auto&& field) {
    field("prompt", prompt, "field with the prompt, text or messages; null: the first of text, prompt, messages, conversations");
    field("response", response, "field with the response; null: response or completion");
    field("chosen", chosen, "field with the better response; null: chosen or chosen_response");
    field("rejected", rejected, "field with the worse response; null: rejected or rejected_response");
    field("label", label, "field with attribute values, or with whether a response is desirable; null: label or preference");
    field("roles", roles, "map from role names in the file to those of the chat template");
  }
};

// Where a response begins if the prompt's last tokens change when it follows.
enum class PromptBoundary { exact, common };
constexpr auto enum_names(PromptBoundary) {
  return std::array<EnumName<PromptBoundary>, 2>{{{"exact", PromptBoundary::exact}, {"common", PromptBoundary::common}}};
}

struct DataConfig {
  std::string data_impl = "jsonl";
  Json data_prefix;
  std::optional<std::string> splits_string;
  int64_t seq_length = 4096;
  bool add_bos = false;
  bool append_eod = false;
  bool drop_over_long = false;
  PromptBoundary prompt_boundary = PromptBoundary::exact;
  std::optional<std::string> prompt_template;
  FieldNames names;

  void fields(auto&& field) {
    field("data_impl", data_impl, "file type: json or jsonl, plain or gzip");
    field("data_prefix", data_prefix,
          "{train: [FILE], validation: [FILE], test: [FILE]}, or a list with splits_string; "
          "[0.3, a, 0.7, b] blends files by weight");
    field("splits_string", splits_string, "fractions of train, validation and test for files given as a list: \"98,1,1\"");
    field("seq_length", seq_length, "longest example", follows("${..encoder_seq_length}"), at_least(1), unit("tokens"));
    field("add_bos", add_bos, "put BOS before the prompt");
    field("append_eod", append_eod, "put EOS after the text");
    field(
        "drop_over_long", drop_over_long,
        "drop rows that are too long when loading; false: replace each by the next row that fits, or (DPO, KTO) leave it out of the loss");
    field(
        "prompt_boundary", prompt_boundary,
        "DPO and KTO, if the prompt's last tokens change when the response follows: an error (exact), or the response begins at the first "
        "token that changes (common)");
    field("prompt_template", prompt_template, "text with {field} placeholders that forms the prompt; null: use a field as the prompt");
    field("fields", names, "names of a row's fields if they differ from the usual ones");
    field.ignored("num_workers", "rows are read in place");
    field.ignored("skip_warmup", "there are no memory-mapped data sets");
    field.ignored("index_mapping_dir", "the index of a file is built in seconds and kept in memory");
    field.ignored("dataloader_type", "NeMo-Aligner does not read it either");
    field.refused("apply_ftfy", "not supported; repair the text beforehand", {"false", "False"});
    field.refused({"reset_position_ids", "reset_attention_mask", "eod_mask_loss"}, "not supported", {"false", "False"});
  }
};

// All files that it names.
[[nodiscard]] std::vector<Path> data_files(const DataConfig& config, std::string_view key);

// Opens the files of every split. `key` is the section's key, "model.data".
[[nodiscard]] std::map<std::string, Rows> open_data(const DataConfig& config, std::string_view key, int64_t rows_per_example = 1);

// UsageError if `add_bos` of the section `key` asks for a BOS token that the tokenizer of the model in `folder` does not have.
void check_bos(bool add_bos, const Tokenizer& tokenizer, const Path& folder, std::string_view key);

}  // namespace kedge
