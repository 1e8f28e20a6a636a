#include "cli/text/answer_json.h"

#include <optional>

#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

Json json_of(const std::vector<float>& values) {
  Json::Array array;
  for (const float value : values) array.push_back(short_number(value));
  return array;
}

}  // namespace

Json json_of(int64_t step, const RolloutRow& row, AnswerParts parts) {
  const Rollout& rollout = *row.rollout;
  Json::Object sources;
  for (const auto& [name, value] : row.reward.parts) sources.emplace_back(name, value);
  Json json(Json::Object{{"step", step},
                         {"prompt_id", rollout.prompt_id},
                         {"slot", row.slot},
                         {"sample", rollout.sample},
                         {"prompt", rollout.prompt},
                         {"response", rollout.response},
                         {"length", rollout.response_length()},
                         {"finished", rollout.finished},
                         {"reward", number_or_null(number_of(row, AnswerKey::reward))},
                         {"parts", std::move(sources)},
                         {"error", row.reward.failed() ? Json(row.reward.error) : Json()},
                         {"kl", number_or_null(number_of(row, AnswerKey::kl))},
                         {"kl_sum", row.reference.empty() ? Json() : Json(row.kl_sum)},
                         {"entropy", number_or_null(row.entropy)},
                         {"reward_with_kl", row.reward_with_kl},
                         {"baseline", row.baseline},
                         {"advantage", row.advantage},
                         {"trains", row.trains}});
  if (parts == AnswerParts::main) return json;
  Json::Array ids;
  for (const TokenId id : rollout.ids) ids.emplace_back(int64_t{id});
  json.set("ids", std::move(ids));
  json.set("prompt_length", rollout.prompt_length);
  json.set("engine_logprobs", json_of(rollout.logprobs));
  json.set("logprobs", json_of(row.logprobs));
  json.set("reference", json_of(row.reference));
  if (!row.values.empty()) json.set("values", json_of(row.values));
  if (!row.returns.empty()) json.set("returns", json_of(row.returns));
  if (!row.advantages.empty()) json.set("advantages", json_of(row.advantages));
  return json;
}

Json json_of(const AnswerPair& pair, const RolloutRow& first, const RolloutRow& second) {
  const auto both = [&](auto&& of) { return Json(Json::Array{of(first), of(second)}); };
  return Json::Object{{"prompt_id", first.rollout->prompt_id},
                      {"sample", first.rollout->sample},
                      {"differs", pair.differs},
                      {"prompt", first.rollout->prompt},
                      {"response", both([](const RolloutRow& row) { return Json(row.rollout->response); })},
                      {"reward", both([](const RolloutRow& row) { return number_or_null(number_of(row, AnswerKey::reward)); })},
                      {"kl", both([](const RolloutRow& row) { return number_or_null(number_of(row, AnswerKey::kl)); })},
                      {"length", both([](const RolloutRow& row) { return Json(row.rollout->response_length()); })},
                      {"finished", both([](const RolloutRow& row) { return Json(row.rollout->finished); })}};
}

Json json_of(int64_t step, const StepNumbers& numbers) {
  return Json::Object{{"step", step},
                      {"answers", numbers.num_answers},
                      {"prompts", numbers.num_prompts},
                      {"reward", number_or_null(numbers.reward)},
                      {"reward_std", number_or_null(numbers.reward_std)},
                      {"reward_min", number_or_null(numbers.reward_min)},
                      {"reward_max", number_or_null(numbers.reward_max)},
                      {"kl", number_or_null(numbers.kl)},
                      {"length", number_or_null(numbers.length)},
                      {"ended", numbers.num_ended},
                      {"failed", numbers.num_failed}};
}

}  // namespace kedge::cli
