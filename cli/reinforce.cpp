#include "kedge/algo/reinforce.h"

#include "cli/commands.h"
#include "cli/online_job.h"
#include "cli/run_session.h"

namespace kedge::cli {

namespace {

void with_job(const std::function<void(const OnlineJob& job)>& use) {
  ReinforceConfig config;
  use({.section = describe(config),
       .config = config,
       .compute = config.trainer,
       .settings = [&] { return settings_of(config); },
       .make_trainer = [&](OnlineParts parts, const OnlineSettings& settings) -> std::unique_ptr<OnlineTrainer> {
         return std::make_unique<ReinforceTrainer>(std::move(parts), config.trainer.reinforce, settings);
       }});
}

}  // namespace

std::string reinforce_flags() { return training_flags("reinforce"); }

int run_reinforce(const Arguments& arguments) {
  int code = kExitOk;
  with_job([&](const OnlineJob& job) { code = run_online(job, arguments); });
  return code;
}

PlanReport plan_reinforce(const Arguments& arguments) {
  PlanReport report;
  with_job([&](const OnlineJob& job) { report = plan_online_run(job, arguments); });
  return report;
}

}  // namespace kedge::cli
