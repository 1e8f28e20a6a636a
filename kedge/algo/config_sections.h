#pragma once
// The large configurations, whose keys are compiled once and together: they share most of their parts. Whoever describes one of them
// includes this and is spared the work, which takes a compiler 20 seconds.
#include "kedge/algo/ppo.h"
#include "kedge/algo/reinforce.h"
#include "kedge/algo/rm.h"
#include "kedge/algo/rs.h"
#include "kedge/algo/serve_config.h"
#include "kedge/algo/sft.h"

namespace kedge {

extern template Section describe<SftConfig>(SftConfig& object);
extern template Section describe<RmConfig>(RmConfig& object);
extern template Section describe<PpoConfig>(PpoConfig& object);
extern template Section describe<ReinforceConfig>(ReinforceConfig& object);
extern template Section describe<RsConfig>(RsConfig& object);
extern template Section describe<RewardServerConfig>(RewardServerConfig& object);
extern template Section describe<CriticServerConfig>(CriticServerConfig& object);

}  // namespace kedge
