#pragma once
// An online training command from its configuration to its last checkpoint: what kedge ppo, reinforce and rs have in common.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kedge/algo/online_trainer.h"
#include "kedge/core/config.h"
#include "kedge/core/stop.h"
#include "kedge/data/tokenizer.h"
#include "kedge/dist/mesh.h"

#include "cli/arguments.h"
#include "cli/memory_check.h"
#include "cli/plan.h"

namespace kedge::cli {

struct OnlineSetup;

// What a critic is opened for.
struct CriticPlace {
  const OnlineSetup& setup;
  Path run_folder;
  StopQuestion stop;  // a signal ends the wait for a server that is away
};

// The critic of a run with all it is made of, here or on a server.
class CriticLink {
 public:
  virtual ~CriticLink() = default;
  [[nodiscard]] virtual ValueSource& critic() = 0;
  virtual void give_up() {}  // nobody waits for it any more
};

// An algorithm's own part. Everything refers to its configuration, which must outlive it.
struct OnlineJob {
  Section section;  // of the whole configuration
  const OnlineConfig& config;
  const ComputeConfig& compute;
  std::function<OnlineSettings()> settings;  // may refuse what contradicts itself
  std::function<std::unique_ptr<OnlineTrainer>(OnlineParts parts, const OnlineSettings& settings)> make_trainer;
  // Of an algorithm with a critic: before the policy's weights are read, so that what is wrong with a server is told early.
  std::function<std::unique_ptr<CriticLink>(const CriticPlace& place)> open_critic = {};
  std::function<int64_t(const Mesh& mesh)> critic_bytes = {};  // what it takes of the policy's device, at most
};

// Makes a job and lends it.
using UseJob = std::function<void(const OnlineJob& job)>;
using WithJob = void (*)(const UseJob& use);
void with_ppo(const UseJob& use);
void with_reinforce(const UseJob& use);
void with_rs(const UseJob& use);
// By the name of its command. None where no such command trains online.
[[nodiscard]] WithJob find_online_job(std::string_view name);

// Everything of a job that can be known before weights are read, in the order in which mistakes are cheapest to find.
struct OnlineSetup {
  // `beside`: bytes that others will take where the policy computes, who are not started yet.
  explicit OnlineSetup(const OnlineJob& job, int64_t beside = 0);
  OnlineSetup(const OnlineSetup&) = delete;
  OnlineSetup& operator=(const OnlineSetup&) = delete;

  const OnlineJob& job;
  OnlineSettings settings;
  Mesh mesh;
  Path folder;  // of the model
  ModelConfig network;
  std::unique_ptr<Tokenizer> tokenizer;
  OnlineLengths lengths;
  std::shared_ptr<const PromptDataset> prompts, validation;  // the latter may be null
  OnlinePlan plan;
  StorageOptions storage;
  int64_t critic_bytes = 0, judge_bytes = 0;  // for a critic and for reward models in this process
  int64_t usual_length = 0;                   // tokens of a prompt and its answer; prompts may be longer than those that were looked at
  MemoryQuestion memory_question;
  MemoryVerdict memory;
  [[nodiscard]] DiskPlan disk() const;
  [[nodiscard]] bool looks_itself() const;  // the policy's log-probabilities before an update come from a pass of their own

 private:
  void open_prompts();
  [[nodiscard]] int64_t longest_prompt() const;
  [[nodiscard]] int64_t judges_bytes() const;
  void plan_memory(int64_t beside);
};

// Answers that were recorded are used again only where the files they came from say the same.
[[nodiscard]] std::string files_print(const OnlineSetup& setup);

// Loads the configuration the arguments name and runs the job, or says what it would take. Returns the exit code.
int run_online(WithJob with_job, const Arguments& arguments);
[[nodiscard]] PlanReport plan_online_run(WithJob with_job, const PlanArguments& arguments);

}  // namespace kedge::cli
