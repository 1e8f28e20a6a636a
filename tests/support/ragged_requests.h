#pragma once
// Requests of many kinds that end in many ways, and everything that an engine says about them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/engine/engine.h"

#include "tests/support/tiny_models.h"

namespace kedge::testing {

// Of a model with 31 ids and a context of 256: other lengths, rules and ends from one to the next.
inline std::vector<GenerateRequest> ragged_requests(int64_t count) {
  std::vector<GenerateRequest> requests;
  for (int64_t i = 0; i < count; ++i) {
    GenerateRequest request;
    request.prompt = rows_of({1 + i * 13 % 90})[0];
    request.num_samples = 1 + i % 4;
    request.max_new = 1 + i * 17 % 60;
    request.min_new = i % 5;
    request.sampling.use_greedy = i % 3 == 0;
    request.sampling.temperature = i % 2 == 0 ? 1 : 0.7;
    if (i % 7 == 1) request.sampling.top_k = 8;
    if (i % 7 == 2) request.sampling.top_p = 0.8;
    if (i % 6 == 4) request.vocab_size = 29;
    request.key = {7, 0, 3, static_cast<uint64_t>(i), 0};
    request.end_ids = {static_cast<int32_t>(i % 31), 11};
    if (i % 4 == 1)
      request.ends = [](std::span<const int32_t> response) { return std::accumulate(response.begin(), response.end(), 0) % 29 == 3; };
    request.where = "request " + std::to_string(i);
    requests.push_back(std::move(request));
  }
  return requests;
}

// The same with a third of the ids as ends.
inline std::vector<GenerateRequest> short_requests(int64_t count) {
  std::vector<GenerateRequest> requests = ragged_requests(count);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].max_new = 60;
    for (size_t n = 0; n < 10; ++n) requests[i].end_ids.push_back(static_cast<int32_t>((3 * n + i) % 31));
  }
  return requests;
}

// By the prompt of the request's key and the sample, since requests may be numbered in another order.
using SampleName = std::pair<uint64_t, int64_t>;

struct Heard {
  std::map<SampleName, std::vector<int32_t>> tokens;
  std::map<SampleName, Completion> ended;
  EngineStats stats;  // of these requests
};

// Runs all of them; `again` may make a request out of one whose sample 0 has just ended, to be submitted by the listener.
inline Heard listen(Engine& engine, std::vector<GenerateRequest> requests,
                    const std::function<std::optional<GenerateRequest>(const GenerateRequest&)>& again = {}) {
  Heard heard;
  std::map<int64_t, GenerateRequest> open;
  const auto submit = [&](const GenerateRequest& request) {
    const int64_t number = engine.submit(request);
    open.emplace(number, request);
  };
  const EngineStats before = engine.stats();
  for (const GenerateRequest& request : requests) submit(request);
  EngineEvents events;
  events.token = [&](int64_t request, int64_t sample, int32_t token) {
    const SampleName name = {open.at(request).key.prompt, sample};
    EXPECT_FALSE(heard.ended.contains(name)) << "a token after the end";
    heard.tokens[name].push_back(token);
  };
  events.end = [&](Completion completion) {
    const GenerateRequest& request = open.at(completion.request);
    const SampleName name = {request.key.prompt, completion.sample};
    EXPECT_EQ(heard.tokens[name], completion.tokens);
    const bool is_new = heard.ended.emplace(name, std::move(completion)).second;
    EXPECT_TRUE(is_new) << "a second end";
    if (!again || name.second > 0) return;
    if (const auto next = again(request)) submit(*next);
  };
  while (engine.step(events)) {
  }
  EXPECT_TRUE(engine.idle());
  heard.stats = engine.stats();
  for (const auto member : {&EngineStats::num_steps, &EngineStats::num_computed, &EngineStats::num_drawn, &EngineStats::num_preempted})
    heard.stats.*member -= before.*member;
  return heard;
}

// Log-probabilities within `tolerance`, everything else equal.
inline void expect_same(const Heard& found, const Heard& wanted, double tolerance) {
  EXPECT_EQ(found.stats.num_drawn, wanted.stats.num_drawn);
  ASSERT_EQ(found.ended.size(), wanted.ended.size());
  double worst = 0;
  for (const auto& [name, completion] : wanted.ended) {
    SCOPED_TRACE(str("request ", name.first, " sample ", name.second));
    ASSERT_TRUE(found.ended.contains(name));
    const Completion& mine = found.ended.at(name);
    EXPECT_EQ(mine.tokens, completion.tokens);
    EXPECT_EQ(mine.finish, completion.finish);
    EXPECT_EQ(mine.error, completion.error);
    ASSERT_EQ(mine.logprobs.size(), completion.logprobs.size());
    for (size_t i = 0; i < mine.logprobs.size(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(mine.logprobs[i] - completion.logprobs[i])));
  }
  EXPECT_LE(worst, tolerance);
}

// How many of them ended so.
inline int64_t count_ended(const Heard& heard, Finish finish) {
  return std::count_if(heard.ended.begin(), heard.ended.end(), [&](const auto& one) { return one.second.finish == finish; });
}

}  // namespace kedge::testing
