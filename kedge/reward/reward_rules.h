#pragma once
// Rules that score an answer without a model: functions from one rollout to its reward. Safe to call from several threads.
// A row that lacks what its rule needs has an error, never 0.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/config/config_schema.h"
#include "kedge/reward/number_answer.h"
#include "kedge/reward/reward.h"

namespace kedge {

using RewardRule = std::function<RowReward(const Rollout&)>;

// The reward of a right and of a wrong answer.
struct Marks {
  double correct = 1, wrong = 0;
};

enum class RegexUse { match, count };
constexpr auto enum_names(RegexUse) { return std::array<EnumName<RegexUse>, 2>{{{"match", RegexUse::match}, {"count", RegexUse::count}}}; }
// 1 or 0 for an answer that the pattern is found in, or how often it is found there. `where` opens the error of a wrong pattern.
[[nodiscard]] RewardRule regex_rule(std::string_view pattern, RegexUse use, std::string_view where);

// Does the pattern match all of the answer? A dot matches a line end too.
[[nodiscard]] RewardRule format_rule(std::string_view pattern, const Marks& marks, std::string_view where);

// The sum of the words' values; see lexicon.h.
[[nodiscard]] RewardRule lexicon_rule(const Path& file);

constexpr auto enum_names(AnswerPlace) {
  return std::array<EnumName<AnswerPlace>, 4>{
      {{"any", AnswerPlace::any}, {"last", AnswerPlace::last}, {"hashes", AnswerPlace::hashes}, {"boxed", AnswerPlace::boxed}}};
}
struct AnswerRule {
  std::string field = {};                // of the row: a number, or text that ends with one ("... #### 72"); empty: the usual ones
  AnswerPlace place = AnswerPlace::any;  // where the response has it
  double tolerance = 1e-6;
  Marks marks = {};
};
// The tolerance is multiplied by the size of the right number if that is above 1. An answer without a number is wrong; a row without one
// has an error.
[[nodiscard]] RewardRule number_rule(AnswerRule rule);

// Is the final answer the row's, or one of the row's, by value? See math/math_answer.h, and math/math_value.h for the tolerance. A row
// whose answer cannot be read has an error.
[[nodiscard]] RewardRule math_rule(AnswerRule rule);

// What an answer is compared with, both trimmed.
struct RightText {
  std::string field = {};  // of the row: text, a number, or a list of them, any of which is right; empty: the usual ones (row_answer.h)
  bool ignore_case = false;
  bool collapse_spaces = false;  // any run of white space counts as one blank
};
// Does the answer equal the row's text?
[[nodiscard]] RewardRule exact_rule(RightText right, const Marks& marks = {});

// Does the answer contain the row's text, exactly or normalized as in `right`?
[[nodiscard]] RewardRule contains_rule(RightText right, const Marks& marks = {});

// How much of the answer is right: the share of places at which it has the same character as the row's text. Of the longer one, so that
// what is missing and what is too much is wrong too; of several texts the one that the answer is nearest to.
[[nodiscard]] RewardRule overlap_rule(RightText right);

enum class LengthUnit { tokens, characters, words };
constexpr auto enum_names(LengthUnit) {
  return std::array<EnumName<LengthUnit>, 3>{
      {{"tokens", LengthUnit::tokens}, {"characters", LengthUnit::characters}, {"words", LengthUnit::words}}};
}
struct LengthRule {
  LengthUnit unit = LengthUnit::tokens;
  std::optional<int64_t> target = {};      // -|length - target| / target
  std::optional<int64_t> limit = {};       // 0 up to the limit, then -(length - limit) / window
  std::optional<int64_t> max_length = {};  // 0 up to max_length - window, falling to -1 at max_length, and no further
  std::optional<int64_t> window = {};      // default: the limit; required with max_length
};
// At most one of target, limit and max_length; the length itself if there is none.
[[nodiscard]] RewardRule length_rule(LengthRule rule);

}  // namespace kedge
