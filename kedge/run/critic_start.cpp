#include "kedge/run/critic_start.h"

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/model/files/weight_check.h"
#include "kedge/run/device_setup.h"

namespace kedge {
namespace {

void choose_head(CriticStart& start, const CriticServerConfig& config, const std::string& key) {
  const WeightFiles files(start.folder);
  if (has_score_head(start.network, files)) {
    start.head = stored_head(start.network, files);
    return;
  }
  check(!config.trainer.ppo.combine_rm_and_critic_server, key, ": ", start.folder.string(),
        " holds no reward model (it has no score head), and trainer.ppo.combine_rm_and_critic_server=true needs its rewards; with false a "
        "critic starts from it with a new head");
  const PeftConfig& peft = config.model.peft;
  std::optional<HeadOptions> brought;
  if (peft.peft_scheme == PeftScheme::lora && peft.restore_from_path) brought = load_adapter_head(*peft.restore_from_path);
  start.head = brought.value_or(HeadOptions{HeadKind::score, 1, false});
  start.load.new_labels = start.head.num_labels;
  start.load.new_bias = start.head.score_bias;
  start.draws_head = !brought;
}

}  // namespace

CriticStart find_critic_start(const CriticServerConfig& config, const Mesh& mesh, const CriticKeys& keys) {
  static_cast<void>(critic_options(config));  // rejects invalid settings
  check(keys.may_split || config.model.tensor_model_parallel_size == 1, keys.model,
        ".tensor_model_parallel_size: ", config.model.tensor_model_parallel_size, " is not supported: each rank computes whole layers of ",
        "its own rows. ", keys.model, ".sharding=all divides the weights among the ranks; a critic server can be split");
  CriticStart start;
  start.folder = find_model_folder(config.pretrained_checkpoint.restore_from_path, keys.folder);
  start.network = load_model_config(start.folder);
  const Mesh ranks = split_mesh(mesh.with_tensor_ranks(1), config.model, start.network, keys.model);  // whatever those of the policy are
  start.group = ranks.data;
  const ShardOptions shards = shard_options(config.model, ranks, keys.model);
  start.load = {.storage = training_storage(config.trainer, config.model, mesh.device, shards, ranks.tensor), .head = HeadKind::score};
  start.load.seed = static_cast<uint64_t>(config.model.seed);
  choose_head(start, config, keys.folder);
  start.memory = plan_critic_memory(config, {.network = start.network,
                                             .head = start.head,
                                             .dtype = start.load.storage.dtype,
                                             .is_cuda = mesh.device.is_cuda(),
                                             .shards = shards,
                                             .tensor_ranks = ranks.tensor.size(),
                                             .free = free_room(mesh)});
  return start;
}

std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const CriticStart& start) {
  if (start.draws_head)
    log_info(start.folder.string(),
             " has no score head: the critic starts with a new one, initialized with model.seed=", config.model.seed);
  auto model = load_model(start.folder, start.load);
  add_trained_adapters(*model, config.model);
  CriticOptions options = critic_options(config);
  options.group = start.group;
  options.reward_model = start.memory.reward_model;
  options.folder.save.companions = start.folder;
  options.folder.base = config.pretrained_checkpoint.restore_from_path;
  return std::make_unique<CriticModel>(std::move(model), std::move(options));
}

}  // namespace kedge
