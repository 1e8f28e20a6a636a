#include "kedge/reward/reward_sources.h"

#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/net/auth_token.h"
#include "kedge/reward/http_reward.h"
#include "kedge/reward/reward_service.h"

namespace kedge {
namespace {

std::chrono::milliseconds to_ms(double seconds) { return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)); }

ModelRewardOptions options_of(const RewardSourceParts& parts, const RewardSourceConfig& config) {
  return {.send = config.send.value_or(RewardInput::automatic),
          .tokenizer_fingerprint = parts.tokenizer_fingerprint,
          .chat_template_fingerprint = parts.chat_template_fingerprint,
          .pad_to_length = config.pad_to_length};
}

// A model on a server, with the connections to it.
class ServerReward : public RewardSource {
 public:
  ServerReward(const ClientOptions& client, const std::string& model, ModelRewardOptions options)
      : client_(client), reward_(remote_caller(client_, model), std::move(options)) {}
  // Queued calls to an unreachable server must not wait for it one after another.
  ~ServerReward() override { client_.give_up(); }
  ServerReward(const ServerReward&) = delete;
  ServerReward& operator=(const ServerReward&) = delete;
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override { return reward_.submit(std::move(rollouts)); }

 private:
  ModelClient client_;
  ModelReward reward_;
};

// The same model on several servers.
class PoolReward : public RewardSource {
 public:
  PoolReward(PoolOptions pool, ModelRewardOptions options) : pool_(std::move(pool)), reward_(pool_caller(pool_), std::move(options)) {}
  ~PoolReward() override { pool_.give_up(); }
  PoolReward(const PoolReward&) = delete;
  PoolReward& operator=(const PoolReward&) = delete;
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override { return reward_.submit(std::move(rollouts)); }

 private:
  ServerPool pool_;
  ModelReward reward_;
};

WatchOptions server_at(const std::string& url, const std::string& key, const RewardSourceConfig& config, const RewardSourceParts& parts) {
  const HttpAddress address = parse_http_address(url, key + ".url");
  check(address.target == "/", key, ".url: expected only the server's address, such as http://host:port, found ", url);
  WatchOptions server;
  server.label = "reward server";
  server.host = address.host;
  server.port = address.port;
  server.keys = key + ".url";
  server.stop = parts.stop;
  if (config.token_file) server.token = read_token_file(*config.token_file, key + ".token_file");
  if (config.wait_limit) server.start_limit = server.return_limit = to_ms(*config.wait_limit);
  return server;
}

std::unique_ptr<RewardSource> server_source(const std::string& key, const RewardSourceConfig& config, const RewardSourceParts& parts) {
  const std::string model = config.model_name.value_or("reward_model");
  std::vector<WatchOptions> servers;
  for (const std::string& url : urls_of(config, key)) servers.push_back(server_at(url, key, config, parts));
  if (servers.size() == 1) return std::make_unique<ServerReward>(ClientOptions{.server = servers[0]}, model, options_of(parts, config));
  return std::make_unique<PoolReward>(PoolOptions{.servers = std::move(servers), .model = model}, options_of(parts, config));
}

// A model in this process.
class LocalReward : public RewardSource {
 public:
  LocalReward(const Path& folder, const RewardSourceParts& parts, ModelRewardOptions options)
      : model_(load_model(folder, {.storage = {parts.dtype, parts.device, false}, .head = HeadKind::score})),
        rows_(folder, model_->config(), {model_->config().max_positions, false, false}),
        scorer_(*model_, {.max_tokens = kJudgedTokens}),
        reward_(local_caller(make_reward_service("reward_model", rows_, scorer_, {}), "the reward model " + folder.string()),
                std::move(options)) {}
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override { return reward_.submit(std::move(rollouts)); }

 private:
  std::unique_ptr<Model> model_;
  ServedRows rows_;
  RewardScorer scorer_;
  ModelReward reward_;
};

}  // namespace

RewardSourceMaker model_sources(RewardSourceParts parts) {
  return [parts = std::move(parts)](const std::string& key, const RewardSourceConfig& config) -> std::unique_ptr<RewardSource> {
    switch (config.kind) {
      case RewardKind::server:
        return server_source(key, config, parts);
      case RewardKind::http: {
        HttpRewardOptions options{.address = parse_http_address(urls_of(config, key).front(), key + ".url"), .stop = parts.stop};
        if (config.timeout) options.timeout = to_ms(*config.timeout);
        return std::make_unique<HttpReward>(std::move(options));
      }
      case RewardKind::model:
        return std::make_unique<LocalReward>(find_model_folder(config.folder.value(), key + ".folder"), parts, options_of(parts, config));
      default:
        return nullptr;
    }
  };
}

}  // namespace kedge
