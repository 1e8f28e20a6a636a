// What the online trainer checks about its own steps: answers that never end, invariants, and the gap between engine and training.
#include <utility>

#include "kedge/algo/online/generation.h"
#include "kedge/algo/online/online_trainer.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"

namespace kedge {

// Answers that never end teach nothing, or to never end: the most important check of a first step.
void OnlineTrainer::look_at_ends(const RolloutRows& rows) const {
  if (!is_first()) return;
  std::vector<std::pair<TokenId, std::string>> ends;
  for (const TokenId id : responses_.end_ids()) ends.emplace_back(id, parts_.tokenizer.token_of(id));
  if (const auto hint = ending_hint(rows, ends, ending_remedy(settings_))) log_warn(*hint);
}

// Those that wait are computed again: the same responses, but slower.
void OnlineTrainer::look_at_preemptions() {
  const int64_t all = engine_.stats().num_preempted, now = all - std::exchange(num_preempted_, all);
  if (now == 0 || generator().parameters().options().tensor.rank() != 0) return;
  crowded_steps_.note("step ", round_, ": the ", format_bytes(engine_.memory_bytes()),
                      " for keys and values were full, so responses waited and were computed again (preemptions: ", now,
                      "); model.engine.memory gives generation more, and model.engine.max_running lets fewer responses run together");
}

void OnlineTrainer::look_at_invariants(const OnlineStep& step, const Metrics& metrics) {
  if (invariants_.is_off()) return;
  StepEvidence seen = step.evidence;
  seen.num_rows = std::ssize(step.rows);
  for (const RolloutRow& row : step.rows)
    if (row.reward.failed() && seen.num_failed_rewards++ == 0) seen.first_failure = row.reward.error;
  seen.engine_gap = metrics.find("logprob_gap_mean");
  seen.is_exact = parts_.model.device().is_cpu() && !trusts_engine_;
  seen.is_finite = policy_.has_finite_weights();
  for (const std::string& broken : invariants_.judge(round_, seen))
    if (is_first()) log_warn("step ", round_, ": ", broken);
}

// Log-probabilities of the engine and of training are equal on a CPU. If they ever differ, training's own are used from then on.
void OnlineTrainer::look_at_gap(const Metrics& metrics) {
  const double gap = metrics.find("logprob_gap_max").value_or(0);
  if (!trusts_engine_ || settings_.rollouts.logprobs != LogprobSource::automatic || gap == 0) return;
  log_warn_of_job("step ", round_, ": log-probabilities of generation and of training differ by up to ", gap,
                  "; from now on they are recomputed before every step's updates");
  trusts_engine_ = false;
}

}  // namespace kedge
