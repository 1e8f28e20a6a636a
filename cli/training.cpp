#include "cli/training.h"

#include "kedge/core/error.h"
#include "kedge/dist/mesh.h"
#include "kedge/run/job.h"

#include "cli/commands.h"
#include "cli/recipes.h"

namespace kedge::cli {
namespace {

std::unique_ptr<Job> load_job(std::string_view name, const Arguments& arguments) {
  std::unique_ptr<Job> job = make_job(name);
  ensure(job != nullptr, "no job is named ", name);
  Arguments rest = arguments;
  if (const auto recipe = take_flag(rest, "--recipe", "the name of a recipe")) set_recipe(job->section(), name, *recipe);
  const ConfigArguments given = read_config_arguments(rest);
  load_config(job->section(), given.file, given.overrides);
  return job;
}

int run_training(std::string_view name, const Arguments& arguments) {
  name_rank_in_log();
  Arguments rest = arguments;
  const std::optional<Path> fork = take_fork(rest);
  return load_job(name, rest)->run({.fork = fork, .arguments = arguments});
}

std::string training_flags(std::string_view name) {
  const std::string fork = "  --fork CKPT    start a new run, in another folder, from a checkpoint of an existing run\n";
  const std::string keys = str("\nkedge config ", name, " lists every key; kedge config ", name, " --yaml prints a file to start from.\n");
  const std::string names = recipe_names(name);
  if (names.empty()) return fork + keys;
  return str("  --recipe ", names, "\n                 start from the settings of a published algorithm; files and key=value change them\n",
             fork, keys, "\nRecipes\n", recipes_help(name));
}

}  // namespace

std::optional<Path> take_fork(Arguments& arguments) { return take_flag(arguments, "--fork", "the folder of a checkpoint"); }

PlanReport plan_training(std::string_view name, const Arguments& arguments, const PlanOptions& options) {
  return load_job(name, arguments)->plan(options);
}

int run_sft(const Arguments& arguments) { return run_training("sft", arguments); }
std::string sft_flags() { return training_flags("sft"); }
int run_rm(const Arguments& arguments) { return run_training("rm", arguments); }
std::string rm_flags() { return training_flags("rm"); }
int run_dpo(const Arguments& arguments) { return run_training("dpo", arguments); }
std::string dpo_flags() { return training_flags("dpo"); }
int run_kto(const Arguments& arguments) { return run_training("kto", arguments); }
std::string kto_flags() { return training_flags("kto"); }
int run_ppo(const Arguments& arguments) { return run_training("ppo", arguments); }
std::string ppo_flags() { return training_flags("ppo"); }
int run_reinforce(const Arguments& arguments) { return run_training("reinforce", arguments); }
std::string reinforce_flags() { return training_flags("reinforce"); }
int run_grpo(const Arguments& arguments) { return run_training("grpo", arguments); }
std::string grpo_flags() { return training_flags("grpo"); }
int run_rloo(const Arguments& arguments) { return run_training("rloo", arguments); }
std::string rloo_flags() { return training_flags("rloo"); }
int run_rs(const Arguments& arguments) { return run_training("rs", arguments); }
std::string rs_flags() { return training_flags("rs"); }

}  // namespace kedge::cli
