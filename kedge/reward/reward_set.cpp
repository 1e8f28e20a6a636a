#include "kedge/reward/reward_set.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/reward/reward_command.h"
#include "kedge/reward/rule_source.h"

namespace kedge {
namespace {

bool same(const Json& a, const Json& b) { return a == b || (a.is_number() && b.is_number() && a.as_number("") == b.as_number("")); }

const Json* field_if_any(const Json* row, const std::string& name) { return row == nullptr ? nullptr : row->find(name); }

bool takes(const RewardSourceConfig& config, const Json* row) {
  return std::all_of(config.route.begin(), config.route.end(), [&](const auto& wanted) {
    const Json* found = field_if_any(row, wanted.first);
    if (found == nullptr) return false;
    if (!wanted.second.is_array()) return same(*found, wanted.second);
    const auto& any = wanted.second.as_array(wanted.first);
    return std::any_of(any.begin(), any.end(), [&](const Json& value) { return same(*found, value); });
  });
}

double clipped(double value, const std::optional<std::vector<double>>& bounds) {
  return bounds ? std::clamp(value, (*bounds)[0], (*bounds)[1]) : value;
}

}  // namespace

std::optional<std::string> nobody_takes(const RewardConfig& config, const Json* row) {
  if (std::any_of(config.sources.begin(), config.sources.end(), [&](const auto& source) { return takes(source.second, row); }))
    return std::nullopt;
  std::set<std::string> fields;
  std::string wanted, has;
  for (const auto& [name, source] : config.sources) {
    wanted += str(wanted.empty() ? "" : "; ", "reward.sources.", name, " takes ");
    bool first = true;
    for (const auto& [field, value] : source.route) {
      fields.insert(field);
      wanted += str(std::exchange(first, false) ? "" : " and ", field, ": ", value.dump());
    }
  }
  for (const std::string& field : fields) {
    const Json* found = field_if_any(row, field);
    has += str(has.empty() ? "" : ", ", field, found == nullptr ? " is missing" : " is " + found->dump());
  }
  return str("no reward source takes a row where ", has, "; ", wanted);
}

struct RewardSet::Job {
  Rollouts rollouts;
  std::vector<Asked> asked;
  std::promise<std::vector<RowReward>> promise;
};

RewardSet::RewardSet(RewardConfig config, const RewardSourceMaker& make_other) : config_(std::move(config)) {
  check_rewards(config_);
  for (const auto& [name, source] : config_.sources) add_member("reward.sources." + name, name, source, make_other);
  for (const auto& [name, source] : config_.watch) {
    add_member("reward.watch." + name, "watch/" + name, source, make_other);
    members_.back().is_watched = true;
  }
}

RewardSet::~RewardSet() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  for (Member& member : members_) member.source.reset();  // cancels pending calls, so that nothing waits for them below
}

void RewardSet::add_member(std::string key, std::string label, const RewardSourceConfig& config, const RewardSourceMaker& make_other) {
  Member member{.key = std::move(key), .label = std::move(label), .config = config};
  if (auto rule = make_rule(config, member.key)) {
    member.is_rule = true;
    member.source = std::make_unique<RuleSource>(std::move(*rule));
  } else if (config.kind == RewardKind::command) {
    RewardCommandConfig command{.name = member.key, .command = command_words(config.command.value()), .retries = 0};  // retries are ours
    command.workers = config.workers.value_or(command.workers);
    command.batch = config.batch.value_or(command.batch);
    command.timeout_s = config.timeout.value_or(command.timeout_s);
    command.start_timeout_s = config.start_timeout.value_or(command.start_timeout_s);
    member.source = std::make_unique<RewardCommand>(std::move(command));
  } else if (make_other) {
    member.source = make_other(member.key, config);
  }
  check(member.source != nullptr, member.key, ".kind: rewards of kind ", name_of(config.kind), " are not available here");
  members_.push_back(std::move(member));
}

std::future<std::vector<RowReward>> RewardSet::submit(Rollouts rollouts) {
  auto job = std::make_shared<Job>();
  auto future = job->promise.get_future();
  for (const auto& rollout : rollouts)
    if (const auto why = nobody_takes(config_, rollout->row.get())) {
      job->promise.set_exception(std::make_exception_ptr(UsageError(str("prompt ", rollout->prompt_id, ": ", *why))));
      return future;
    }
  for (const Member& member : members_) {
    Asked asked{.member = &member};
    for (size_t i = 0; i < rollouts.size(); ++i)
      if (takes(member.config, rollouts[i]->row.get())) asked.rows.push_back(i);
    if (!asked.rows.empty()) job->asked.push_back(std::move(asked));
  }
  for (Asked& asked : job->asked) {
    Rollouts its;
    for (const size_t row : asked.rows) its.push_back(rollouts[row]);
    asked.reply = asked.member->source->submit(std::move(its));
  }
  job->rollouts = std::move(rollouts);
  worker_.post([this, job] {
    try {
      finish(*job);
    } catch (...) {
      job->promise.set_exception(std::current_exception());
    }
  });
  return future;
}

void RewardSet::finish(Job& job) {
  std::vector<double> sums(job.rollouts.size(), 0);
  std::vector<RowReward> rewards(job.rollouts.size());
  for (Asked& asked : job.asked) {
    const Member& member = *asked.member;
    std::vector<RowReward> its = rewards_of(asked, job.rollouts);
    for (size_t i = 0; i < its.size(); ++i) {
      const size_t row = asked.rows[i];
      if (its[i].failed()) {
        if (!member.is_watched) rewards[row].error += (rewards[row].error.empty() ? "" : "; ") + its[i].error;
        continue;
      }
      const double value = clipped(its[i].value, member.config.clip);
      rewards[row].parts.emplace_back(member.label, value);
      for (const auto& [part, number] : its[i].parts) rewards[row].parts.emplace_back(member.label + "/" + part, number);
      if (!member.is_watched) sums[row] += member.config.weight * value;
    }
  }
  size_t num_failed = 0;
  const RowReward* first_failed = nullptr;
  for (size_t row = 0; row < rewards.size(); ++row) {
    if (!rewards[row].failed()) {
      rewards[row].value = trained_on(sums[row]);
    } else if (++num_failed == 1) {
      first_failed = &rewards[row];
    }
  }
  if (num_failed > 0) {
    const std::string what = str(num_failed, " of ", rewards.size(), " rows got no reward; the first: ", first_failed->error);
    if (config_.on_failure == OnRewardFailure::fail) throw Error(what);
    failures_.note(what);
  }
  job.promise.set_value(std::move(rewards));
}

// One source's rewards of its rows, after the retries, with errors that name the source and the prompt.
std::vector<RowReward> RewardSet::rewards_of(Asked& asked, const Rollouts& rollouts) {
  const Member& member = *asked.member;
  const auto checked = [](std::vector<RowReward> rewards, size_t wanted) {
    ensure(rewards.size() == wanted, "a source gave ", rewards.size(), " rewards for ", wanted, " rows");
    for (RowReward& reward : rewards)
      if (!reward.failed() && !std::isfinite(reward.value)) reward.error = "its reward is not a finite number";
    return rewards;
  };
  std::vector<RowReward> rewards;
  try {
    rewards = checked(asked.reply.get(), asked.rows.size());
  } catch (const Error& error) {
    if (!member.is_watched) throw;
    rewards.assign(asked.rows.size(), RowReward{.error = error.what()});  // it is not trained on
  }
  for (int64_t round = 0; round < config_.retries && !member.is_rule; ++round) {
    std::vector<size_t> failed;
    Rollouts again;
    for (size_t i = 0; i < rewards.size(); ++i)
      if (rewards[i].failed()) failed.push_back(i), again.push_back(rollouts[asked.rows[i]]);
    if (failed.empty()) break;
    std::vector<RowReward> second = checked(ask_again(member, std::move(again)), failed.size());
    for (size_t i = 0; i < failed.size(); ++i) rewards[failed[i]] = std::move(second[i]);
  }
  for (size_t i = 0; i < rewards.size(); ++i)
    if (rewards[i].failed()) {
      const std::string prompt = member.is_rule ? "" : str("prompt ", rollouts[asked.rows[i]]->prompt_id, ": ");
      const std::string key = rewards[i].error.starts_with(member.key) ? "" : member.key + ": ";  // a command names itself
      rewards[i].error = str(key, prompt, rewards[i].error);
      if (member.is_watched) log_warn(rewards[i].error);
    }
  return rewards;
}

std::vector<RowReward> RewardSet::ask_again(const Member& member, Rollouts rollouts) {
  const size_t num_rows = rollouts.size();
  std::future<std::vector<RowReward>> reply;
  {
    const std::lock_guard lock(mutex_);  // the source is destroyed only after closing_ is set
    if (closing_) return std::vector<RowReward>(num_rows, RowReward{.error = "closed before it replied"});
    reply = member.source->submit(std::move(rollouts));
  }
  try {
    return reply.get();
  } catch (const Error& error) {
    if (!member.is_watched) throw;
    return std::vector<RowReward>(num_rows, RowReward{.error = error.what()});
  }
}

double RewardSet::trained_on(double sum) const {
  const RewardStandardization& standard = config_.standardization;
  if (standard.enable) sum = (sum - *standard.mean) / *standard.std;
  return clipped(sum * config_.scale, config_.clip);
}

}  // namespace kedge
