#pragma once
// Everything of an online job that can be known before weights are read: its model's description, tokenizer, prompts, and plans.
#include <cstdint>
#include <memory>
#include <string>

#include "kedge/algo/online/online_trainer.h"
#include "kedge/dist/mesh.h"
#include "kedge/run/disk_check.h"
#include "kedge/run/memory_check.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

class OnlineJob;

// Made in the order in which mistakes are cheapest to find. The job must outlive it.
struct OnlineSetup {
  struct Options {
    int64_t beside = 0;      // bytes that other processes, not started yet, will take where the policy computes
    bool has_critic = true;  // where the algorithm has one; false: its values come from a record
  };
  explicit OnlineSetup(const OnlineJob& given) : OnlineSetup(given, Options()) {}
  OnlineSetup(const OnlineJob& job, const Options& options);
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
  MemoryRequest memory_request;
  MemoryFit memory;
  [[nodiscard]] DiskPlan disk() const;
  [[nodiscard]] bool recomputes_logprobs() const;  // the policy's log-probabilities before an update come from a pass of their own

 private:
  void open_prompts();
  [[nodiscard]] int64_t longest_prompt() const;
  [[nodiscard]] int64_t judges_bytes() const;
  void plan_memory(const Options& options);
};

// Answers that were recorded are used again only where the files they came from say the same.
[[nodiscard]] std::string files_fingerprint(const OnlineSetup& setup);

}  // namespace kedge
