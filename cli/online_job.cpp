#include "cli/online_job.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/algo/http_reward.h"
#include "kedge/algo/reward_set.h"
#include "kedge/algo/reward_sources.h"
#include "kedge/algo/value_desk.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/data/chat_template.h"
#include "kedge/data/model_chat.h"
#include "kedge/model/model_files.h"
#include "kedge/model/model_folder.h"
#include "kedge/train/run_record.h"

#include "cli/commands.h"
#include "cli/compute.h"
#include "cli/run_session.h"

namespace kedge::cli {
namespace {

// What making the sources would refuse only when the run's folder is open.
void check_sources(const std::map<std::string, RewardSourceConfig>& sources, const std::string& section) {
  for (const auto& [name, source] : sources) {
    const std::string key = section + "." + name;
    static_cast<void>(make_rule(source, key));
    if (source.folder) static_cast<void>(find_model_folder(*source.folder, key + ".folder"));
    if (source.url) static_cast<void>(parse_http_address(*source.url, key + ".url"));
  }
}

void load_settings(const OnlineJob& job, const Arguments& arguments) {
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(job.section, given.file, given.overrides);
}

// A source of kind critic is what comes with the values.
RewardSourceMaker with_critic(ValueDesk* desk, RewardSourceMaker make_other) {
  if (desk == nullptr) return make_other;
  return [desk, make_other](const std::string& key, const RewardSourceConfig& config) {
    return config.kind == RewardKind::critic ? desk->rewards() : make_other(key, config);
  };
}

// Rewards that still wait for the critic when the run ends must not be waited for.
class GiveUp {
 public:
  explicit GiveUp(CriticLink* critic) : critic_(critic) {}
  ~GiveUp() {
    if (critic_ != nullptr) critic_->give_up();
  }
  GiveUp(const GiveUp&) = delete;
  GiveUp& operator=(const GiveUp&) = delete;

 private:
  CriticLink* critic_;
};

std::string step_text(const OnlineSetup& setup) {
  return str(setup.settings.rollouts.num_rollout_samples, " prompts x ", setup.settings.samples_per_prompt, " answers of up to ",
             setup.lengths.max_new, " tokens, ", setup.plan.updates_per_step, setup.plan.updates_per_step == 1 ? " update" : " updates",
             "; prompts of up to ", setup.lengths.max_prompt, " tokens; the learning rate's horizon: ", setup.plan.horizon, " updates");
}

}  // namespace

OnlineSetup::OnlineSetup(const OnlineJob& given)
    : job(given),
      settings(job.settings()),
      mesh(open_mesh(job.compute)),
      folder(find_model_folder(job.config.pretrained_checkpoint.restore_from_path, "pretrained_checkpoint.restore_from_path")),
      network(load_model_config(folder)),
      tokenizer(load_tokenizer(folder)),
      lengths(online_lengths(settings, network.max_positions)) {
  check_widths(settings.widths, lengths.context);
  check_records(job.config.rollouts);
  check_sources(settings.reward.sources, "reward.sources");
  check_sources(settings.reward.watch, "reward.watch");
  open_prompts();
  plan = plan_online(settings, prompts->size(), validation != nullptr, mesh.world.size());
  storage = training_storage(job.compute, settings.model, mesh.device);
  plan_memory();
}

void OnlineSetup::open_prompts() {
  std::map<std::string, Rows> splits = open_data(settings.model.data, "model.data");
  const auto open = [&](const std::string& split) -> std::shared_ptr<const PromptDataset> {
    const auto found = splits.find(split);
    if (found == splits.end()) return nullptr;
    auto set = std::make_shared<const PromptDataset>(found->second, encoder_of(*tokenizer), settings.model.data, lengths.max_prompt,
                                                     chat_of_model(folder));
    check(set->size() > 0, found->second.name(), ": holds no prompts");
    static_cast<void>(set->get(0));  // refuses a set in which no prompt fits
    return set;
  };
  prompts = open("train");
  check(prompts != nullptr, "model.data.data_prefix: names no training prompts");
  const bool validates = settings.loop.val_check_interval > 0;
  if (validates) validation = open("validation");
}

void OnlineSetup::plan_memory() {
  MemoryInput input;
  input.model = network;
  input.dtype = storage.dtype;
  input.is_cuda = mesh.device.is_cuda();
  const bool has_adapters = settings.model.peft.peft_scheme == PeftScheme::lora;
  if (has_adapters) input.lora = settings.model.peft.lora_tuning;
  input.optimizer = settings.model.optim;
  input.num_ranks = mesh.world.size();
  const int64_t rows = settings.model.global_batch_size / mesh.world.size();
  input.longest = lengths.context;
  input.tokens = std::min(rows * lengths.context, std::max(settings.rollouts.tokens_per_pass, lengths.context));
  input.rows = std::max<int64_t>(1, input.tokens / lengths.context);
  input.checkpoint = settings.model.activations_checkpoint_granularity == Recompute::full;
  input.threads = at::get_num_threads();
  const bool saves = plan.intervals.save > 0 && job.config.exp_manager.create_checkpoint_callback;
  const int64_t element = storage.dtype == at::kFloat ? 4 : 2;
  critic_bytes = job.critic_bytes ? job.critic_bytes(mesh.device) : 0;
  const int64_t free = free_bytes(mesh.device) - critic_bytes;
  const auto check_with = [&](ReferencePlace place) {
    const ReferenceKind kind = place == ReferencePlace::swapped ? ReferenceKind::swapped : ReferenceKind::resident;
    const bool copies = settings.wants_reference && !has_adapters;
    reference_bytes =
        copies ? kedge::reference_bytes(kind, flat_size(make_parameters(network, {}).specs) * element, input.is_cuda).device : 0;
    memory = check_memory(input, {.bytes = free - reference_bytes,
                                  .micro_size = input.tokens,
                                  .saves = saves,
                                  .least_size = lengths.context,
                                  .size_key = "model." + settings.name + ".tokens_per_pass"});
  };
  check_with(settings.rollouts.reference);
  if (!memory.fits && settings.rollouts.reference == ReferencePlace::automatic && input.is_cuda) {
    check_with(ReferencePlace::swapped);
    if (memory.fits) settings.rollouts.reference = ReferencePlace::swapped;
  }
  // Keys and values take what is left, at most what all answers of a step need.
  const int64_t left = free - reference_bytes - memory.needed;
  const int64_t wanted = generation_bytes(settings, lengths, network, element, mesh.world.size());
  cache_bytes = std::clamp<int64_t>(left * 9 / 10, 0, wanted);
  memory.needed += reference_bytes + cache_bytes + critic_bytes;
  memory.free = free + critic_bytes;
  if (settings.model.engine.memory == "auto" && memory.fits) settings.model.engine.memory = std::to_string(cache_bytes);
}

std::string files_print(const OnlineSetup& setup) {
  std::string print;
  for (const Path& file : data_files(setup.settings.model.data, "model.data")) print += file_hash(file);
  for (const auto& sources : {setup.settings.reward.sources, setup.settings.reward.watch})
    for (const auto& [name, source] : sources)
      if (source.file) print += file_hash(*source.file);
  return print;
}

namespace {

int run_job(const OnlineJob& job, const Arguments& arguments) {
  Arguments rest = arguments;
  const std::optional<Path> fork = take_fork(rest);
  load_settings(job, rest);
  OnlineSetup setup(job);
  if (setup.mesh.world.rank() == 0) warn_of_settings(setup.settings);
  setup.settings.identity += files_print(setup);
  const RunJob run{.name = setup.settings.name,
                   .section = job.section,
                   .run = job.config.exp_manager,
                   .world = setup.mesh.world,
                   .device = setup.mesh.device,
                   .model_folder = setup.folder,
                   .network_print = shape_print(setup.network, {}),
                   .tokenizer_print = setup.tokenizer->fingerprint(),
                   .memory = setup.memory,
                   .data_files = data_files(setup.settings.model.data, "model.data"),
                   .keeps_reference = setup.settings.wants_reference};
  RunSession session(run, arguments, fork);
  if (session.checkpoint()) setup.plan = continue_plan(setup.plan, setup.settings, position_of(*session.checkpoint()));
  const std::optional<ChatTemplate> chat = ChatTemplate::find(setup.folder);
  const StopQuestion stop = session.stop_question();
  const std::unique_ptr<CriticLink> critic = job.open_critic ? job.open_critic({setup, session.folder(), stop}) : nullptr;
  std::optional<ValueDesk> desk;
  if (critic) desk.emplace(critic->critic());
  RewardSet rewards(setup.settings.reward,
                    with_critic(desk ? &*desk : nullptr, model_sources({.tokenizer_fingerprint = setup.tokenizer->fingerprint(),
                                                                        .chat_template_fingerprint = chat ? chat->fingerprint() : "",
                                                                        .device = setup.mesh.device,
                                                                        .dtype = setup.storage.dtype,
                                                                        .stop = stop})));
  const GiveUp give_up(critic.get());
  const std::unique_ptr<Model> model = load_model(setup.folder, {.storage = setup.storage, .head = HeadKind::language});
  add_trained_adapters(*model, setup.settings.model);
  SaveOptions save;
  save.companions = setup.folder;
  const std::unique_ptr<OnlineTrainer> trainer = job.make_trainer({.model = *model,
                                                                   .tokenizer = *setup.tokenizer,
                                                                   .rewards = rewards,
                                                                   .values = desk ? &*desk : nullptr,
                                                                   .prompts = setup.prompts,
                                                                   .validation = setup.validation,
                                                                   .group = setup.mesh.world,
                                                                   .folder = session.folder(),
                                                                   .save = {save, job.config.pretrained_checkpoint.restore_from_path}},
                                                                  setup.settings);
  log_info("a step: ", step_text(setup));
  return session.run({.trainer = *trainer,
                      .model = *model,
                      .steps = setup.plan.steps,
                      .intervals = setup.plan.intervals,
                      .write_model = [&](const Path& path) { trainer->write_model(path); }});
}

PlanReport plan_job(const OnlineJob& job, const Arguments& arguments) {
  load_settings(job, arguments);
  const OnlineSetup setup(job);
  const OnlinePlan& plan = setup.plan;
  PlanReport report;
  report.fits = setup.memory.fits;
  report.text = plan_heading(setup.settings.name, setup.folder, setup.storage.dtype, setup.mesh);
  report.text += str("\nSteps\n  ", plan.steps.max_steps, " in all, ", plan.steps.steps_per_epoch, " an epoch of ", setup.prompts->size(),
                     " prompts; validation every ", plan.intervals.validate, ", saving every ", plan.intervals.save,
                     "\n  a step: ", step_text(setup), "\n\nMemory\n", setup.memory.plan.table());
  if (setup.reference_bytes > 0) report.text += str("Beside it, the reference policy takes ", format_bytes(setup.reference_bytes), ".\n");
  if (setup.critic_bytes > 0) report.text += str("The critic beside it takes ", format_bytes(setup.critic_bytes), ".\n");
  report.text += str("Keys and values of the answers take ", format_bytes(setup.cache_bytes), ".\n", verdict_text(setup.memory));
  Json& json = report.json;
  json.set("algorithm", setup.settings.name);
  json.set("max_steps", plan.steps.max_steps);
  json.set("steps_per_epoch", plan.steps.steps_per_epoch);
  json.set("updates_per_step", plan.updates_per_step);
  json.set("horizon", plan.horizon);
  json.set("max_prompt_tokens", setup.lengths.max_prompt);
  json.set("max_answer_tokens", setup.lengths.max_new);
  json.set("memory", setup.memory.plan.json());
  json.set("reference_bytes", setup.reference_bytes);
  json.set("cache_bytes", setup.cache_bytes);
  add_verdict(json, setup.memory);
  return report;
}

}  // namespace

WithJob find_online_job(std::string_view name) {
  if (name == "ppo") return with_ppo;
  if (name == "reinforce") return with_reinforce;
  if (name == "rs") return with_rs;
  return nullptr;
}

int run_online(WithJob with_job, const Arguments& arguments) {
  int code = kExitOk;
  with_job([&](const OnlineJob& job) { code = run_job(job, arguments); });
  return code;
}

PlanReport plan_online_run(WithJob with_job, const Arguments& arguments) {
  PlanReport report;
  with_job([&](const OnlineJob& job) { report = plan_job(job, arguments); });
  return report;
}

}  // namespace kedge::cli
