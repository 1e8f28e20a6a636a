#include "kedge/algo/ppo.h"

#include "kedge/algo/remote_critic.h"
#include "kedge/net/token.h"

#include "cli/commands.h"
#include "cli/online_job.h"
#include "cli/run_session.h"

namespace kedge::cli {

namespace {

ClientOptions client_options(const CriticServersConfig& config, const StopQuestion& stop) {
  const std::string key = "remote_critic_rm";
  ClientOptions options;
  options.server.label = "critic server";
  options.server.host = config.critic.ip;
  options.server.port = config.critic.port;
  options.server.keys = str(key, ".critic.ip and .port");
  options.server.stop = stop;
  if (config.token_file) options.server.token = read_token_file(*config.token_file, key + ".token_file");
  if (config.wait_limit)
    options.server.start_limit = options.server.return_limit = std::chrono::milliseconds(static_cast<int64_t>(*config.wait_limit * 1000));
  return options;
}

RemoteCriticOptions critic_options(const CriticServersConfig& config, const OnlineSetup& setup) {
  RemoteCriticOptions options;
  options.infer = config.critic.name.infer;
  options.train = config.critic.name.train;
  options.save = config.critic.name.save;
  options.restore = config.critic.name.restore;
  options.wants_rewards = config.combine_rm_and_critic_server;
  options.pad_to_length = config.pad_to_length;
  options.tokenizer_fingerprint = setup.tokenizer->fingerprint();
  options.longest_row = setup.lengths.context;
  options.group = setup.mesh.world;
  return options;
}

class ServedCritic : public CriticLink {
 public:
  ServedCritic(const CriticServersConfig& config, const CriticPlace& place)
      : client_(client_options(config, place.stop)), critic_(client_, critic_options(config, place.setup)) {
    critic_.check_server();
  }
  [[nodiscard]] ValueSource& critic() override { return critic_; }
  void give_up() override { client_.give_up(); }

 private:
  ModelClient client_;
  RemoteCritic critic_;
};

void with_job(const std::function<void(const OnlineJob& job)>& use) {
  PpoConfig config;
  use({.section = describe(config),
       .config = config,
       .compute = config.trainer,
       .settings = [&] { return settings_of(config); },
       .make_trainer = [&](OnlineParts parts, const OnlineSettings& settings) -> std::unique_ptr<OnlineTrainer> {
         return std::make_unique<PPOTrainer>(std::move(parts), ppo_settings(config), settings);
       },
       .open_critic = [&](const CriticPlace& place) -> std::unique_ptr<CriticLink> {
         return std::make_unique<ServedCritic>(config.remote_critic_rm, place);
       }});
}

}  // namespace

std::string ppo_flags() { return training_flags("ppo"); }

int run_ppo(const Arguments& arguments) {
  int code = kExitOk;
  with_job([&](const OnlineJob& job) { code = run_online(job, arguments); });
  return code;
}

PlanReport plan_ppo(const Arguments& arguments) {
  PlanReport report;
  with_job([&](const OnlineJob& job) { report = plan_online_run(job, arguments); });
  return report;
}

}  // namespace kedge::cli
