#pragma once
// Everything of an online job that can be known before weights are read: its model's description, tokenizer, prompts, and plans.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kedge/algo/online/online_trainer.h"
#include "kedge/dist/mesh.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/disk_check.h"
#include "kedge/run/memory_check.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

class OnlineJob;

// Ordered so that the cheapest checks come first. The job must outlive it.
struct OnlineSetup {
  struct Options {
    int64_t beside = 0;                      // bytes that other processes, not started yet, will take on the policy's device
    bool has_critic = true;                  // if the algorithm has one; false: its values come from a record
    std::optional<PlannedRanks> ranks = {};  // other ranks than were started
  };
  explicit OnlineSetup(const OnlineJob& given) : OnlineSetup(given, Options()) {}
  OnlineSetup(const OnlineJob& job, const Options& options);
  OnlineSetup(const OnlineSetup&) = delete;
  OnlineSetup& operator=(const OnlineSetup&) = delete;

  const OnlineJob& job;
  OnlineSettings settings;
  Mesh mesh, generation;         // the ranks as they train, and as they generate
  bool generates_apart = false;  // in another layout
  Path folder;                   // of the model
  ModelConfig network;
  std::unique_ptr<Tokenizer> tokenizer;
  OnlineLengths lengths;
  std::shared_ptr<const PromptDataset> prompts, validation;  // the latter may be null
  OnlinePlan plan;
  StorageOptions storage;
  int64_t critic_bytes = 0, judge_bytes = 0;  // for a critic and for reward models in this process
  int64_t usual_length = 0;  // tokens of a prompt and its answer; prompts may be longer than those that were sampled for it
  MemoryRequest memory_request;
  MemoryFit memory;
  [[nodiscard]] DiskPlan disk() const;
  [[nodiscard]] std::optional<GenerationRanks> generation_ranks() const;  // none: as in training
  [[nodiscard]] bool recomputes_logprobs() const;  // the policy's log-probabilities before an update come from a separate pass

 private:
  void open_prompts();
  [[nodiscard]] int64_t longest_prompt() const;
  [[nodiscard]] int64_t judges_bytes() const;
  void plan_memory(const Options& options);
};

// Recorded answers are reused only if the files they came from are unchanged.
[[nodiscard]] std::string files_fingerprint(const OnlineSetup& setup);

}  // namespace kedge
