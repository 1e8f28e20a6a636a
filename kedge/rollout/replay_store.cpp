#include "kedge/rollout/replay_store.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// What JSON allows and a step does not.
void check_rows(const RolloutRows& rows, const StepKey& key, int64_t vocab_size, const std::string& name) {
  check(!rows.empty(), name, ":1: a step without answers");
  for (size_t i = 0; i < rows.size(); ++i) {
    const Rollout& rollout = *rows[i].rollout;
    const std::string where = str(name, ":", i + 2);
    check(rows[i].slot >= 0 && rows[i].slot < std::ssize(key.batch), where, ": slot ", rows[i].slot, " of a step of ", key.batch.size(),
          " prompts");
    check(rollout.prompt_length >= 1, where, ": an answer without a prompt");
    const auto other = std::find_if(rollout.ids.begin(), rollout.ids.end(), [&](TokenId id) { return id >= vocab_size; });
    check(other == rollout.ids.end(), where, ": token ", other - rollout.ids.begin(), " is ", other == rollout.ids.end() ? 0 : *other,
          ", but the network has ids below ", vocab_size);
    check(std::ssize(rollout.logprobs) == rollout.response_length(), where, ": \"engine_logprobs\" has ", rollout.logprobs.size(),
          " numbers for ", rollout.response_length(), " tokens");
  }
}

// Rewards may look at the prompt's row of the data file, which a record does not have.
void add_data_rows(RolloutRows& rows, const StepKey& key) {
  std::map<int64_t, std::shared_ptr<const Json>> by_slot;
  for (RolloutRow& row : rows) {
    std::shared_ptr<const Json>& data = by_slot[row.slot];
    if (data == nullptr) data = std::make_shared<const Json>(key.prompts.get(key.batch[static_cast<size_t>(row.slot)]).row);
    Rollout rollout = *row.rollout;
    rollout.row = data;
    row.rollout = std::make_shared<const Rollout>(std::move(rollout));
  }
}

RolloutRows answers_of(const RolloutRows& rows) {
  RolloutRows answers;
  for (const RolloutRow& row : rows) answers.push_back({.rollout = row.rollout, .slot = row.slot, .reward = row.reward});
  return answers;
}

}  // namespace

RecordedStep read_recorded_step(const Path& folder, int64_t step) {
  const Path path = record_path(folder, step);
  const std::string name = path.string(), text = read_text(path);
  RecordedStep recorded{.header = parse_record_header(text, name), .rows = parse_record_rows(text, name, RecordParts::all)};
  check(recorded.header.step == step, name, ":1: has the answers of step ", recorded.header.step);
  return recorded;
}

ReplayStore::ReplayStore(Path folder, int64_t vocab_size, double tolerance)
    : folder_(std::move(folder)), vocab_size_(vocab_size), tolerance_(tolerance) {}

std::optional<RolloutRows> ReplayStore::load(const StepKey& key) {
  recorded_.reset();
  places_.clear();
  look_ = {};
  const int64_t step = key.header.step;
  if (!is_file(record_path(folder_, step))) return std::nullopt;
  RecordedStep recorded = read_recorded_step(folder_, step);
  check_rows(recorded.rows, key, vocab_size_, record_path(folder_, step).string());
  add_data_rows(recorded.rows, key);
  for (size_t i = 0; i < recorded.rows.size(); ++i) places_[recorded.rows[i].rollout.get()] = i;
  recorded_ = std::move(recorded);
  look_ = look(key);
  return answers_of(recorded_->rows);
}

CloseLook ReplayStore::look(const StepKey& key) const {
  CloseLook look;
  if (helpers_.add_logprobs) {
    RolloutRows rows = answers_of(recorded_->rows);
    helpers_.add_logprobs(rows);
    for (RolloutRow& row : rows) look.logprobs.push_back(std::move(row.logprobs));
  }
  if (helpers_.rewards != nullptr) {
    Rollouts rollouts;
    for (const RolloutRow& row : recorded_->rows) rollouts.push_back(row.rollout);
    look.rewards = helpers_.rewards->submit(std::move(rollouts)).get();
  }
  if (helpers_.draws) {
    std::map<std::pair<int64_t, int64_t>, TokenIds> drawn;
    for (const RolloutRow& row : key.draw()) drawn[{row.slot, row.rollout->sample}] = row.rollout->ids;
    for (const RolloutRow& row : recorded_->rows) look.drawn.push_back(drawn[{row.slot, row.rollout->sample}]);
  }
  return look;
}

void ReplayStore::save(RecordHeader header, RolloutRows rows) {
  weights_after_ = header.weights_after;
  helpers_ = {};
  if (!recorded_) {
    comparison_ = {.step = header.step, .notes = {str("step ", header.step, " has no record: its answers were generated again")}};
    return;
  }
  comparison_ = compare_step(*recorded_, {std::move(header), std::move(rows)}, look_, tolerance_);
}

const RolloutRow* ReplayStore::find(const Rollout& rollout) const {
  const auto found = places_.find(&rollout);
  return found == places_.end() ? nullptr : &recorded_->rows[found->second];
}

}  // namespace kedge
