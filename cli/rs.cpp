#include "kedge/algo/config_sections.h"

#include "cli/commands.h"
#include "cli/online_job.h"
#include "cli/run_session.h"

namespace kedge::cli {

void with_rs(const UseJob& use) {
  RsConfig config;
  use({.section = describe(config),
       .config = config,
       .compute = config.trainer,
       .settings = [&] { return settings_of(config); },
       .make_trainer = [](OnlineParts parts, const OnlineSettings& settings) -> std::unique_ptr<OnlineTrainer> {
         return std::make_unique<RSTrainer>(std::move(parts), settings);
       }});
}

std::string rs_flags() { return training_flags("rs"); }

int run_rs(const Arguments& arguments) { return run_online(with_rs, arguments); }

PlanReport plan_rs(const PlanArguments& arguments) { return plan_online_run(with_rs, arguments); }

}  // namespace kedge::cli
