#include "kedge/algo/config_sections.h"

namespace kedge {

template Section describe<SftConfig>(SftConfig& object);
template Section describe<RmConfig>(RmConfig& object);
template Section describe<DpoConfig>(DpoConfig& object);
template Section describe<KtoConfig>(KtoConfig& object);
template Section describe<PpoConfig>(PpoConfig& object);
template Section describe<ReinforceConfig>(ReinforceConfig& object);
template Section describe<GrpoConfig>(GrpoConfig& object);
template Section describe<RlooConfig>(RlooConfig& object);
template Section describe<RsConfig>(RsConfig& object);
template Section describe<RewardServerConfig>(RewardServerConfig& object);
template Section describe<CriticServerConfig>(CriticServerConfig& object);

}  // namespace kedge
