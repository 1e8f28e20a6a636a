#pragma once
// The two kinds of reward model, by their names in configurations.
#include <array>

#include "kedge/config/config_schema.h"

namespace kedge {

enum class RewardModelType { binary_ranking, regression };
constexpr auto enum_names(RewardModelType) {
  return std::array<EnumName<RewardModelType>, 2>{
      {{"binary_ranking", RewardModelType::binary_ranking}, {"regression", RewardModelType::regression}}};
}

}  // namespace kedge
