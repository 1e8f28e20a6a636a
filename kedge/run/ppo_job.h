#pragma once
// PPO, with its critic in this process or on a server, as a job: what kedge ppo runs.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

class PpoJob final : public ConfiguredOnlineJob<PpoConfig> {
 public:
  void verify(const Checkpoint& checkpoint) const override;
  [[nodiscard]] bool has_critic() const override { return true; }
  [[nodiscard]] std::unique_ptr<CriticLink> open_critic(const CriticPlace& place) const override;
  [[nodiscard]] int64_t critic_bytes(const Mesh& mesh) const override;
};

}  // namespace kedge
