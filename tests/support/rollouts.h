#pragma once
// Rollouts for tests of rewards.
#include <memory>
#include <string>
#include <utility>

#include "kedge/reward/rollout.h"

namespace kedge::testing {

// The answer to prompt 7, "Q", whose row is this JSON; empty: there is no row.
inline Rollout rollout(std::string response, const std::string& row = "") {
  Rollout result{.prompt_id = 7, .ids = {10, 11, 12}, .prompt_length = 1, .finished = true, .prompt = "Q", .response = std::move(response)};
  if (!row.empty()) result.row = std::make_shared<const Json>(Json::parse(row));
  return result;
}

inline std::shared_ptr<const Rollout> shared(Rollout one) { return std::make_shared<const Rollout>(std::move(one)); }

}  // namespace kedge::testing
