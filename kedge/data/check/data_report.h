#pragma once
// Checks a data file as a model will see it: what is broken, how long rows are, which come twice, one example token by
// token. Never stops at a bad row.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/json.h"
#include "kedge/data/files/row_error.h"
#include "kedge/data/sets/preference_dataset.h"
#include "kedge/data/sets/sft_config.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

enum class DataKind { prompts, sft, chat, preference, kto, regression };
constexpr auto enum_names(DataKind) {
  return std::array<EnumName<DataKind>, 6>{{{"prompts", DataKind::prompts},
                                            {"sft", DataKind::sft},
                                            {"chat", DataKind::chat},
                                            {"preference", DataKind::preference},
                                            {"kto", DataKind::kto},
                                            {"regression", DataKind::regression}}};
}

struct DataCheckOptions {
  DataKind kind = DataKind::prompts;
  PreferenceConfig data;       // of all kinds but sft and chat; data_prefix is not read
  SftDataConfig sft;           // of sft and chat; the template and limits are train_ds's
  int64_t max_tokens = 4096;   // more is too long
  int64_t num_attributes = 1;  // of regression
  TextEncoder encoder;
  ChatRenderer chat;
};

struct ShownToken {
  TokenId id = 0;
  std::string text;  // what it decodes to alone; U+FFFD where that is half a character
  bool trained = false;
};
struct ShownExample {
  std::string where;
  std::vector<std::pair<std::string, std::vector<ShownToken>>> sides;  // "prompt", or "chosen" and "rejected"
};

struct DataReport {
  struct Fault {
    RowFault kind;
    int64_t count = 0;
    std::string first;  // the error of the first such row
  };
  struct Bucket {
    int64_t from = 0, to = 0;  // tokens, both included
    int64_t count = 0;
  };
  struct Repeats {
    int64_t count = 0;  // rows that repeat an earlier one
    std::string first, first_earlier;
  };

  std::string name;
  int64_t num_examples = 0;
  int64_t num_good = 0;
  std::vector<Fault> faults;  // in order of their first rows
  int64_t min_tokens = 0, median_tokens = 0, p95_tokens = 0, max_tokens = 0;
  double mean_tokens = 0;
  int64_t total_tokens = 0;
  std::vector<Bucket> histogram;  // doubling buckets up to the longest
  int64_t limit = 0;
  int64_t num_over_long = 0;
  std::string first_over_long;
  int64_t num_crossing = 0;  // pairs with a token that reaches from the prompt into an answer
  std::string first_crossing;
  Repeats equal_rows, equal_prompts;
  std::optional<ShownExample> example;  // the first good one
};

[[nodiscard]] DataReport check_data(const Path& file, const DataCheckOptions& options);
[[nodiscard]] Json to_json(const DataReport& report);
[[nodiscard]] std::string to_text(const DataReport& report);

// Prompts of one file that are also in another (training prompts among validation prompts). Broken rows are left out.
struct PromptOverlap {
  int64_t num_prompts = 0;  // good rows of the second file
  int64_t num_shared = 0;   // of these, with a prompt that the first file has
  std::string first;        // where in the second file
};
[[nodiscard]] PromptOverlap prompt_overlap(const Path& first, const Path& second, const DataCheckOptions& options);

}  // namespace kedge
