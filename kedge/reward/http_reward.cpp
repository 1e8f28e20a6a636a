#include "kedge/reward/http_reward.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/log.h"
#include "kedge/reward/row_answer.h"

namespace kedge {

std::string http_reward_body(const Rollouts& rollouts) {
  Json::Array query, prompts, responses, labels, rows;
  for (const auto& rollout : rollouts) {
    query.emplace_back(rollout->prompt + rollout->response);
    prompts.emplace_back(rollout->prompt);
    responses.emplace_back(rollout->response);
    const Json* label = rollout->row ? rollout->row->find("label") : nullptr;
    if (label == nullptr && rollout->row) label = find_answer(*rollout->row, "");
    labels.push_back(label != nullptr ? *label : Json());
    rows.push_back(rollout->row ? *rollout->row : Json());
  }
  return Json(Json::Object{{"query", std::move(query)},
                           {"prompts", std::move(prompts)},
                           {"responses", std::move(responses)},
                           {"labels", std::move(labels)},
                           {"rows", std::move(rows)}})
      .dump_compact();
}

std::vector<RowReward> read_http_rewards(const std::string& body, size_t count, const std::string& where) {
  try {
    const Json json = Json::parse(body, where);
    const Json* list = json.is_array() ? &json : json.find("rewards");
    if (list == nullptr) list = json.find("reward");
    check(list != nullptr && list->is_array(), where, R"(: expected {"rewards": [...]}, found )", body.substr(0, 200));
    const Json::Array& values = list->as_array(where);
    check(values.size() == count, where, ": ", values.size(), " rewards for ", count, " rows");
    std::vector<RowReward> rewards;
    for (const Json& value : values) {
      rewards.emplace_back();
      if (value.is_null()) {
        rewards.back().error = where + ": gave no reward for this row";
      } else {
        rewards.back().value = value.as_number(where);
      }
    }
    return rewards;
  } catch (const UsageError& error) {
    throw Error(error.what());  // an error of the endpoint, not of the user
  }
}

namespace {

// The Retry-After of a busy endpoint, in seconds; a date, or more than ten minutes, is ignored.
std::chrono::milliseconds retry_after(const HttpResponse& response) {
  const std::string value = find_header(response.headers, "Retry-After").value_or("");
  const bool is_number = !value.empty() && value.size() < 6 && value.find_first_not_of("0123456789") == std::string::npos;
  return std::chrono::seconds(is_number ? std::min(std::stoll(value), 600LL) : 0);
}

// How often a row that is sent alone gets HTTP 500: there may be many such rows.
constexpr int64_t kRowTries = 2;
// A pause as long as this one is ended by a signal.
constexpr auto kLongPause = std::chrono::seconds(5);

// It does not like what it was sent, which may be a single row of it.
bool is_refusal(int status) { return status == 400 || status == 413 || status == 422; }

std::string endpoint_at(const HttpAddress& address) { return str("http://", address.host, ":", address.port, address.target); }

}  // namespace

std::future<std::vector<RowReward>> HttpReward::submit(Rollouts rollouts) {
  auto promise = std::make_shared<std::promise<std::vector<RowReward>>>();
  auto future = promise->get_future();
  pool_.post([this, promise, rollouts = std::move(rollouts)] {
    try {
      promise->set_value(ask(rollouts, options_.max_tries));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  return future;
}

std::unique_ptr<HttpConnection> HttpReward::take_connection() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<HttpConnection>(options_.address.host, options_.address.port);
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

// Of a reply that cannot be used most likely one row is the reason: each is sent alone.
std::vector<RowReward> HttpReward::ask(const Rollouts& rollouts, int64_t tries_of_500) {
  const std::string where = endpoint_at(options_.address);
  const HttpResponse response = reply_to(rollouts, tries_of_500);
  std::string problem = str("HTTP ", response.status, ": ", response.body.substr(0, 1000));
  if (response.status == 200) {
    try {
      return read_http_rewards(response.body, rollouts.size(), where);
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  problem = str("the reward endpoint ", where, " returned no rewards: ", problem);
  if (rollouts.size() == 1) return {RowReward{.error = problem}};
  log_warn(problem, "; its ", rollouts.size(), " rows are sent one by one");
  std::vector<RowReward> rewards;
  for (const auto& rollout : rollouts) rewards.push_back(ask({rollout}, std::min(options_.max_tries, kRowTries)).front());
  return rewards;
}

HttpResponse HttpReward::reply_to(const Rollouts& rollouts, int64_t tries_of_500) {
  const HttpAddress& address = options_.address;
  const std::string where = endpoint_at(address);
  const HttpRequest request{"POST", address.target, {{"Content-Type", "application/json"}}, http_reward_body(rollouts)};
  auto connection = take_connection();
  auto pause = options_.first_pause;
  for (int64_t tries = 1;; ++tries) {
    std::string problem;
    bool is_away = false;
    const bool was_open = connection->is_open();
    try {
      HttpResponse response = connection->send(request, {.answer = options_.timeout});
      const bool raises = response.status == 500 && tries >= tries_of_500;  // what most frameworks answer if the user's function raises
      if (response.status == 200 || is_refusal(response.status) || raises) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(connection));
        return response;
      }
      connection->close();  // behind a balancer, the next one may lead to another endpoint
      problem = str("HTTP ", response.status, ": ", response.body.substr(0, 1000));
      const bool is_busy = response.status == 408 || response.status == 425 || response.status == 429;
      if (is_busy) pause = std::max(pause, retry_after(response));
      if (response.status >= 400 && response.status < 500 && !is_busy) tries = options_.max_tries;  // retrying would change nothing
    } catch (const ConnectionError& error) {
      if (was_open) {  // most likely closed while idle
        --tries;
        continue;
      }
      problem = error.what();
      is_away = !error.sent();
    }
    if (tries >= options_.max_tries) throw Error(str("the reward endpoint ", where, " returned no rewards: ", problem));
    log_warn("the reward endpoint ", where, " returned no rewards (", problem, "); retrying");
    using Clock = std::chrono::steady_clock;
    const bool is_wait = is_away || pause >= kLongPause;
    for (const auto end = Clock::now() + pause; Clock::now() < end;) {
      std::this_thread::sleep_until(std::min(end, Clock::now() + kStopPeriod));
      if (is_wait) check_stop(options_.stop, str("the reward endpoint ", where, " (", problem, ")"));
    }
    pause = std::min<std::chrono::milliseconds>(pause * 2, std::chrono::seconds(30));
  }
}

}  // namespace kedge
