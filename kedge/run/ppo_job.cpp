#include "kedge/run/ppo_job.h"

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/critic/critic_fork.h"
#include "kedge/critic/local_critic.h"
#include "kedge/critic/remote_critic.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/net/auth_token.h"
#include "kedge/run/critic_start.h"

namespace kedge {
namespace {

CriticKeys local_keys() { return {.folder = "local_critic.restore_from_path", .model = "local_critic.model", .may_split = false}; }

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

RemoteCriticOptions critic_options(const CriticServersConfig& config, const CriticPlace& place) {
  const OnlineSetup& setup = place.setup;
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
  options.run_id = place.run_id;
  options.take_over = config.critic.take_over;
  return options;
}

class ServedCritic : public CriticLink {
 public:
  ServedCritic(const CriticServersConfig& config, const CriticPlace& place)
      : client_(client_options(config, place.stop)), critic_(client_, critic_options(config, place)) {
    critic_.check_server();
  }
  [[nodiscard]] ValueSource& critic() override { return critic_; }
  void cancel() override { client_.give_up(); }

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
        log_(make_metrics_log(config_.exp_manager.metrics, folder, start_.group.rank() == 0)),
        critic_({.folder = folder,
                 .start = [this] { return start_critic(config_, start_); },
                 .log = log_,
                 .group = start_.group,
                 .journals = false}),
        local_(critic_) {}
  [[nodiscard]] ValueSource& critic() override { return local_; }

 private:
  CriticServerConfig config_;
  CriticStart start_;
  MetricsLog log_;
  Critic critic_;
  LocalCritic local_;
};

void make_own_folder(const Path& folder, const CriticPlace& place) {
  make_folder(folder);
  // A fork of a run starts with that run's critic. It has no checkpoint of its own yet: a critic that is here is of an attempt that was
  // ended before its first.
  const Path home = place.start ? std::filesystem::canonical(place.start->folder).parent_path().parent_path() : Path();
  if (place.start && home != std::filesystem::canonical(place.run_folder))
    fork_critic(home / "critic", folder, {.actor_step = place.start->step(), .replaces = true, .what = place.start->folder.string()});
}

void warn_of_last_update(const CriticServerConfig::Model& critic, const OnlineSettings& settings) {
  const int64_t rows = settings.rollouts.num_rollout_samples * settings.critic_epochs, rest = rows % critic.global_batch_size;
  // A micro-batch's loss is the mean over its rows, however many.
  const int64_t num_micros = critic.global_batch_size / critic.micro_batch_size,
                num_filled = (rest + critic.micro_batch_size - 1) / critic.micro_batch_size;
  if (rest == 0 || num_filled == num_micros) return;
  log_warn("local_critic.model.global_batch_size: the ", rows, " rows of a step leave ", rest, " for its last update of ",
           critic.global_batch_size, ", whose gradient is scaled by ", num_filled, "/", num_micros, "; expected a divisor of ", rows);
}

std::unique_ptr<CriticLink> open_own_critic(const PpoConfig& config, const CriticPlace& place) {
  const OnlineSetup& setup = place.setup;
  CriticServerConfig critic = critic_of(*config.local_critic, config.trainer);
  critic.exp_manager.metrics.console = false;  // the policy's metrics are there
  const std::string key = local_keys().folder;
  CriticStart start = find_critic_start(critic, setup.mesh, local_keys());
  const std::string tokenizer = load_tokenizer(start.folder)->fingerprint();
  check(tokenizer == setup.tokenizer->fingerprint(), key, ": ", start.folder.string(),
        " has a different tokenizer from the policy, whose ids would mean something else to it");
  const int64_t longest = std::min(critic.model.encoder_seq_length, start.network.max_positions);
  check(longest >= setup.lengths.context, key, ": the critic reads up to ", longest,
        " tokens (local_critic.model.encoder_seq_length, the network's own limit), and prompt and answer may have ", setup.lengths.context);
  const Path folder = place.run_folder / "critic";
  if (setup.mesh.world.rank() == 0) {
    warn_of_last_update(critic.model, setup.settings);
    make_own_folder(folder, place);
  }
  return std::make_unique<OwnCritic>(critic, std::move(start), folder);
}

int64_t own_critic_bytes(const PpoConfig& config, const Mesh& mesh) {
  if (!config.local_critic) return 0;
  const CriticStart start = find_critic_start(critic_of(*config.local_critic, config.trainer), mesh, local_keys());
  return start.memory.verdict.worst().device - start.memory.verdict.plan.fixed;  // one program for both
}

}  // namespace

void PpoJob::verify(const Checkpoint& checkpoint) const {
  OnlineJob::verify(checkpoint);
  if (config_.local_critic)
    verify_critic_save(checkpoint.folder.parent_path().parent_path() / "critic", checkpoint.step(), checkpoint.folder.string());
}

std::unique_ptr<CriticLink> PpoJob::open_critic(const CriticPlace& place) const {
  if (config_.local_critic) return open_own_critic(config_, place);
  return std::make_unique<ServedCritic>(config_.remote_critic_rm, place);
}

int64_t PpoJob::critic_bytes(const Mesh& mesh) const { return own_critic_bytes(config_, mesh); }

}  // namespace kedge
