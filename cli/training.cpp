#include "cli/training.h"

#include "kedge/core/error.h"
#include "kedge/run/job.h"

#include "cli/commands.h"

namespace kedge::cli {
namespace {

std::unique_ptr<Job> load_job(std::string_view name, const Arguments& arguments) {
  std::unique_ptr<Job> job = make_job(name);
  ensure(job != nullptr, "no job is named ", name);
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(job->section(), given.file, given.overrides);
  return job;
}

int run_training(std::string_view name, const Arguments& arguments) {
  Arguments rest = arguments;
  const std::optional<Path> fork = take_fork(rest);
  return load_job(name, rest)->run({.fork = fork, .arguments = arguments});
}

std::string training_flags(std::string_view name) {
  return str("  --fork CKPT    start a new run, in another folder, from a checkpoint of an existing run\n\n", "kedge config ", name,
             " lists every key; kedge config ", name, " --yaml prints a file to start from.\n");
}

}  // namespace

std::optional<Path> take_fork(Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != "--fork" && !arguments[i].starts_with("--fork=")) continue;
    const bool joined = arguments[i] != "--fork";
    check(joined || i + 1 < arguments.size(), "--fork: expected the folder of a checkpoint");
    const Path path = joined ? arguments[i].substr(std::string("--fork=").size()) : arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<int64_t>(i), arguments.begin() + static_cast<int64_t>(i) + (joined ? 1 : 2));
    return path;
  }
  return std::nullopt;
}

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
int run_rs(const Arguments& arguments) { return run_training("rs", arguments); }
std::string rs_flags() { return training_flags("rs"); }

}  // namespace kedge::cli
