#pragma once
// Pairs of a better and a worse answer to one prompt, for reward models and DPO. Independent of losses.
#include <string>

#include "kedge/core/rare_log.h"
#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/prompt_reader.h"

namespace kedge {

struct PreferenceConfig : DataConfig {
  double default_chosen_reward = 1;
  double default_rejected_reward = 0;
  bool validation_drop_last = true;

  void fields(auto&& field) {
    DataConfig::fields(field);
    field("default_chosen_reward", default_chosen_reward, "reward of a better response whose row has no chosen_reward");
    field("default_rejected_reward", default_rejected_reward, "reward of a worse response whose row has no rejected_reward");
    field.ignored("pad_length_to_multiple_of", "rows are packed without padding");
    field.ignored({"train_ds", "validation_ds", "shuffle_documents"},
                  "data_prefix names the files, and the trainer's own section says whether they are shuffled");
    field("validation_drop_last", validation_drop_last, "leave out an incomplete last validation batch; false: fill it with empty rows");
  }
};

// A pair as text; the prompt is empty in the two-line layout.
struct PreferencePair {
  std::string prompt, chosen, rejected;
  double chosen_reward = 0, rejected_reward = 0;
};

// How many rows of the file make a pair: 2 for lines {"text"} that alternate better and worse, else 1.
[[nodiscard]] int64_t rows_per_pair(const JsonlFile& file);
// Opens the splits with the layout that the first file has.
[[nodiscard]] std::map<std::string, Rows> open_preference_data(const DataConfig& config, std::string_view key);

// The layouts are listed in docs/data.md. A pair whose sides have different prompts is a RowError (different_prompts).
class PreferenceReader {
 public:
  PreferenceReader(const PreferenceConfig& config, ChatRenderer chat);
  [[nodiscard]] PreferencePair read(const Row& row) const;                             // both answers in one row
  [[nodiscard]] PreferencePair read_lines(const Row& better, const Row& worse) const;  // {"text"} twice

 private:
  [[nodiscard]] PreferencePair read_answers(const Row& row) const;
  [[nodiscard]] double reward(const Row& row, std::string_view key, double missing) const;

  PromptReader reader_;
  double chosen_reward_, rejected_reward_;
};

struct PreferenceExample {
  int64_t id = 0;                       // the requested index
  int64_t source = 0;                   // the pair it came from: another if that one is too long
  TokenIds chosen = {}, rejected = {};  // prompt and answer
  int64_t num_prompt_tokens = 0;        // 0 if not requested
  double chosen_reward = 0, rejected_reward = 0;
  bool masked = false;  // too long: truncated and masked
};

enum class PreferenceUse {
  ranking,   // complete texts, for a reward model; too long: replaced by the next pair that fits
  labelled,  // answers apart from the prompt, for DPO; too long: the first 32 tokens, masked
};

// Safe to use from several threads.
class PreferenceDataset {
 public:
  static constexpr int64_t kMaskedTokens = 32;

  // `rows` as open_preference_data opens them. Encodes every pair once: a broken one is refused, one whose sides have different
  // prompts is left out, counted and logged.
  PreferenceDataset(Rows rows, TextEncoder encoder, const PreferenceConfig& config, PreferenceUse use, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return kept_.size(); }
  [[nodiscard]] PreferenceExample get(int64_t index) const;
  [[nodiscard]] int64_t num_replaced() const { return replacements_.count(); }
  [[nodiscard]] int64_t num_masked() const { return masked_.count(); }
  [[nodiscard]] int64_t num_dropped() const { return kept_.num_dropped(); }  // different prompts, and too long if requested

 private:
  [[nodiscard]] PreferencePair pair(int64_t row) const;
  [[nodiscard]] PreferenceExample encode(int64_t row) const;
  [[nodiscard]] bool too_long(const PreferenceExample& example) const;

  Rows rows_;
  TextEncoder encoder_;
  PreferenceConfig config_;
  PreferenceUse use_;
  PreferenceReader reader_;
  KeptRows kept_;
  Replacements replacements_;
  RareLog masked_;
};

}  // namespace kedge
