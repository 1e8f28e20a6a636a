#include "kedge/data/sets/preference_dataset.h"

#include <mutex>

#include "kedge/core/log.h"
#include "kedge/data/sets/hh_dialogue.h"

namespace kedge {
namespace {

constexpr size_t kLinesNamed = 10;  // of the pairs that are left out

Path first_file(const DataConfig& config, std::string_view key) {
  const DataPrefix prefix = parse_data_prefix(config.data_prefix, config.splits_string, str(key, ".data_prefix"));
  return prefix.cut_files.empty() ? prefix.files.at("train").front().path : prefix.cut_files.front().path;
}

const Json& answer(const Row& row, const std::optional<std::string>& name, const char* usual, const char* other) {
  const Json* value = first_field(row, name, {usual, other});
  if (value == nullptr)
    row.fail_missing(Json(name.value_or(usual)).dump(), str("set model.data.fields.", usual, " if it has another name"));
  return *value;
}

bool is_dialogue(const Json& value) { return value.is_array() && value.as_array("").size() > 1; }

}  // namespace

int64_t rows_per_pair(const JsonlFile& file) {
  const Row first = file.row(0);
  return first.find("text") != nullptr && first.json().as_object("").size() == 1 ? 2 : 1;
}

std::map<std::string, Rows> open_preference_data(const DataConfig& config, std::string_view key) {
  return open_data(config, key, rows_per_pair(JsonlFile(first_file(config, key))));
}

PreferenceReader::PreferenceReader(const PreferenceConfig& config, ChatRenderer chat)
    : reader_(config, std::move(chat)), chosen_reward_(config.default_chosen_reward), rejected_reward_(config.default_rejected_reward) {}

double PreferenceReader::reward(const Row& row, std::string_view key, double missing) const {
  const Json* value = row.find(key);
  if (value == nullptr || value->is_null()) return missing;
  if (!value->is_number()) row.fail_type(str("\"", key, "\""), "a number", *value);
  return value->as_number("");
}

PreferencePair PreferenceReader::read(const Row& row) const {
  PreferencePair pair = read_answers(row);
  pair.chosen_reward = reward(row, "chosen_reward", chosen_reward_);
  pair.rejected_reward = reward(row, "rejected_reward", rejected_reward_);
  return pair;
}

PreferencePair PreferenceReader::read_answers(const Row& row) const {
  const FieldNames& names = reader_.names();
  const Json& chosen = answer(row, names.chosen, "chosen", "chosen_response");
  const Json& rejected = answer(row, names.rejected, "rejected", "rejected_response");
  PromptResponse better, worse;
  if (is_dialogue(chosen) || is_dialogue(rejected)) {  // complete dialogues, whatever the prompt field holds
    better = reader_.dialogue(row, read_messages(row, chosen, "the chosen answer", names.roles));
    worse = reader_.dialogue(row, read_messages(row, rejected, "the rejected answer", names.roles));
  } else if (reader_.has_prompt(row)) {
    better = reader_.with_response(row, chosen, "the chosen answer");
    worse = reader_.with_response(row, rejected, "the rejected answer");
  } else {
    if (!chosen.is_text()) row.fail_type("the chosen answer", "a string", chosen);
    if (!rejected.is_text()) row.fail_type("the rejected answer", "a string", rejected);
    const auto chosen_parts = hh_prompt(chosen.as_text("")), rejected_parts = hh_prompt(rejected.as_text(""));
    if (!chosen_parts || !rejected_parts)
      row.fail(RowFault::missing_field, "no \"prompt\" field, and the answers are not dialogues with \"Assistant:\" turns");
    better = *chosen_parts;
    worse = *rejected_parts;
  }
  if (better.prompt != worse.prompt) row.fail(RowFault::different_prompts, "the two sides have different prompts");
  return {better.prompt, better.response, worse.response};
}

PreferencePair PreferenceReader::read_lines(const Row& better, const Row& worse) const {
  PreferencePair pair{"", better.text("text"), worse.text("text"), chosen_reward_, rejected_reward_};
  if (pair.chosen.empty()) better.fail(RowFault::empty_prompt, "an empty text");
  if (pair.rejected.empty()) worse.fail(RowFault::empty_prompt, "an empty text");
  return pair;
}

PreferenceDataset::PreferenceDataset(Rows rows, TextEncoder encoder, const PreferenceConfig& config, PreferenceUse use, ChatRenderer chat)
    : rows_(std::move(rows)),
      encoder_(std::move(encoder)),
      config_(config),
      use_(use),
      reader_(config, std::move(chat)),
      kept_(rows_.size()),
      replacements_(str("pairs of at most ", config.seq_length, " tokens per side")) {
  check(use == PreferenceUse::ranking || rows_.rows_per_example() == 1, rows_.name(),
        ": lines of {\"text\"} do not say where the prompt ends; expected rows of prompt, chosen and rejected");
  std::mutex mutex;
  std::vector<int64_t> different;
  kept_.filter([&](int64_t row) {
    try {
      return !too_long(encode(row)) || !config_.drop_over_long;
    } catch (const RowError& error) {
      if (error.fault() != RowFault::different_prompts) throw;
    }
    const std::lock_guard lock(mutex);
    different.push_back(rows_.line(row));
    return false;
  });
  if (!different.empty()) {
    std::sort(different.begin(), different.end());
    std::string lines;
    for (size_t i = 0; i < std::min(different.size(), kLinesNamed); ++i) lines += (i == 0 ? "" : ", ") + std::to_string(different[i]);
    log_warn_of_job(rows_.name(), ": left out ", different.size(), " pairs whose sides have different prompts; lines ", lines,
                    different.size() > kLinesNamed ? ", ..." : "");
  }
  check(size() > 0, rows_.name(), ": no pair is left");
}

PreferencePair PreferenceDataset::pair(int64_t row) const {
  return rows_.rows_per_example() == 2 ? reader_.read_lines(rows_.row(row, 0), rows_.row(row, 1)) : reader_.read(rows_.row(row));
}

PreferenceExample PreferenceDataset::encode(int64_t row) const {
  const PreferencePair texts = pair(row);
  PreferenceExample example{.id = row, .source = row, .chosen_reward = texts.chosen_reward, .rejected_reward = texts.rejected_reward};
  const TextEnds ends = ends_of(config_);
  const auto where = [&] { return rows_.where(row); };
  if (use_ == PreferenceUse::labelled) {
    JointTokens chosen = encode_joint(encoder_, ends, {texts.prompt, texts.chosen}, where);
    JointTokens rejected = encode_joint(encoder_, ends, {texts.prompt, texts.rejected}, where);
    // Both continue the same tokens: the loss compares answers to one prompt.
    example.num_prompt_tokens = std::min(chosen.num_prompt_tokens, rejected.num_prompt_tokens);
    example.chosen = std::move(chosen.ids);
    example.rejected = std::move(rejected.ids);
  } else {
    example.chosen = encode_text(encoder_, ends, texts.prompt + texts.chosen);
    example.rejected = encode_text(encoder_, ends, texts.prompt + texts.rejected);
  }
  encoder_.check_ids(example.chosen, where);
  encoder_.check_ids(example.rejected, where);
  return example;
}

bool PreferenceDataset::too_long(const PreferenceExample& example) const {
  return static_cast<int64_t>(std::max(example.chosen.size(), example.rejected.size())) > config_.seq_length;
}

PreferenceExample PreferenceDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": pair ", index, " of ", size());
  if (use_ == PreferenceUse::labelled) {
    PreferenceExample example = encode(kept_[index]);
    example.id = index;
    example.masked = too_long(example);
    if (example.masked) {
      const auto cut = [&](TokenIds& ids) { ids.resize(std::min<size_t>(ids.size(), kMaskedTokens)); };
      cut(example.chosen), cut(example.rejected);
      masked_.note_once(index, rows_.where(kept_[index]), " is too long (limit: ", config_.seq_length,
                        " tokens per side) and is left out of the loss");
    }
    return example;
  }
  const auto fitting = [&](int64_t i) -> std::optional<PreferenceExample> {
    PreferenceExample example = encode(kept_[i]);
    if (too_long(example)) return std::nullopt;
    return example;
  };
  auto example = replacements_.find<PreferenceExample>(index, size(), fitting, [&](int64_t i) { return rows_.where(kept_[i]); });
  example.id = index;
  return example;
}

}  // namespace kedge
