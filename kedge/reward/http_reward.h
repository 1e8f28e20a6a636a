#pragma once
// Rewards from a plain HTTP endpoint, as in other toolkits' reward services: a POST of texts to an address like
// http://host:5000/get_reward, answered by a list of numbers.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kedge/core/stop.h"
#include "kedge/core/task_pool.h"
#include "kedge/net/http_client.h"
#include "kedge/reward/reward.h"

namespace kedge {

// {"query": [prompt and answer, ...], "prompts": [...], "responses": [...], "labels": [the row's label or answer, ...], "rows": [...]}
[[nodiscard]] std::string http_reward_body(const Rollouts& rollouts);
// {"rewards": [number or null, ...]}, {"reward": [...]} or a bare list. An Error for anything else or another length; null is a
// row that failed.
[[nodiscard]] std::vector<RowReward> read_http_rewards(const std::string& body, size_t count, const std::string& where);

struct HttpRewardOptions {
  HttpAddress address;
  int64_t max_tries = 8;                                                   // of a call without a reply, or with HTTP 500
  size_t max_in_flight = 64;                                               // calls; more wait
  std::chrono::milliseconds timeout = std::chrono::minutes(5);             // of one try
  std::chrono::milliseconds first_pause = std::chrono::milliseconds(500);  // before the second attempt; doubles
  StopQuestion stop = {};                                                  // a signal ends attempts where nothing listens, and long pauses
};

// Thread-safe. An endpoint that does not answer ends the run when the attempts are used up. Rows that it refuses, or for which it answers
// with HTTP 500 at every attempt or with anything but rewards, have an error. Interrupted if a signal was received while it was
// unreachable, or in a pause of several seconds before the next attempt.
class HttpReward : public RewardSource {
 public:
  explicit HttpReward(HttpRewardOptions options) : options_(std::move(options)), pool_(options_.max_in_flight) {}

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  [[nodiscard]] std::vector<RowReward> ask(const Rollouts& rollouts, int64_t tries_of_500);
  // Of status 200, one that refuses them, or 500 when the tries of that are used up.
  [[nodiscard]] HttpResponse reply_to(const Rollouts& rollouts, int64_t tries_of_500);
  [[nodiscard]] std::unique_ptr<HttpConnection> take_connection();

  HttpRewardOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpConnection>> idle_;
  TaskPool pool_;  // last: it uses the others
};

}  // namespace kedge
