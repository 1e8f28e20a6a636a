#pragma once
// Prompts in, sampled ids and their log-probabilities out: many requests at once over one model, whose weights are read in place, so
// that an optimizer's step affects the next token. Independent of text, rewards and training.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/engine/sampling.h"
#include "kedge/engine/scheduler.h"
#include "kedge/engine/token_sampler.h"
#include "kedge/model/model.h"

namespace kedge {

struct EngineConfig {
  std::string memory = "0.5";
  SchedulerConfig scheduler = {};
  bool use_graphs = true;
  bool step_ahead = true;
  bool step_ahead_on_cpu = false;  // for tests: there is no second device whose waiting it would end
  bool release_in_training = false;

  void fields(auto&& field) {
    field("memory", memory,
          "size of the KV cache: bytes (\"4GiB\") or a fraction (\"0.5\") of the memory free when generation starts; in online training "
          "also auto: what a step needs, at most half of the free memory");
    scheduler.fields(field);
    field("use_graphs", use_graphs, "record decoding steps as CUDA graphs");
    field("step_ahead", step_ahead, "on a GPU, start a step before the tokens of the previous one have been read; results are the same");
    field("release_in_training", release_in_training, "free the KV cache during training");
  }
};

struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t num_samples = 1;
  int64_t max_new = 128;   // maximum response tokens; the model's context also limits them
  int64_t min_new = 0;     // tokens before EOS may be sampled
  int64_t vocab_size = 0;  // ids from here on are padding of the model's vocabulary and never sampled; 0: none
  SamplingConfig sampling;
  double logprob_temperature = 1;                               // of the log-probabilities that are returned
  SampleKey key;                                                // of the first sample; the others count key.sample up
  std::vector<int32_t> end_ids;                                 // EOS first
  size_t num_eos = 1;                                           // how many of them may not be sampled before min_new
  std::function<bool(std::span<const int32_t> response)> ends;  // called after every token, for ends that are not a single id; may be empty
  std::string where = "a request";                              // opens errors: "prompts.jsonl line 3"
};

enum class Finish { end, length, failed };  // an end was sampled; the limit was reached; the logits were not finite
[[nodiscard]] std::string_view name_of(Finish finish);

struct Completion {
  int64_t request = 0;          // as submit() numbered it
  int64_t sample = 0;           // from 0
  std::vector<int32_t> tokens;  // the response, with the id that ended it
  std::vector<float> logprobs;  // of each, under softmax of the raw logits / logprob_temperature
  Finish finish = Finish::length;
  std::string error;  // if it failed
};

// Called during step(); they may submit further requests. Tokens of a sample come in order, and its end after them.
struct EngineEvents {
  std::function<void(int64_t request, int64_t sample, int32_t token)> token;  // may be empty
  std::function<void(Completion completion)> end;
};

struct EngineStats {
  int64_t num_steps = 0;
  int64_t num_computed = 0;   // tokens computed by the network, with those past an end that was not known yet
  int64_t num_drawn = 0;      // tokens sampled
  int64_t num_preempted = 0;  // sequences that were preempted
};

// Not thread-safe. `model` must outlive it and must be a language model. Ranks that compute it together make the same calls with the same
// requests, and get the same tokens.
class Engine {
 public:
  Engine(const Model& model, const EngineConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The request's number. A request that cannot be served is a UsageError that opens with its `where`; the others continue.
  int64_t submit(GenerateRequest request);
  // Samples the tokens of one step; false when there is nothing left to do. On a GPU the step after it may be under way on return, unless
  // all requests have ended: it has seen the weights as they are now, and requests that are submitted join the one after it.
  bool step(const EngineEvents& events);

  // Runs all of them to the end, in the order of requests and samples. A request that cannot be served comes back as failed, with the
  // error.
  [[nodiscard]] std::vector<std::vector<Completion>> generate(std::vector<GenerateRequest> requests);

  [[nodiscard]] bool idle() const { return requests_.empty(); }
  [[nodiscard]] EngineStats stats() const;
  [[nodiscard]] int64_t memory_bytes() const;  // held for keys and values now
  [[nodiscard]] bool is_cuda() const { return model_.device().is_cuda(); }
  // Maximum tokens of prompt and response of a sequence.
  [[nodiscard]] int64_t max_length() const;

  // Releases the memory of the KV cache and the recorded graphs; the next step allocates them again. Only while idle.
  void release();
  // The same if so configured.
  void release_for_training() {
    if (config_.release_in_training) release();
  }
  [[nodiscard]] const EngineConfig& config() const { return config_; }

 private:
  struct Open;
  struct Launched;
  struct Parts;

  void take_memory();
  [[nodiscard]] bool goes_ahead() const;
  [[nodiscard]] std::optional<Launched> launch();
  void extend(const Launched& launched);
  [[nodiscard]] std::vector<std::optional<Drawn>> results(Launched& launched);
  [[nodiscard]] std::vector<Draw> draws_of(const Step& step) const;
  [[nodiscard]] std::vector<std::optional<Drawn>> draw_by_ranks(const Tensor& logits, const std::vector<Draw>& draws) const;
  [[nodiscard]] std::optional<Finish> take(Open& open, int64_t sample, const std::optional<Drawn>& drawn);

  const Model& model_;
  EngineConfig config_;
  std::unique_ptr<Parts> parts_;
  std::map<int64_t, std::unique_ptr<Open>> requests_;
  int64_t next_request_ = 0;
  int64_t num_penalised_ = 0;  // open requests with a repetition penalty
  EngineStats stats_;
};

}  // namespace kedge
