#pragma once
// The large configurations, whose keys are compiled once and together because they share most of their parts. Code that describes one of
// them includes this header and saves 20 seconds of compilation.
#include "kedge/algo/online/grpo.h"
#include "kedge/algo/online/ppo.h"
#include "kedge/algo/online/reinforce.h"
#include "kedge/algo/online/rs.h"
#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/rm.h"
#include "kedge/algo/supervised/sft.h"
#include "kedge/critic/serve_config.h"

namespace kedge {

extern template Section describe<SftConfig>(SftConfig& object);
extern template Section describe<RmConfig>(RmConfig& object);
extern template Section describe<DpoConfig>(DpoConfig& object);
extern template Section describe<KtoConfig>(KtoConfig& object);
extern template Section describe<PpoConfig>(PpoConfig& object);
extern template Section describe<ReinforceConfig>(ReinforceConfig& object);
extern template Section describe<GrpoConfig>(GrpoConfig& object);
extern template Section describe<RlooConfig>(RlooConfig& object);
extern template Section describe<RsConfig>(RsConfig& object);
extern template Section describe<RewardServerConfig>(RewardServerConfig& object);
extern template Section describe<CriticServerConfig>(CriticServerConfig& object);

}  // namespace kedge
