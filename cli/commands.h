#pragma once
// The commands: one table in main.cpp, one function each. A command returns the process's exit code.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace kedge::cli {

struct Command {
  std::string_view name;
  std::string_view group;    // its heading in kedge --help
  std::string_view summary;  // one line
  std::string_view usage;    // arguments and examples for kedge NAME --help
  int (*run)(const Arguments& arguments);
  std::string (*flags)();  // its flags, for the same help
  // What may follow its name: "reward", "prepare hh". Null: nothing known in advance.
  std::vector<std::string> (*words)() = nullptr;
};

int run_sft(const Arguments& arguments);
std::string sft_flags();
int run_rm(const Arguments& arguments);
std::string rm_flags();
int run_dpo(const Arguments& arguments);
std::string dpo_flags();
int run_kto(const Arguments& arguments);
std::string kto_flags();
int run_ppo(const Arguments& arguments);
std::string ppo_flags();
int run_reinforce(const Arguments& arguments);
std::string reinforce_flags();
int run_grpo(const Arguments& arguments);
std::string grpo_flags();
int run_rloo(const Arguments& arguments);
std::string rloo_flags();
int run_rs(const Arguments& arguments);
std::string rs_flags();
int run_serve(const Arguments& arguments);
std::string serve_flags();
int run_plan(const Arguments& arguments);
std::string plan_flags();
std::vector<std::string> plan_words();
int run_bench(const Arguments& arguments);
std::string bench_flags();
std::vector<std::string> bench_words();
int run_init(const Arguments& arguments);
std::string init_flags();
int run_inspect(const Arguments& arguments);
std::string inspect_flags();
int run_logprobs(const Arguments& arguments);
std::string logprobs_flags();
int run_generate(const Arguments& arguments);
std::string generate_flags();
int run_score(const Arguments& arguments);
std::string score_flags();
int run_export(const Arguments& arguments);
std::string export_flags();
int run_eval(const Arguments& arguments);
std::string eval_flags();
int run_show(const Arguments& arguments);
std::string show_flags();
int run_report(const Arguments& arguments);
std::string report_flags();
int run_replay(const Arguments& arguments);
std::string replay_flags();
int run_bisect(const Arguments& arguments);
std::string bisect_flags();
int run_track(const Arguments& arguments);
std::string track_flags();
int run_dashboard(const Arguments& arguments);
std::string dashboard_flags();
int run_doctor(const Arguments& arguments);
std::string doctor_flags();
int run_data(const Arguments& arguments);
std::string data_flags();
int run_tokenize(const Arguments& arguments);
std::string tokenize_flags();
int run_config(const Arguments& arguments);
std::string config_flags();
int run_completion(const Arguments& arguments);
std::string completion_flags();
std::vector<std::string> completion_words();

// Runs the command of the program's arguments, without the program's name. Errors are exceptions.
int run_commands(std::span<const Command> commands, const Arguments& arguments);

}  // namespace kedge::cli
