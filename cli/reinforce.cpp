#include "kedge/algo/config_sections.h"

#include "cli/commands.h"
#include "cli/online_job.h"
#include "cli/run_session.h"

namespace kedge::cli {

void with_reinforce(const UseJob& use) {
  ReinforceConfig config;
  use({.section = describe(config),
       .config = config,
       .compute = config.trainer,
       .settings = [&] { return settings_of(config); },
       .make_trainer = [&](OnlineParts parts, const OnlineSettings& settings) -> std::unique_ptr<OnlineTrainer> {
         return std::make_unique<ReinforceTrainer>(std::move(parts), config.trainer.reinforce, settings);
       }});
}

std::string reinforce_flags() { return training_flags("reinforce"); }

int run_reinforce(const Arguments& arguments) { return run_online(with_reinforce, arguments); }

PlanReport plan_reinforce(const PlanArguments& arguments) { return plan_online_run(with_reinforce, arguments); }

}  // namespace kedge::cli
