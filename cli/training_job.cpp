#include "cli/training_job.h"

#include <optional>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"

#include "cli/compute.h"
#include "cli/run_session.h"

namespace kedge::cli {
namespace {

void load_settings(const TrainingJob& job, const Arguments& arguments) {
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(job.section, given.file, given.overrides);
  if (job.check_config) job.check_config();
}

DiskPlan disk_of(const TrainingSetup& setup) {
  return plan_disk(setup.job.run, setup.plan.steps.max_steps, setup.plan.intervals.save, setup.memory_question().demand.update);
}

RunJob run_job(const TrainingSetup& setup) {
  const TrainingJob& job = setup.job;
  return {.name = job.name,
          .section = job.section,
          .run = job.run,
          .world = setup.mesh.world,
          .device = setup.mesh.device,
          .model_folder = setup.folder,
          .network_print = shape_print(setup.network, job.head()),
          .tokenizer_print = setup.tokenizer->fingerprint(),
          .memory = check_memory(setup.memory_question()),
          .memory_question = setup.memory_question(),
          .rehearses = job.compute.rehearse,
          .disk = disk_of(setup),
          .data_files = job.data_files()};
}

SupervisedTrainer make_trainer(const TrainingSetup& setup) {
  const TrainingJob& job = setup.job;
  SaveOptions save;
  save.companions = setup.folder;
  return SupervisedTrainer({*setup.model, setup.mesh.world, setup.task, job.loop, job.network.optim, job.batches(), setup.plan,
                            job.network.activations_checkpoint_granularity == Recompute::full, save, job.model_path,
                            setup.data.largest_rows});
}

std::string plan_text(const TrainingSetup& setup, const MemoryVerdict& verdict) {
  const TrainingJob& job = setup.job;
  const SupervisedBatches batches = job.batches();
  const RowSize& micro = setup.data.largest_micro;
  const auto tokens = setup.data.tokens_per_epoch;
  const auto& steps = setup.plan.steps;
  std::string out = plan_heading(job.name, setup.folder, setup.storage().dtype, setup.mesh);
  out += str("\nSteps\n  ", steps.max_steps, " in all, ", steps.steps_per_epoch, " an epoch; validation every ",
             setup.plan.intervals.validate, ", saving every ", setup.plan.intervals.save, "\n");
  out += str("  ", setup.task.train.size, " training rows, about ", format_number(tokens), " tokens an epoch, ",
             format_number(tokens / static_cast<double>(setup.task.train.size) * static_cast<double>(batches.global_size)), " a step\n");
  out += str("  a step is ", batches.global_size / batches.micro_size / setup.mesh.world.size(), " micro-batches of ", batches.micro_size,
             " a rank; the largest may have ", micro.tokens, " tokens, its longest row ", micro.longest, "\n");
  out += memory_text(verdict, {});
  return out;
}

Json plan_json(const TrainingSetup& setup, const MemoryVerdict& verdict) {
  Json json;
  json.set("algorithm", setup.job.name);
  json.set("max_steps", setup.plan.steps.max_steps);
  json.set("steps_per_epoch", setup.plan.steps.steps_per_epoch);
  json.set("tokens_per_epoch", setup.data.tokens_per_epoch);
  json.set("largest_micro_batch_tokens", setup.data.largest_micro.tokens);
  add_verdict(json, verdict);
  return json;
}

}  // namespace

int run_training(const TrainingJob& job, const Arguments& arguments) {
  Arguments rest = arguments;
  const std::optional<Path> fork = take_fork(rest);
  load_settings(job, rest);
  TrainingSetup setup(job);
  const RunJob run = run_job(setup);
  RunSession session(run, arguments, fork);
  if (session.checkpoint()) setup.plan = continue_plan(setup.plan, job.loop, *session.checkpoint(), job.batches().global_size);
  setup.model = session.within("load", [&] {
    auto loaded = job.load_model(setup.folder, setup.storage());
    add_trained_adapters(*loaded, job.network);
    return loaded;
  });
  SupervisedTrainer trainer = session.within("load", [&] { return make_trainer(setup); });
  return session.run({.trainer = trainer,
                      .model = *setup.model,
                      .steps = setup.plan.steps,
                      .intervals = setup.plan.intervals,
                      .write_model = [&](const Path& folder) { trainer.write_model(folder); },
                      .add_summary = job.add_summary});
}

PlanReport plan_training(const TrainingJob& job, const PlanArguments& arguments) {
  load_settings(job, arguments.rest);
  const TrainingSetup setup(job);
  MemoryQuestion question = setup.memory_question();
  question.demand.beside = arguments.beside;
  const MemoryVerdict verdict = check_memory(question);
  const DiskPlan disk = disk_of(setup);
  PlanReport report{.text = plan_text(setup, verdict), .json = plan_json(setup, verdict), .fits = verdict.fits, .needed = verdict.needed};
  add_disk(report, disk);
  if (arguments.wants_time && verdict.fits) {
    StepWork work{.pass = question.demand.update, .device = setup.mesh.device};
    work.update_tokens = setup.data.tokens_per_epoch / static_cast<double>(setup.task.train.size) *
                         static_cast<double>(job.batches().global_size / setup.mesh.world.size());
    add_time(report, work, setup.plan.steps.max_steps, "validation not counted");
  }
  return report;
}

}  // namespace kedge::cli
