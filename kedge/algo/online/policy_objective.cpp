#include "kedge/algo/online/policy_objective.h"

#include <utility>

#include "kedge/algo/online/policy_losses.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// The terms of the ratio alone. Where nothing is known from before the updates, the policy is compared with itself.
Tensor ratio_of(const PassTokens& tokens, RatioLevel level) {
  const Tensor previous = tokens.previous.defined() ? tokens.previous : tokens.logprobs.detach();
  switch (level) {
    case RatioLevel::token:
      return (tokens.logprobs - previous).exp();
    case RatioLevel::sequence:
      return over_rows(tokens.logprobs - previous, tokens.lengths, RowReduce::mean).exp();
    case RatioLevel::product:
      return over_rows(tokens.logprobs - previous, tokens.lengths, RowReduce::sum).exp();
  }
  throw Bug("no such level");
}

}  // namespace

PassLoss policy_loss(const PassTokens& tokens, const PolicyLossOptions& options) {
  Tensor losses, ratio;
  std::vector<PassNumber> numbers;
  const bool corrects_kl = options.kl.reference_policy_kl_penalty > 0 && options.kl.kl_ratio_correction;
  if (options.ratio != RatioKind::none || corrects_kl) ratio = ratio_of(tokens, options.level);
  if (options.ratio == RatioKind::none) {
    losses = reinforce_terms(tokens.logprobs, tokens.advantages);
  } else {
    const ClippedTerms terms = options.ratio == RatioKind::cispo
                                   ? cispo_terms(ratio, tokens.logprobs, tokens.advantages, options.cispo_max)
                                   : clipped_terms(ratio, tokens.advantages, {options.clip_min, options.clip_max, options.clip_c});
    losses = terms.losses;
    if (options.reports)
      numbers = {{.name = options.prefix + "ratio", .values = terms.ratio, .base = 1},
                 {.name = options.prefix + "ratio_clamped", .values = terms.clamped, .base = 1},
                 {.name = options.prefix + "clip_fraction", .values = terms.limited.to(terms.ratio.scalar_type())}};
  }
  if (tokens.correction.defined()) losses = losses * tokens.correction;
  if (options.kl.reference_policy_kl_penalty > 0) {
    ensure(tokens.reference.defined(), "a KL without a reference");
    const Tensor plain = kl_terms(options.kl.reference_policy_kl_type, tokens.logprobs, tokens.reference);
    losses = losses + options.kl.reference_policy_kl_penalty * (corrects_kl ? plain * ratio : plain);
    if (options.reports) numbers.push_back({.name = "loss_kl", .values = plain.detach()});
  }
  if (options.entropy_bonus > 0) {
    const Tensor bonus = options.entropy_bonus * tokens.entropy;
    if (options.reports) numbers.push_back({.name = "scaled_entropy", .values = bonus.detach(), .of_trained = true});
    losses = losses - bonus;
  }
  return {losses, numbers};
}

TokenObjective policy_objective(PolicyLossOptions options, LossNorm norm) {
  const bool reports = options.reports, has_bonus = options.entropy_bonus > 0;
  TokenObjective objective{.norm = norm,
                           .loss = [options = std::move(options)](const PassTokens& tokens) { return policy_loss(tokens, options); },
                           .has_metrics = reports,
                           .wants_entropy = has_bonus};
  if (reports && !has_bonus) objective.constants.set("scaled_entropy", 0);
  return objective;
}

}  // namespace kedge
