#include "kedge/algo/config_sections.h"
#include "kedge/algo/local_critic.h"
#include "kedge/algo/remote_critic.h"
#include "kedge/core/error.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/net/token.h"

#include "cli/commands.h"
#include "cli/critic_start.h"
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

// In this process, with a folder inside the run's.
class OwnCritic : public CriticLink {
 public:
  OwnCritic(const CriticServerConfig& config, CriticStart start, const Path& folder)
      : config_(config),
        start_(std::move(start)),
        log_(make_metrics_log(config_.exp_manager.metrics, folder, true)),
        critic_({folder, [this] { return start_critic(config_, start_); }, log_}),
        local_(critic_) {}
  [[nodiscard]] ValueSource& critic() override { return local_; }

 private:
  CriticServerConfig config_;
  CriticStart start_;
  MetricsLog log_;
  Critic critic_;
  LocalCritic local_;
};

std::unique_ptr<CriticLink> open_own_critic(const PpoConfig& config, const CriticPlace& place) {
  const OnlineSetup& setup = place.setup;
  check(setup.mesh.world.size() == 1, "local_critic: is for one rank, and there are ", setup.mesh.world.size(),
        "; serve the critic (kedge serve critic) and name its address: remote_critic_rm.critic");
  CriticServerConfig critic = critic_of(*config.local_critic, config.trainer);
  critic.exp_manager.metrics.console = false;  // the policy's numbers are there
  const std::string key = "local_critic.restore_from_path";
  CriticStart start = find_critic_start(critic, setup.mesh, key);
  const std::string tokenizer = load_tokenizer(start.folder)->fingerprint();
  check(tokenizer == setup.tokenizer->fingerprint(), key, ": ", start.folder.string(),
        " has another tokenizer than the policy, whose ids would mean something else to it");
  const int64_t longest = std::min(critic.model.encoder_seq_length, start.network.max_positions);
  check(longest >= setup.lengths.context, key, ": the critic reads up to ", longest,
        " tokens (local_critic.model.encoder_seq_length, the network's own limit), and prompt and answer may have ", setup.lengths.context);
  const Path folder = place.run_folder / "critic";
  make_folder(folder);
  return std::make_unique<OwnCritic>(critic, std::move(start), folder);
}

int64_t own_critic_bytes(const PpoConfig& config, const Mesh& mesh) {
  if (!config.local_critic) return 0;
  const CriticStart start = find_critic_start(critic_of(*config.local_critic, config.trainer), mesh, "local_critic.restore_from_path");
  return start.memory.verdict.worst().device - start.memory.verdict.plan.fixed;  // one program for both
}

}  // namespace

void with_ppo(const UseJob& use) {
  PpoConfig config;
  use({.section = describe(config),
       .config = config,
       .compute = config.trainer,
       .settings = [&] { return settings_of(config); },
       .make_trainer = [&](OnlineParts parts, const OnlineSettings& settings) -> std::unique_ptr<OnlineTrainer> {
         return std::make_unique<PPOTrainer>(std::move(parts), ppo_settings(config), settings);
       },
       .open_critic = [&](const CriticPlace& place) -> std::unique_ptr<CriticLink> {
         if (config.local_critic) return open_own_critic(config, place);
         return std::make_unique<ServedCritic>(config.remote_critic_rm, place);
       },
       .critic_bytes = [&](const Mesh& mesh) { return own_critic_bytes(config, mesh); }});
}

std::string ppo_flags() { return training_flags("ppo"); }

int run_ppo(const Arguments& arguments) { return run_online(with_ppo, arguments); }

PlanReport plan_ppo(const PlanArguments& arguments) { return plan_online_run(with_ppo, arguments); }

}  // namespace kedge::cli
