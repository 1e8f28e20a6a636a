#include "kedge/reward/reward_protocol.h"

#include <cmath>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

void add_rollout(Json& json, const Rollout& rollout) {
  json.append("prompt", rollout.prompt);
  json.append("response", rollout.response);
  Json::Array ids;
  for (auto at = static_cast<size_t>(rollout.prompt_length); at < rollout.ids.size(); ++at) ids.emplace_back(int64_t{rollout.ids[at]});
  json.append("ids", std::move(ids));
  json.append("finished", rollout.finished);
  json.append("sample", rollout.sample);
  json.append("prompt_id", rollout.prompt_id);
  json.append("row", rollout.row == nullptr ? Json() : *rollout.row);
}

double read_reward(const Json& value, std::string_view where) {
  const double number = value.as_number(where);
  check(std::isfinite(number), where, ": expected a finite number");
  return number;
}

// A number, null, or an object with "reward" or "error".
RowReward read_row(const Json& reply, std::string_view where) {
  if (reply.is_null()) return {.error = "the command gave no reward (null)"};
  if (!reply.is_object()) return {.value = read_reward(reply, where)};
  if (const Json* error = reply.find("error"); error != nullptr && !error->is_null()) {
    const std::string& text = error->as_text("error");
    return {.error = text.empty() ? "the command returned \"error\" without a message" : text};
  }
  const Json& reward = reply.at("reward", where);
  if (reward.is_null()) return read_row(reward, where);
  RowReward row{.value = read_reward(reward, "reward")};
  if (const Json* parts = reply.find("parts"); parts != nullptr)
    for (const auto& [name, value] : parts->as_object("parts")) row.parts.emplace_back(name, read_reward(value, "parts." + name));
  return row;
}

}  // namespace

std::string reward_request(const RewardExchange& exchange, const Rollouts& rollouts) {
  ensure(rollouts.size() == exchange.num_rows && (exchange.batched || exchange.num_rows == 1), "an exchange of ", exchange.num_rows,
         " rows with ", rollouts.size(), " rollouts");
  Json request;
  request.set("id", exchange.id);
  if (exchange.batched) {
    Json::Array all;
    for (const auto& rollout : rollouts) {
      Json one{Json::Object{}};
      add_rollout(one, *rollout);
      all.push_back(std::move(one));
    }
    request.append("rollouts", std::move(all));
  } else {
    add_rollout(request, *rollouts.front());
  }
  return request.dump() + "\n";
}

std::vector<RowReward> parse_reward_reply(std::string_view line, const RewardExchange& exchange) {
  const Json reply = Json::parse(line, "reply");
  if (const Json* id = reply.find("id")) check(*id == Json(exchange.id), "reply: expected the id ", exchange.id, ", found ", id->dump());
  if (!exchange.batched) return {read_row(reply, "reply")};
  if (const Json* error = reply.find("error"); error != nullptr && !error->is_null()) return {exchange.num_rows, read_row(reply, "reply")};
  const Json& rewards = reply.is_array() ? reply : reply.at("rewards", "reply");
  const auto& items = rewards.as_array("rewards");
  check(items.size() == exchange.num_rows, "reply: expected ", exchange.num_rows, " rewards, found ", items.size());
  std::vector<RowReward> rows;
  for (const Json& item : items) rows.push_back(read_row(item, "rewards"));
  return rows;
}

}  // namespace kedge
