#include "kedge/run/supervised_job.h"

#include <optional>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/run_session.h"

namespace kedge {
namespace {

DiskPlan disk_of(const SupervisedSetup& setup) {
  return plan_disk(setup.sections.run, setup.plan.steps.max_steps, setup.plan.intervals.save, setup.memory_request().demand.update);
}

RunJob run_job(const SupervisedSetup& setup) {
  const SupervisedSections& sections = setup.sections;
  const MemoryRequest request = setup.memory_request();
  return {.name = sections.name,
          .section = setup.job.section(),
          .run = sections.run,
          .world = setup.mesh.world,
          .device = setup.mesh.device,
          .model_folder = setup.folder,
          .network_print = shape_fingerprint(setup.network, setup.job.head()),
          .tokenizer_print = setup.tokenizer->fingerprint(),
          .memory = check_memory(request),
          .memory_request = request,
          .rehearses = sections.compute.rehearse,
          .disk = disk_of(setup),
          .data_files = setup.job.files(),
          .kept_start = setup.job.reference_use().exists                        ? kReference
                        : sections.network.peft.peft_scheme == PeftScheme::lora ? kBase
                                                                                : ""};
}

SupervisedTrainer make_trainer(const SupervisedSetup& setup, const RunPlace& place) {
  const SupervisedSections& sections = setup.sections;
  SaveOptions save;
  save.companions = setup.folder;
  return SupervisedTrainer({*setup.model, setup.mesh.data, setup.task, sections.loop, sections.network.optim, setup.job.batches(),
                            setup.plan, sections.network.activations_checkpoint_granularity == Recompute::full, save, sections.model_path,
                            setup.data.largest_rows, place});
}

std::string plan_text(const SupervisedSetup& setup, const MemoryFit& verdict) {
  const SupervisedBatches batches = setup.job.batches();
  const RowSize& micro = setup.data.largest_micro;
  const auto tokens = setup.data.tokens_per_epoch;
  const auto& steps = setup.plan.steps;
  std::string out = plan_heading(setup.sections.name, setup.folder, setup.storage().dtype, setup.mesh);
  out += str("\nSteps\n  ", steps.max_steps, " in total, ", steps.steps_per_epoch, " per epoch; validation every ",
             setup.plan.intervals.validate, ", saving every ", setup.plan.intervals.save, "\n");
  out += str("  ", setup.task.train.size, " training rows, about ", format_number(tokens), " tokens per epoch, ",
             format_number(tokens / static_cast<double>(setup.task.train.size) * static_cast<double>(batches.global_size)), " per step\n");
  out += str("  a step is ", batches.global_size / batches.micro_size / setup.mesh.data.size(), " micro-batches of ", batches.micro_size,
             " per rank; the largest may have ", micro.tokens, " tokens, its longest row ", micro.longest, "\n");
  out += memory_text(verdict, {});
  return out;
}

Json plan_json(const SupervisedSetup& setup, const MemoryFit& verdict) {
  Json json;
  json.set("algorithm", setup.sections.name);
  json.set("max_steps", setup.plan.steps.max_steps);
  json.set("steps_per_epoch", setup.plan.steps.steps_per_epoch);
  json.set("tokens_per_epoch", setup.data.tokens_per_epoch);
  json.set("largest_micro_batch_tokens", setup.data.largest_micro.tokens);
  add_verdict(json, verdict);
  return json;
}

}  // namespace

int64_t SupervisedJob::cache_bytes(const ModelConfig& /*network*/, int64_t /*element_size*/, int64_t /*longest*/) const { return 0; }

void SupervisedJob::add_summary(Json& /*summary*/, const Metrics& /*metrics*/) const {}

int SupervisedJob::run(const RunOptions& options) {
  check_config();
  SupervisedSetup setup(*this);
  const RunJob job = run_job(setup);
  RunSession session(job, options.arguments, options.fork);
  if (session.is_finished()) return kExitOk;
  if (session.checkpoint()) setup.plan = continue_plan(setup.plan, setup.sections.loop, *session.checkpoint(), batches().global_size);
  setup.model = session.within("load", [&] {
    StorageOptions storage = setup.storage();
    storage.kept_logits = job.memory_request.demand.update.kept_logits;
    auto loaded = load(setup.folder, storage);
    add_trained_adapters(*loaded, setup.sections.network);
    return loaded;
  });
  const RunPlace place{
      .folder = session.folder(),
      .weights = str(session.start_hash(), "-", name_of(setup.storage().dtype), "-", setup.mesh.device.is_cuda() ? "gpu" : "cpu"),
      .reference = job.memory.reference.value_or(ReferenceKind::resident),
      .stop = session.stop_question()};
  SupervisedTrainer trainer = session.within("load", [&] { return make_trainer(setup, place); });
  if (!session.checkpoint()) session.within("log-probs", [&] { trainer.begin(); });
  return session.run({.trainer = trainer,
                      .model = *setup.model,
                      .steps = setup.plan.steps,
                      .intervals = setup.plan.intervals,
                      .model_writer = [&] { return trainer.model_writer(); },
                      .add_summary = [&](Json& summary, const Metrics& metrics) { add_summary(summary, metrics); }});
}

PlanReport SupervisedJob::plan(const PlanOptions& options) {
  check_config();
  const SupervisedSetup setup(*this, options.ranks);
  MemoryRequest question = setup.memory_request();
  question.demand.beside = options.beside;
  const MemoryFit verdict = check_memory(question);
  const DiskPlan disk = disk_of(setup);
  PlanReport report{.text = plan_text(setup, verdict), .json = plan_json(setup, verdict), .fits = verdict.fits, .needed = verdict.needed};
  add_disk(report, disk);
  const int64_t passes = batches().global_size / batches().micro_size / setup.mesh.data.size();
  const MemoryInput& update = question.demand.update;
  StepWork work{.pass = of_one_rank(update), .device = setup.mesh.device};
  work.update_tokens = setup.data.tokens_per_epoch / static_cast<double>(setup.task.train.size) *
                       static_cast<double>(batches().global_size / setup.mesh.data.size());
  const ReferenceUse use = reference_use();
  work.look_tokens = work.update_tokens * use.looks;
  const int64_t tensor = tensor_wire_bytes(tensor_wire_input(update), {.trained = work.update_tokens, .seen = work.look_tokens});
  const double wire_s = add_wire(report, update, setup.shards, {.passes = passes, .updates = 1},
                                 {.tensor_ranks = update.tensor_ranks, .tensor = tensor}, options.ranks);
  if (options.wants_time && verdict.fits) {
    const bool once = use.exists && !use.copies;
    add_time(report, work, setup.plan.steps.max_steps,
             once ? "validation and the reference's pass before step 0 not counted" : "validation not counted", wire_s);
  }
  return report;
}

}  // namespace kedge
