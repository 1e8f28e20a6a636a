#pragma once
// The options of kedge eval: its flags, and the policies and settings they select.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/inspect/eval_settings.h"
#include "kedge/inspect/eval_targets.h"
#include "kedge/model/model.h"

#include "cli/device_flags.h"

namespace kedge::cli {

struct EvalOptions {
  std::vector<std::string> what;
  std::optional<std::string> steps;
  int64_t every = 0;
  std::optional<std::string> baseline, prompts, reward;
  std::optional<int64_t> limit;
  int64_t samples = 1;
  bool greedy = false;
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k, max_new, seed;
  std::optional<double> pass;
  std::optional<std::string> pass_k;
  bool kl = true;
  std::optional<std::string> csv, answers;
  bool json = false, allow_commands = false;
  std::optional<std::string> device;
  std::optional<Precision> dtype;
  std::optional<int64_t> threads;

  void fields(auto&& field) {
    field("what", what, "runs, checkpoints or model folders; key=value settings override those of the run", required());
    field("steps", steps, "only the checkpoints of these steps: 10,20");
    field("every", every, "only checkpoints whose step is a multiple of this", at_least(0));
    field("baseline", baseline, "model folder or checkpoint to compare with [what the run started from; else the first folder]");
    field("prompts", prompts, "file of prompts, in the format used for training [the run's validation prompts]");
    field("limit", limit, "number of prompts, from the start of the file; 0: all [the run's num_val_samples; else 64]", at_least(0));
    field("reward", reward, "YAML file with a reward section, as for training [the run's own rewards]");
    field("samples", samples, "responses per prompt", at_least(1));
    field("greedy", greedy, "always pick the most likely token");
    field("temperature", temperature, "divides the logits [as in the run's validation]", above(0));
    field("top_k", top_k, "sample from the k most likely tokens; 0: from all [as in the run's validation]", at_least(0));
    field("top_p", top_p, "sample from the most likely tokens with this total probability [as in the run's validation]", at_least(0),
          at_most(1));
    field("max_new", max_new, "maximum response length in tokens [as in the run's validation; else 256]", at_least(1));
    field("seed", seed, "random seed [the run's]", at_least(0));
    field("pass", pass, "pass@k: a response passes if its reward is at least this");
    field("pass_k", pass_k, "values of k, up to the number of samples: 1,4 [1 and all samples]");
    field("allow_commands", allow_commands, "run the reward commands of a run that belongs to another user");
    field("kl", kl, "measure the KL from the initial policy; --no-kl skips it and needs no second copy of the network");
    field("csv", csv, "write all metrics to this file, with full precision");
    field("answers", answers, "write all responses with their rewards to this file, as JSON lines");
    field("json", json, "print JSON lines instead of the table, one per policy");
    field("device", device, "auto, cpu, cuda or cuda:N [the run's]");
    field("dtype", dtype, "type to compute in [the run's]");
    field("threads", threads, "CPU threads; 0: OMP_NUM_THREADS, or one per core [the run's]", at_least(0), at_most(4096));
  }
};

inline const std::vector<std::string> kEvalPositionals = {"what"};

// What follows the flags: folders, and settings.
struct Words {
  std::vector<std::string> folders, overrides;
};
[[nodiscard]] Words words_of(const std::vector<std::string>& what);

// All policies, the baseline first.
struct Policies {
  std::vector<EvalTarget> targets;
  std::shared_ptr<const RunOnDisk> run;  // whose settings count; may be null
};
[[nodiscard]] Policies find_policies(const EvalOptions& options, const Words& words);
[[nodiscard]] bool is_of_online_run(const EvalTarget& target);

// The settings with all that the flags change.
[[nodiscard]] PolicySettings settle(const EvalOptions& options, const Words& words, const Policies& policies);
[[nodiscard]] StorageOptions storage_of(const EvalOptions& options, const ComputeConfig& compute);
// Which k pass@k is reported for.
[[nodiscard]] std::vector<int64_t> pass_ks(const EvalOptions& options);

}  // namespace kedge::cli
