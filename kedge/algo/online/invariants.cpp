#include "kedge/algo/online/invariants.h"

#include "kedge/core/error.h"

namespace kedge {
namespace {

std::vector<std::string> broken_by_updates(const StepEvidence& seen) {
  std::vector<std::string> broken;
  const double ratio_bound = seen.is_exact ? 0 : kMaxRatioGap;
  if (seen.ratio_gap && !(*seen.ratio_gap <= ratio_bound))
    broken.push_back(str("the ratios of the step's first update are not 1: its log-probs differ from those before it by ", *seen.ratio_gap,
                         " nats per token; the limit is ", ratio_bound,
                         "; the responses were not scored with the weights and settings that train on them"));
  if (seen.engine_gap && !(*seen.engine_gap <= kMaxEngineGap))
    broken.push_back(str("generation and training disagree: the log-probs of the same tokens differ by ", *seen.engine_gap,
                         " nats per token; the limit is ", kMaxEngineGap,
                         "; generation does not use the weights that are trained; check train_rollouts/logprob_gap_mean and "
                         "trainer.precision"));
  if (seen.num_weighted != seen.num_sampled)
    broken.push_back(str("the loss covers ", seen.num_weighted, " tokens, but ", seen.num_sampled,
                         " were sampled in the responses that are trained on"));
  if (seen.learned && !seen.changed)
    broken.push_back(
        "an update with a learning rate and a gradient above 0 changed no weight; check optim.lr, which may be too small for fp32");
  if (!seen.is_finite) broken.push_back("weights are no longer finite numbers; check optim.lr, train_optim/grad_norm and the rewards");
  return broken;
}

}  // namespace

std::vector<std::string> Invariants::judge(int64_t step, const StepEvidence& evidence) {
  if (on_broken_ == OnBroken::off) return {};
  std::vector<std::string> broken = broken_by_updates(evidence);
  // Training must not continue with weights that are not finite, at any step.
  bool ends = !broken.empty() && (!judged_ || !evidence.is_finite);
  judged_ = judged_ || evidence.learned;
  const bool all_failed = evidence.num_rows > 0 && evidence.num_failed_rewards == evidence.num_rows;
  num_without_reward_ = all_failed ? num_without_reward_ + 1 : 0;
  if (all_failed) {
    ends = ends || !had_reward_ || num_without_reward_ >= patience_;
    broken.push_back(str("every reward of the step failed (", evidence.num_rows, " of ", evidence.num_rows,
                         num_without_reward_ > 1 ? str("; ", num_without_reward_, " steps in a row") : "",
                         "), so nothing can be learned; the first: ", evidence.first_failure));
  }
  had_reward_ = had_reward_ || !all_failed;
  if (!ends || on_broken_ == OnBroken::warn) return broken;
  std::string all;
  for (const std::string& one : broken) all += (all.empty() ? "" : "\n") + one;
  throw Error(str("step ", step, ": ", all, "\nThe run ends here; ", key_, "=warn would continue"));
}

Json Invariants::state() const {
  return Json::Object{{"judged", judged_}, {"had_reward", had_reward_}, {"num_without_reward", num_without_reward_}};
}

void Invariants::restore(const Json& state) {
  const std::string where = "invariants state";
  judged_ = state.at("judged", where).as_bool(where);
  had_reward_ = state.at("had_reward", where).as_bool(where);
  num_without_reward_ = state.at("num_without_reward", where).as_integer(where);
}

}  // namespace kedge
