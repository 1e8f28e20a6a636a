#pragma once
// The keys of `reward` as a file would set them, for tests.
#include <string>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/reward/reward_config.h"

namespace kedge::testing {

struct RewardFile {
  RewardConfig reward;
  void fields(auto&& field) { field("reward", reward, "rewards"); }
};

inline RewardConfig load_rewards(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  RewardFile file;
  static_cast<void>(load_section(describe(file), ConfigText{"x.yaml", yaml}, overrides));
  return file.reward;
}

}  // namespace kedge::testing
