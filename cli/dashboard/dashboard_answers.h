#pragma once
// Answers, pairs of answers and samples of runs as JSON for the dashboard's page: searched, sorted, a page at a time. Independent of HTTP.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/inspect/answer_list.h"

namespace kedge::cli {

struct AnswerQuery {
  AnswerKey key = AnswerKey::reward;
  bool worst = false;
  std::string search = {};  // in prompts and answers; ignoring the case of a to z
  int64_t offset = 0, limit = 20;
};

// The steps that have records, and if there are none, why not.
[[nodiscard]] Json recorded_json(const Path& run, const Json& settings);

// The answers of a step; none: the newest. UsageError for a step that is not recorded or damaged.
[[nodiscard]] Json answers_json(const Path& run, std::optional<int64_t> step, const AnswerQuery& query);

struct PairQuery : AnswerQuery {
  std::optional<int64_t> step = {}, other_step = {};  // both, or none: early and late answers to the same prompts, from several steps
};
[[nodiscard]] Json pairs_json(const Path& run, const Path& other_run, const PairQuery& query);

enum class SampleKey { step, reward, length };
constexpr auto enum_names(SampleKey) {
  return std::array<EnumName<SampleKey>, 3>{{{"step", SampleKey::step}, {"reward", SampleKey::reward}, {"length", SampleKey::length}}};
}
struct SampleQuery {
  SampleKey key = SampleKey::step;
  bool worst = false;
  std::string table = {};  // empty: all
  std::string search = {};
  int64_t offset = 0, limit = 20;
};
// Of the end of samples.jsonl; lines that cannot be read are skipped.
[[nodiscard]] Json samples_json(const Path& run, const SampleQuery& query);

// Does the text contain the other? Every text contains the empty one.
[[nodiscard]] bool has_text(std::string_view text, std::string_view wanted);

}  // namespace kedge::cli
