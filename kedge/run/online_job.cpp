#include "kedge/run/online_job.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/model/files/model_files.h"
#include "kedge/reward/reward_sources.h"
#include "kedge/rollout/value_collector.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/grpo_job.h"
#include "kedge/run/ppo_job.h"
#include "kedge/run/reinforce_job.h"
#include "kedge/run/rs_job.h"
#include "kedge/run/run_session.h"
#include "kedge/text/chat/chat_template.h"

namespace kedge {
namespace {

// A source of kind critic is what comes with the values.
RewardSourceMaker with_critic(ValueCollector* collector, RewardSourceMaker make_other) {
  if (collector == nullptr) return make_other;
  return [collector, make_other](const std::string& key, const RewardSourceConfig& config) {
    return config.kind == RewardKind::critic ? collector->rewards() : make_other(key, config);
  };
}

// Rewards that still wait for the critic when the run ends are cancelled.
class CancelAtEnd {
 public:
  explicit CancelAtEnd(CriticLink* critic) : critic_(critic) {}
  ~CancelAtEnd() {
    if (critic_ != nullptr) critic_->cancel();
  }
  CancelAtEnd(const CancelAtEnd&) = delete;
  CancelAtEnd& operator=(const CancelAtEnd&) = delete;

 private:
  CriticLink* critic_;
};

std::string step_text(const OnlineSetup& setup) {
  return str(setup.settings.rollouts.num_rollout_samples, " prompts x ", setup.settings.samples_per_prompt, " answers of up to ",
             setup.lengths.max_new, " tokens, ", setup.plan.updates_per_step, setup.plan.updates_per_step == 1 ? " update" : " updates",
             "; prompts of up to ", setup.lengths.max_prompt, " tokens",
             setup.settings.model.optim.sched.name == ScheduleKind::constant
                 ? ""
                 : str("; the learning rate's horizon: ", setup.plan.horizon, setup.plan.horizon == 1 ? " update" : " updates"));
}

// The program's own source, which it may also use elsewhere.
class SharedReward : public RewardSource {
 public:
  explicit SharedReward(std::shared_ptr<RewardSource> source) : source_(std::move(source)) {}
  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override { return source_->submit(std::move(rollouts)); }

 private:
  std::shared_ptr<RewardSource> source_;
};

// A rank's share of a step.
StepWork step_work(const OnlineSetup& setup) {
  const OnlineSettings& settings = setup.settings;
  const auto ranks = static_cast<int64_t>(setup.mesh.data.size());
  StepWork work{.pass = of_one_rank(setup.memory_request.demand.update), .device = setup.mesh.device};
  const int64_t trained = settings.rollouts.num_rollout_samples * settings.rows_per_prompt / ranks;
  const int64_t prompt = setup.usual_length - setup.lengths.max_new;
  const double tokens = static_cast<double>(trained * setup.usual_length) * computed_share(settings, setup.usual_length, prompt);
  work.update_tokens = tokens * static_cast<double>(settings.epochs);
  work.look_tokens = tokens * ((setup.recomputes_logprobs() ? 1 : 0) + (settings.wants_reference ? 1 : 0));
  work.num_updates = setup.plan.updates_per_step;
  work.engine = settings.model.engine;
  if (setup.generates_apart) work.generator = split_config(setup.network, {0, setup.generation.tensor.size()});
  work.answers = settings.rollouts.num_rollout_samples * settings.samples_per_prompt / setup.generation.data.size();
  work.prompt_tokens = prompt;
  work.answer_tokens = setup.lengths.max_new;
  return work;
}

WireEvents wire_events(const OnlineSetup& setup) {
  const OnlineSettings& settings = setup.settings;
  const int64_t rows = settings.model.global_batch_size / setup.mesh.data.size();
  const double share = computed_share(settings, setup.usual_length, setup.usual_length - setup.lengths.max_new);
  const auto tokens = static_cast<int64_t>(static_cast<double>(rows * setup.usual_length) * share);
  const int64_t per_update = std::max<int64_t>(1, tokens / settings.rollouts.tokens_per_pass);
  WireEvents events{.updates = setup.plan.updates_per_step};
  events.passes = per_update * events.updates;
  // For generation first.
  events.wholes = (setup.generates_apart ? 0 : 1) + (setup.recomputes_logprobs() ? 1 : 0) + (settings.wants_reference ? 1 : 0);
  return events;
}

// What ranks that compute together send each other, and what moves to generation's own layout.
ComputeTraffic compute_traffic(const OnlineSetup& setup) {
  const StepWork work = step_work(setup);
  const MemoryInput& update = setup.memory_request.demand.update;
  const auto drawn = static_cast<double>(work.answers * work.answer_tokens);
  // Responses to one prompt compute it once.
  const double prompts = static_cast<double>(work.answers / setup.settings.samples_per_prompt * work.prompt_tokens);
  ComputeTraffic traffic{.tensor_ranks = std::max(setup.mesh.tensor.size(), setup.generation.tensor.size())};
  traffic.tensor = tensor_wire_bytes(tensor_wire_input(update), {.trained = work.update_tokens, .seen = work.look_tokens});
  TensorWireInput generation = tensor_wire_input(update);
  generation.tensor_ranks = setup.generation.tensor.size();
  traffic.tensor += tensor_wire_bytes(generation, {.seen = drawn + prompts, .drawn = drawn});
  if (setup.generates_apart) traffic.reshard = reshard_bytes(update, setup.generation.tensor.size());
  return traffic;
}

}  // namespace

std::unique_ptr<CriticLink> OnlineJob::open_critic(const CriticPlace& /*place*/) const { return nullptr; }

int64_t OnlineJob::critic_bytes(const Mesh& /*mesh*/) const { return 0; }

void OnlineJob::verify(const Checkpoint& checkpoint) const { verify_checkpoint(checkpoint); }

RewardSourceMaker OnlineJob::reward_maker(RewardSourceMaker other) const {
  return [this, other = std::move(other)](const std::string& key, const RewardSourceConfig& config) -> std::unique_ptr<RewardSource> {
    if (config.kind != RewardKind::custom) return other(key, config);
    const auto found = rewards_.find(key.substr(key.rfind('.') + 1));
    check(found != rewards_.end(), key, ".kind: custom is for a program that provides this reward itself (examples/custom_reward)");
    return std::make_unique<SharedReward>(found->second);
  };
}

int OnlineJob::run(const RunOptions& options) {
  OnlineSetup setup(*this);
  if (setup.mesh.world.rank() == 0) warn_of_settings(setup.settings);
  const bool has_lora = setup.settings.model.peft.peft_scheme == PeftScheme::lora;
  const RunJob run{.name = setup.settings.name,
                   .section = section(),
                   .run = config().exp_manager,
                   .world = setup.mesh.world,
                   .device = setup.mesh.device,
                   .model_folder = setup.folder,
                   .network_print = shape_fingerprint(setup.network, {}),
                   .tokenizer_print = setup.tokenizer->fingerprint(),
                   .memory = setup.memory,
                   .memory_request = setup.memory_request,
                   .rehearses = compute().rehearse,
                   .disk = setup.disk(),
                   .data_files = data_files(setup.settings.model.data, "model.data"),
                   .kept_start = setup.settings.wants_reference ? kReference
                                 : has_lora                     ? kBase
                                                                : "",
                   .verify = [this](const Checkpoint& checkpoint) { verify(checkpoint); }};
  RunSession session(run, options.arguments, options.fork);
  if (session.is_finished()) return kExitOk;
  const OnlineSettings agreed = settings();  // an older run keeps values that it had before there were keys for them
  setup.settings.rollouts.logprob_temperature = agreed.rollouts.logprob_temperature;
  setup.settings.rollouts.share_prompts = setup.settings.rollouts.share_prompts && agreed.rollouts.share_prompts;
  setup.settings.identity = agreed.identity + files_fingerprint(setup);
  std::optional<Position> position;
  if (session.checkpoint()) position = position_of(*session.checkpoint());
  if (position) setup.plan = continue_plan(setup.plan, setup.settings, *position);
  const std::optional<ChatTemplate> chat = ChatTemplate::find(setup.folder);
  const StopQuestion stop = session.stop_question();
  const std::unique_ptr<CriticLink> critic =
      has_critic() ? open_critic({setup, session.folder(), session.id(), session.checkpoint(), stop}) : nullptr;
  std::optional<ValueCollector> collector;
  if (critic) collector.emplace(critic->critic());
  const RewardSourceMaker models = model_sources({.tokenizer_fingerprint = setup.tokenizer->fingerprint(),
                                                  .chat_template_fingerprint = chat ? chat->fingerprint() : "",
                                                  .device = setup.mesh.device,
                                                  .dtype = setup.storage.dtype,
                                                  .stop = stop});
  RewardSet rewards(setup.settings.reward, with_critic(collector ? &*collector : nullptr, reward_maker(models)));
  const CancelAtEnd cancel(critic.get());
  const std::unique_ptr<Model> model = session.within("load", [&] {
    auto loaded = load_model(setup.folder, {.storage = setup.storage, .head = HeadKind::language});
    add_trained_adapters(*loaded, setup.settings.model);
    return loaded;
  });
  SaveOptions save;
  save.companions = setup.folder;
  const auto make = [&] {
    return make_trainer({.model = *model,
                         .tokenizer = *setup.tokenizer,
                         .rewards = rewards,
                         .values = collector ? &*collector : nullptr,
                         .prompts = setup.prompts,
                         .validation = setup.validation,
                         .group = setup.mesh.data,
                         .world = setup.mesh.world,
                         .generation = setup.generation_ranks(),
                         .folder = session.folder(),
                         .save = {save, config().pretrained_checkpoint.restore_from_path},
                         .position = position},
                        setup.settings);
  };
  const std::unique_ptr<OnlineTrainer> trainer = session.within("load", make);
  log_info("a step: ", step_text(setup));
  return session.run(
      {.trainer = *trainer, .model = *model, .steps = setup.plan.steps, .intervals = setup.plan.intervals, .model_writer = [&] {
         return trainer->model_writer();
       }});
}

std::unique_ptr<OnlineTrainer> OnlineJob::make_trainer(OnlineParts parts, const OnlineSettings& settings) const {
  return std::make_unique<OnlineTrainer>(std::move(parts), settings, algorithm());
}

PlanReport OnlineJob::plan(const PlanOptions& options) {
  const OnlineSetup setup(*this, {.beside = options.beside, .ranks = options.ranks});
  const OnlinePlan& plan = setup.plan;
  PlanReport report;
  report.fits = setup.memory.fits;
  report.needed = setup.memory.needed;
  report.text = plan_heading(setup.settings.name, setup.folder, setup.storage.dtype, setup.mesh);
  report.text += str("\nSteps\n  ", plan.steps.max_steps, " in total, ", plan.steps.steps_per_epoch, " per epoch of ",
                     setup.prompts->size(), " prompts; validation every ", plan.intervals.validate, ", saving every ", plan.intervals.save,
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
  const double wire_s =
      add_wire(report, setup.memory_request.demand.update, setup.storage.shards, wire_events(setup), compute_traffic(setup), options.ranks);
  if (options.wants_time && setup.memory.fits)
    add_time(report, step_work(setup), plan.steps.max_steps,
             "if every answer has the maximum length; rewards computed elsewhere are not included", wire_s);
  return report;
}

std::unique_ptr<OnlineJob> make_online_job(std::string_view name) {
  if (name == "ppo") return std::make_unique<PpoJob>();
  if (name == "reinforce") return std::make_unique<ReinforceJob>();
  if (name == "grpo") return std::make_unique<GrpoJob>();
  if (name == "rloo") return std::make_unique<RlooJob>();
  if (name == "rs") return std::make_unique<RsJob>();
  return nullptr;
}

}  // namespace kedge
