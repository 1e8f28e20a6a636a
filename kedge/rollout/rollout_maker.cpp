#include "kedge/rollout/rollout_maker.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/data/files/sampler.h"
#include "kedge/dist/partition.h"
#include "kedge/rollout/rollout_exchange.h"
#include "kedge/rollout/value_collector.h"
#include "kedge/rollout/work_queue.h"

namespace kedge {

RolloutMaker::RolloutMaker(Engine& engine, RolloutScorers scorers, RolloutRanks ranks, WorkQueue* queue)
    : engine_(engine), scorers_(scorers), ranks_(std::move(ranks)), queue_(queue) {}

RolloutRows RolloutMaker::generate(const RolloutRequest& wish) {
  RolloutRows rows = exchange_rollouts(ranks_.group, generate_own(wish));
  check_all_answered(rows, static_cast<int64_t>(wish.batch.size()), wish.num_samples);
  return rows;
}

RolloutRows RolloutMaker::generate_own(const RolloutRequest& wish) {
  ensure(asked_.empty(), "rollouts whose rewards were never collected");
  const auto size = static_cast<int64_t>(wish.batch.size());
  if (queue_ != nullptr) {
    queue_->fill(size);
  } else {
    const Share share = share_of(size, ranks_.group.rank(), ranks_.group.size());
    for (int64_t slot = share.begin; slot < share.end; ++slot) submit(wish, slot);
  }
  RolloutRows rows;
  size_t num_asked = 0;
  const EngineEvents events = {.token = {}, .end = [&](Completion completion) { rows.push_back(finish(wish, std::move(completion))); }};
  bool is_queue_empty = queue_ == nullptr;
  for (;;) {
    // A piece is fetched while another is still running, so that the engine does not run dry.
    while (!is_queue_empty && static_cast<int64_t>(open_.size()) <= queue_->piece()) {
      const std::vector<int64_t> slots = queue_->take();
      for (const int64_t slot : slots) submit(wish, slot);
      is_queue_empty = slots.empty();
    }
    if (!engine_.step(events) && is_queue_empty) break;
    ask_about(std::span(rows).subspan(num_asked), wish);
    num_asked = rows.size();
  }
  ensure(open_.empty(), "prompts that were not answered");
  return rows;
}

void RolloutMaker::submit(const RolloutRequest& wish, int64_t slot) {
  Open open{.slot = slot, .num_left = wish.num_samples, .prompt = wish.prompts.get(wish.batch[static_cast<size_t>(slot)]), .row = nullptr};
  open.row = std::make_shared<const Json>(std::move(open.prompt.row));
  GenerateRequest request;
  request.prompt = open.prompt.ids;
  request.num_samples = wish.num_samples;
  request.max_new = wish.max_new;
  request.min_new = wish.min_new;
  request.vocab_size = wish.vocab_size;
  request.sampling = wish.sampling;
  request.logprob_temperature = wish.logprob_temperature;
  request.key = {
      .seed = wish.seed, .purpose = wish.purpose, .round = wish.round, .prompt = static_cast<uint64_t>(open.prompt.id), .sample = 0};
  request.end_ids = wish.responses.end_ids();
  request.num_eos = wish.responses.num_eos();
  request.ends = wish.responses.ends();
  request.where = str("prompt ", open.prompt.id);
  const int64_t number = engine_.submit(std::move(request));
  open_.emplace(number, std::move(open));
}

RolloutRow RolloutMaker::finish(const RolloutRequest& wish, Completion completion) {
  const auto found = open_.find(completion.request);
  Open& open = found->second;
  if (completion.finish == Finish::failed)
    throw Error(str("prompt ", open.prompt.id, ": no answer can be sampled: ", completion.error, "; the policy's weights may be corrupt"));
  const auto rollout = std::make_shared<Rollout>();
  rollout->prompt_id = open.prompt.id;
  rollout->sample = completion.sample;
  rollout->prompt_length = static_cast<int64_t>(open.prompt.ids.size());
  rollout->ids = open.prompt.ids;
  rollout->ids.insert(rollout->ids.end(), completion.tokens.begin(), completion.tokens.end());
  rollout->logprobs = std::move(completion.logprobs);
  rollout->prompt = open.prompt.text;
  rollout->row = open.row;
  // Whether it ended is determined from the ids, not from the engine.
  const ResponseLimits limits{rollout->prompt_length, wish.max_new, wish.vocab_size};
  const ResponseEnd end = find_response_end(rollout->ids, limits, wish.responses.rules(), wish.responses.encoder());
  rollout->finished = end.is_end;
  rollout->ids.resize(static_cast<size_t>(end.length));
  rollout->logprobs.resize(static_cast<size_t>(rollout->response_length()));
  const auto ids = std::span<const TokenId>(rollout->ids);
  const auto prompt = ids.first(open.prompt.ids.size()), response = ids.subspan(open.prompt.ids.size());
  rollout->response = utf8_replace_invalid(wish.responses.judged_text(prompt, response, end.is_end));
  RolloutRow row{.rollout = rollout, .slot = open.slot};
  if (--open.num_left == 0) open_.erase(found);
  return row;
}

void RolloutMaker::ask_about(std::span<const RolloutRow> rows, const RolloutRequest& wish) {
  if (rows.empty() || !ranks_.asks) return;
  Asked asked;
  for (const RolloutRow& row : rows) asked.rollouts.push_back(row.rollout);
  if (wish.wants_values && scorers_.values != nullptr) scorers_.values->ask(asked.rollouts);  // first: rewards may come with them
  if (!wish.wants_rewards) return;
  asked.rewards = scorers_.rewards.submit(asked.rollouts);
  asked_.push_back(std::move(asked));
}

void RolloutMaker::take_rewards(RolloutRows& rows) {
  std::map<const Rollout*, int64_t> places;
  for (size_t i = 0; i < rows.size(); ++i) places[rows[i].rollout.get()] = static_cast<int64_t>(i);
  std::vector<int64_t> own;
  for (Asked& asked : std::exchange(asked_, {})) {
    std::vector<RowReward> rewards = asked.rewards.get();
    for (size_t i = 0; i < rewards.size(); ++i) {
      own.push_back(places.at(asked.rollouts[i].get()));
      rows[static_cast<size_t>(own.back())].reward = std::move(rewards[i]);
    }
  }
  exchange_rewards(ranks_.world.value_or(ranks_.group), own, rows);
}

}  // namespace kedge
