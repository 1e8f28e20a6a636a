#include "kedge/run/online_setup.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/algo/online/generation.h"
#include "kedge/core/error.h"
#include "kedge/core/memory_budget.h"
#include "kedge/data/files/rows.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/kernels/shared_prompts.h"
#include "kedge/net/http.h"
#include "kedge/reward/reward_set.h"
#include "kedge/reward/reward_sources.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/online_job.h"
#include "kedge/text/chat/model_chat.h"
#include "kedge/train/checkpoint/run_record.h"

namespace kedge {
namespace {

// Checks that creating the sources would make only after the run's folder is open.
void check_sources(const std::map<std::string, RewardSourceConfig>& sources, const std::string& section) {
  for (const auto& [name, source] : sources) {
    const std::string key = section + "." + name;
    static_cast<void>(make_rule(source, key));
    if (source.folder) static_cast<void>(find_model_folder(*source.folder, key + ".folder"));
    if (source.url.is_null()) continue;
    for (const std::string& url : urls_of(source, key)) static_cast<void>(parse_http_address(url, key + ".url"));
  }
}

// A row that no source takes would end the run in the middle.
void check_routes(const Rows& rows, const RewardConfig& reward) {
  if (std::any_of(reward.sources.begin(), reward.sources.end(), [](const auto& source) { return source.second.route.empty(); })) return;
  for_each_example(rows.size(), [&](int64_t i) {
    const Row row = rows.row(i);
    if (const auto why = nobody_takes(reward, &row.json())) row.fail(RowFault::bad_value, *why);
  });
}

}  // namespace

OnlineSetup::OnlineSetup(const OnlineJob& given, const Options& options)
    : job(given),
      settings(job.settings()),
      mesh(open_mesh(job.compute(), options.ranks)),
      generation(mesh),
      folder(find_model_folder(job.config().pretrained_checkpoint.restore_from_path, "pretrained_checkpoint.restore_from_path")),
      network(load_model_config(folder)),
      tokenizer(load_tokenizer(folder)),
      lengths(online_lengths(settings, network.max_positions)) {
  check_widths(settings.widths, lengths.context);
  static_cast<void>(recorded_every(job.config().rollouts));  // rejects invalid settings
  check_sources(settings.reward.sources, "reward.sources");
  check_sources(settings.reward.watch, "reward.watch");
  const Mesh all = mesh;
  mesh = split_mesh(all, settings.model, network);
  generates_apart = settings.model.generation_ranks() != settings.model.tensor_model_parallel_size;
  generation =
      generates_apart ? split_mesh(all, settings.model.generation_ranks(), network, "model.generation.tensor_parallel_size") : mesh;
  check(!generation.tensor.is_split() || !settings.loop.batch_iterator.use_flask, "trainer.", settings.name,
        ".batch_iterator.use_flask: ranks that generate together (",
        generates_apart ? "model.generation.tensor_parallel_size" : "model.tensor_model_parallel_size", ") cannot take prompts one by one");
  if (!can_share_prompts(network, mesh.device, lengths.context)) settings.rollouts.share_prompts = false;
  open_prompts();
  plan = plan_online(settings, prompts->size(), validation != nullptr, mesh.data.size());
  storage = training_storage(job.compute(), settings.model, mesh.device, shard_options(settings.model, mesh), mesh.tensor);
  plan_memory(options);
}

void OnlineSetup::open_prompts() {
  check_bos(settings.model.data.add_bos, *tokenizer, folder, "model.data");
  std::map<std::string, Rows> splits = open_data(settings.model.data, "model.data");
  for (const auto& [split, rows] : splits)
    check(split == "train" || split == "validation" || split == "test", "model.data.data_prefix.", split,
          ": online training has one validation set; use kedge eval --prompts FILE for others");
  const auto open = [&](const std::string& split) -> std::shared_ptr<const PromptDataset> {
    const auto found = splits.find(split);
    if (found == splits.end()) return nullptr;
    auto set = std::make_shared<const PromptDataset>(found->second, encoder_of(*tokenizer, network.vocab_size), settings.model.data,
                                                     lengths.max_prompt, chat_of_model(folder));
    check(set->size() > 0, found->second.name(), ": holds no prompts");
    static_cast<void>(set->get(0));  // rejects a set in which no prompt fits
    check_routes(found->second, settings.reward);
    return set;
  };
  prompts = open("train");
  check(prompts != nullptr, "model.data.data_prefix: no training prompts");
  const bool validates = settings.loop.val_check_interval > 0;
  if (validates) validation = open("validation");
}

// Keys and values are kept for prompts as they are, not as long as they might be.
int64_t OnlineSetup::longest_prompt() const {
  constexpr int64_t kLookedAt = 512;
  const int64_t count = std::min(prompts->size(), kLookedAt);
  std::vector<int64_t> lengths_of(static_cast<size_t>(count));
  for_each_example(count,
                   [&](int64_t i) { lengths_of[static_cast<size_t>(i)] = std::ssize(prompts->get(i * prompts->size() / count).ids); });
  return *std::max_element(lengths_of.begin(), lengths_of.end());
}

// Reward models in this process, each with the largest pass it may make: they score answers while others are generated.
int64_t OnlineSetup::judges_bytes() const {
  const int64_t answers = settings.rollouts.num_rollout_samples * settings.samples_per_prompt;
  int64_t bytes = 0;
  for (const auto& sources : {settings.reward.sources, settings.reward.watch})
    for (const auto& [name, source] : sources) {
      if (source.kind != RewardKind::model) continue;
      MemoryInput input;
      input.model = load_model_config(find_model_folder(*source.folder, "reward.sources." + name + ".folder"));
      input.head = {HeadKind::score, std::max<int64_t>(1, input.model.num_labels), false};
      input.dtype = storage.dtype;
      input.is_cuda = mesh.device.is_cuda();
      input.longest = lengths.context;
      input.tokens = std::max(lengths.context, std::min(kJudgedTokens, answers * usual_length));
      input.rows = input.tokens / lengths.context;
      input.threads = at::get_num_threads();
      const ForwardMemory look = plan_forward(input);
      bytes += look.parameters + look.pass;
    }
  return bytes;
}

std::optional<GenerationRanks> OnlineSetup::generation_ranks() const {
  if (!generates_apart) return std::nullopt;
  return GenerationRanks{generation.data, generation.tensor};
}

// On a CPU the engine's own log-probabilities are those of training; an update with dropout has others.
bool OnlineSetup::recomputes_logprobs() const {
  const LogprobSource source = settings.rollouts.logprobs;
  const bool is_trusted = trusts_engine(source, mesh.device, generates_apart);
  const PeftConfig& peft = settings.model.peft;
  const bool drops_out = peft.peft_scheme == PeftScheme::lora && peft.lora_tuning.adapter_dropout > 0;
  return settings.logprob_use != LogprobUse::none && (!is_trusted || (source == LogprobSource::automatic && drops_out)) &&
         (drops_out || !update_gives_logprobs(settings, lengths, plan));
}

DiskPlan OnlineSetup::disk() const {
  DiskPlan disk = plan_disk(job.config().exp_manager, plan.steps.max_steps, plan.intervals.save, memory_request.demand.update);
  const int64_t every = recorded_every(job.config().rollouts);
  if (every > 0)
    disk.records =
        (plan.steps.max_steps + every - 1) / every *
        record_bytes(settings.rollouts.num_rollout_samples * settings.samples_per_prompt, usual_length - lengths.max_new, lengths.max_new);
  return disk;
}

void OnlineSetup::plan_memory(const Options& options) {
  MemoryDemand demand;
  MemoryInput& input = demand.update;
  input.model = network;
  input.dtype = storage.dtype;
  input.is_cuda = mesh.device.is_cuda();
  const bool has_adapters = settings.model.peft.peft_scheme == PeftScheme::lora;
  if (has_adapters) input.lora = settings.model.peft.lora_tuning;
  input.optimizer = settings.model.optim;
  input.num_ranks = mesh.data.size();
  input.tensor_ranks = mesh.tensor.size();
  input.token_ranks = storage.divides_tokens ? input.tensor_ranks : 1;
  input.shard_ranks = storage.shards.shard.size();
  input.sharding = storage.shards.kind;
  const int64_t rows = settings.model.global_batch_size / mesh.data.size();
  input.longest = lengths.context;
  // A step's responses to a prompt may be in one update, or in as many as there are.
  const int64_t all = (rows + settings.rows_per_prompt - 1) / settings.rows_per_prompt * longest_group(settings, lengths);
  const int64_t most = plan.updates_per_step == settings.epochs ? std::min(rows * lengths.context, all) : rows * lengths.context;
  input.tokens = std::min(most, std::max(settings.rollouts.tokens_per_pass, lengths.context));
  input.rows = std::max<int64_t>(1, input.tokens / lengths.context);
  if (settings.rollouts.share_prompts && settings.rows_per_prompt > 1) {
    input.prompts = std::max<int64_t>(1, input.tokens / longest_group(settings, lengths));
    input.answers = input.prompts * settings.rows_per_prompt;
  }
  input.checkpoint = settings.model.activations_checkpoint_granularity == Recompute::full;
  input.threads = at::get_num_threads();
  demand.saves = plan.intervals.save > 0 && job.config().exp_manager.saves();

  usual_length = std::min(lengths.context, longest_prompt() + lengths.max_new);
  const ModelConfig generated = split_config(network, {generation.tensor.rank(), generation.tensor.size()});
  EngineInput engine = generation_input(settings, lengths, generated, storage, generation.data.size());
  engine.usual = usual_length;
  const MemoryRoom room = free_room(mesh);
  demand.generation = {.bytes = engine_bytes(engine), .releases = settings.model.engine.release_in_training};
  if (generates_apart) demand.generation->weights = resharded_bytes(input, generation.tensor.size());
  const std::string& given = settings.model.engine.memory;
  if (given != "auto") demand.generation->given = memory_budget(given, room.device, "model.engine.memory");
  const ReferencePlace place = settings.rollouts.reference;
  if (settings.wants_reference && has_adapters) demand.reference = {ReferenceKind::adapters_off, false};
  if (settings.wants_reference && !has_adapters)
    demand.reference = {place == ReferencePlace::swapped ? ReferenceKind::swapped : ReferenceKind::resident,
                        place == ReferencePlace::automatic && input.is_cuda};
  demand.looks = recomputes_logprobs();
  critic_bytes = options.has_critic ? job.critic_bytes(mesh) : 0;
  judge_bytes = judges_bytes();
  demand.companions = critic_bytes + judge_bytes;
  demand.beside = options.beside;
  const std::string section = "model." + settings.name;
  memory_request = {
      demand,
      room,
      {.size = section + ".tokens_per_pass", .size_now = input.tokens, .size_least = lengths.context, .reference = section + ".reference"}};
  storage.kept_logits = keep_logits(memory_request);
  memory = check_memory(memory_request);
  if (memory.reference == ReferenceKind::swapped) settings.rollouts.reference = ReferencePlace::swapped;
  if (given == "auto" && memory.fits) settings.model.engine.memory = std::to_string(memory.cache);
}

std::string files_fingerprint(const OnlineSetup& setup) {
  std::string print;
  for (const Path& file : data_files(setup.settings.model.data, "model.data")) print += file_hash(file);
  for (const auto& sources : {setup.settings.reward.sources, setup.settings.reward.watch})
    for (const auto& [name, source] : sources)
      if (source.file) print += file_hash(*source.file);
  return print;
}

}  // namespace kedge
