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
#include "kedge/data/rows.h"
#include "kedge/engine/memory_budget.h"
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

OnlineSetup::OnlineSetup(const OnlineJob& given, int64_t beside)
    : job(given),
      settings(job.settings()),
      mesh(open_mesh(job.compute)),
      folder(find_model_folder(job.config.pretrained_checkpoint.restore_from_path, "pretrained_checkpoint.restore_from_path")),
      network(load_model_config(folder)),
      tokenizer(load_tokenizer(folder)),
      lengths(online_lengths(settings, network.max_positions)) {
  check_widths(settings.widths, lengths.context);
  static_cast<void>(recorded_every(job.config.rollouts));  // refuses what cannot be
  check_sources(settings.reward.sources, "reward.sources");
  check_sources(settings.reward.watch, "reward.watch");
  open_prompts();
  plan = plan_online(settings, prompts->size(), validation != nullptr, mesh.world.size());
  storage = training_storage(job.compute, settings.model, mesh.device);
  plan_memory(beside);
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

// Keys and values are kept for prompts as they are, not as long as they might be.
int64_t OnlineSetup::longest_prompt() const {
  constexpr int64_t kLookedAt = 512;
  const int64_t count = std::min(prompts->size(), kLookedAt);
  std::vector<int64_t> lengths_of(static_cast<size_t>(count));
  for_each_example(count,
                   [&](int64_t i) { lengths_of[static_cast<size_t>(i)] = std::ssize(prompts->get(i * prompts->size() / count).ids); });
  return *std::max_element(lengths_of.begin(), lengths_of.end());
}

// Reward models in this process, each with the largest pass it may make: they look at answers while others are generated.
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
      const LookMemory look = plan_look(input);
      bytes += look.parameters + look.pass;
    }
  return bytes;
}

// On a CPU the engine's own log-probabilities are those of training.
bool OnlineSetup::looks_itself() const {
  const LogprobSource source = settings.rollouts.logprobs;
  return settings.wants_logprobs && (source == LogprobSource::trainer || (source == LogprobSource::automatic && mesh.device.is_cuda()));
}

DiskPlan OnlineSetup::disk() const {
  DiskPlan disk = plan_disk(job.config.exp_manager, plan.steps.max_steps, plan.intervals.save, memory_question.demand.update);
  const int64_t every = recorded_every(job.config.rollouts);
  if (every > 0)
    disk.records =
        (plan.steps.max_steps + every - 1) / every *
        record_bytes(settings.rollouts.num_rollout_samples * settings.samples_per_prompt, usual_length - lengths.max_new, lengths.max_new);
  return disk;
}

void OnlineSetup::plan_memory(int64_t beside) {
  MemoryDemand demand;
  MemoryInput& input = demand.update;
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
  demand.saves = plan.intervals.save > 0 && job.config.exp_manager.create_checkpoint_callback;

  usual_length = std::min(lengths.context, longest_prompt() + lengths.max_new);
  EngineInput generation = generation_input(settings, lengths, network, storage, mesh.world.size());
  generation.usual = usual_length;
  const MemoryRoom room = free_room(mesh);
  demand.generation = {.bytes = engine_bytes(generation), .releases = settings.model.engine.release_in_training};
  const std::string& given = settings.model.engine.memory;
  if (given != "auto") demand.generation->given = memory_budget(given, room.device, "model.engine.memory");
  const ReferencePlace place = settings.rollouts.reference;
  if (settings.wants_reference && has_adapters) demand.reference = {ReferenceKind::adapters_off, false};
  if (settings.wants_reference && !has_adapters)
    demand.reference = {place == ReferencePlace::swapped ? ReferenceKind::swapped : ReferenceKind::resident,
                        place == ReferencePlace::automatic && input.is_cuda};
  demand.looks = looks_itself();
  critic_bytes = job.critic_bytes ? job.critic_bytes(mesh) : 0;
  judge_bytes = judges_bytes();
  demand.companions = critic_bytes + judge_bytes;
  demand.beside = beside;
  const std::string section = "model." + settings.name;
  memory_question = {
      demand,
      room,
      {.size = section + ".tokens_per_pass", .size_now = input.tokens, .size_least = lengths.context, .reference = section + ".reference"}};
  memory = check_memory(memory_question);
  if (memory.reference == ReferenceKind::swapped) settings.rollouts.reference = ReferencePlace::swapped;
  if (given == "auto" && memory.fits) settings.model.engine.memory = std::to_string(memory.cache);
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
                   .memory_question = setup.memory_question,
                   .rehearses = job.compute.rehearse,
                   .disk = setup.disk(),
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
  const std::unique_ptr<Model> model = session.within("load", [&] {
    auto loaded = load_model(setup.folder, {.storage = setup.storage, .head = HeadKind::language});
    add_trained_adapters(*loaded, setup.settings.model);
    return loaded;
  });
  SaveOptions save;
  save.companions = setup.folder;
  const auto make_trainer = [&] {
    return job.make_trainer({.model = *model,
                             .tokenizer = *setup.tokenizer,
                             .rewards = rewards,
                             .values = desk ? &*desk : nullptr,
                             .prompts = setup.prompts,
                             .validation = setup.validation,
                             .group = setup.mesh.world,
                             .folder = session.folder(),
                             .save = {save, job.config.pretrained_checkpoint.restore_from_path}},
                            setup.settings);
  };
  const std::unique_ptr<OnlineTrainer> trainer = session.within("load", make_trainer);
  log_info("a step: ", step_text(setup));
  return session.run({.trainer = *trainer,
                      .model = *model,
                      .steps = setup.plan.steps,
                      .intervals = setup.plan.intervals,
                      .write_model = [&](const Path& path) { trainer->write_model(path); }});
}

// A rank's share of a step.
StepWork step_work(const OnlineSetup& setup) {
  const OnlineSettings& settings = setup.settings;
  const auto ranks = static_cast<int64_t>(setup.mesh.world.size());
  StepWork work{.pass = setup.memory_question.demand.update, .device = setup.mesh.device};
  const int64_t trained = settings.rollouts.num_rollout_samples * settings.rows_per_prompt / ranks;
  const auto tokens = static_cast<double>(trained * setup.usual_length);
  work.update_tokens = tokens * static_cast<double>(settings.epochs);
  work.look_tokens = tokens * ((setup.looks_itself() ? 1 : 0) + (settings.wants_reference ? 1 : 0));
  work.num_updates = setup.plan.updates_per_step;
  work.engine = settings.model.engine;
  work.answers = settings.rollouts.num_rollout_samples * settings.samples_per_prompt / ranks;
  work.prompt_tokens = setup.usual_length - setup.lengths.max_new;
  work.answer_tokens = setup.lengths.max_new;
  return work;
}

PlanReport plan_job(const OnlineJob& job, const PlanArguments& arguments) {
  load_settings(job, arguments.rest);
  const OnlineSetup setup(job, arguments.beside);
  const OnlinePlan& plan = setup.plan;
  PlanReport report;
  report.fits = setup.memory.fits;
  report.needed = setup.memory.needed;
  report.text = plan_heading(setup.settings.name, setup.folder, setup.storage.dtype, setup.mesh);
  report.text += str("\nSteps\n  ", plan.steps.max_steps, " in all, ", plan.steps.steps_per_epoch, " an epoch of ", setup.prompts->size(),
                     " prompts; validation every ", plan.intervals.validate, ", saving every ", plan.intervals.save,
                     "\n  a step: ", step_text(setup), "\n");
  report.text += memory_text(setup.memory, {{"critic", setup.critic_bytes}, {"reward models", setup.judge_bytes}});
  Json& json = report.json;
  json.set("algorithm", setup.settings.name);
  json.set("max_steps", plan.steps.max_steps);
  json.set("steps_per_epoch", plan.steps.steps_per_epoch);
  json.set("updates_per_step", plan.updates_per_step);
  json.set("horizon", plan.horizon);
  json.set("max_prompt_tokens", setup.lengths.max_prompt);
  json.set("max_answer_tokens", setup.lengths.max_new);
  json.set("usual_tokens", setup.usual_length);
  json.set("critic_bytes", setup.critic_bytes);
  json.set("reward_model_bytes", setup.judge_bytes);
  add_verdict(json, setup.memory);
  add_disk(report, setup.disk());
  if (arguments.wants_time && setup.memory.fits)
    add_time(report, step_work(setup), plan.steps.max_steps,
             "where every answer is as long as it may be; rewards that others compute are not counted");
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

PlanReport plan_online_run(WithJob with_job, const PlanArguments& arguments) {
  PlanReport report;
  with_job([&](const OnlineJob& job) { report = plan_job(job, arguments); });
  return report;
}

}  // namespace kedge::cli
