#include <algorithm>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/random.h"
#include "kedge/core/stopwatch.h"
#include "kedge/engine/engine.h"

#include "cli/bench/bench_support.h"

namespace kedge::cli {
namespace {

struct EngineOptions {
  BenchFlags common;
  int64_t batch = 64, prompt_tokens = 32, new_tokens = 128;
  bool ragged = false;
  int64_t requests = 1024, max_length = 4096;
  EngineConfig engine;

  void fields(auto&& field) {
    common.fields(field);
    field("batch", batch, "prompts per batch", at_least(1));
    field("prompt_tokens", prompt_tokens, "tokens per prompt", at_least(1));
    field("new_tokens", new_tokens, "tokens generated per prompt", at_least(1));
    field("ragged", ragged, "use prompts and completions of varying lengths, more than run at once");
    field("requests", requests, "prompts in a ragged run", at_least(1));
    field("max_length", max_length, "maximum tokens of prompt and completion in a ragged run; the model's context also limits it",
          at_least(2));
    engine.fields(field);
  }
};

// Nothing ends a completion but its length, so that every run does the same work.
GenerateRequest make_request(std::vector<int32_t> prompt, int64_t new_tokens, int64_t number) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_new = new_tokens;
  request.key.seed = 1234;
  request.key.prompt = static_cast<uint64_t>(number);
  request.where = str("request ", number);
  return request;
}

// Both lengths of every ragged request are random: the total from 2 up to the limit, with at least one token on either side.
std::vector<GenerateRequest> make_requests(const EngineOptions& options, int64_t max_length, int64_t vocab_size) {
  std::vector<GenerateRequest> requests;
  if (!options.ragged) {
    for (auto& prompt : random_rows(options.batch, options.prompt_tokens, vocab_size))
      requests.push_back(make_request(std::move(prompt), options.new_tokens, static_cast<int64_t>(requests.size())));
    return requests;
  }
  const Random random(1234, 1);
  const int64_t limit = std::min(options.max_length, max_length);
  const std::vector<int32_t> tokens = random_rows(1, limit, vocab_size)[0];
  for (int64_t number = 0; number < options.requests; ++number) {
    const auto position = static_cast<uint64_t>(2 * number);
    const auto length = 2 + static_cast<int64_t>(random.below(static_cast<uint64_t>(limit - 1), position));
    const auto prompt_length = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(length - 1), position + 1));
    requests.push_back(make_request({tokens.begin(), tokens.begin() + prompt_length}, length - prompt_length, number));
  }
  return requests;
}

struct Run {
  double seconds = 0;
  double first_token_s = 0;  // until the first token of all
  double all_started_s = 0;  // until every request has its first
  int64_t num_tokens = 0;    // drawn
  int64_t num_after = 0;     // of them, after the step in which the last request got its first
  EngineStats before, after;
};

Run run_once(Engine& engine, std::vector<GenerateRequest> requests) {
  Run run;
  run.before = engine.stats();
  auto num_waiting = static_cast<int64_t>(requests.size());
  std::vector<bool> started(requests.size());
  int64_t first_request = -1;
  const Stopwatch watch;
  const EngineEvents events = {.token =
                                   [&](int64_t request, int64_t, int32_t) {
                                     if (run.num_tokens++ == 0) run.first_token_s = watch.seconds();
                                     const auto at = static_cast<size_t>(request - first_request);
                                     if (!started[at]) --num_waiting;
                                     started[at] = true;
                                   },
                               .end = [](const Completion& completion) { check(completion.error.empty(), completion.error); }};
  for (GenerateRequest& request : requests) {
    const int64_t number = engine.submit(std::move(request));
    if (first_request < 0) first_request = number;
  }
  bool all_started = false;
  while (engine.step(events)) {
    if (num_waiting > 0 || all_started) continue;
    all_started = true;
    run.all_started_s = watch.seconds();
    run.num_after = -run.num_tokens;
  }
  run.seconds = watch.seconds();
  run.num_after += run.num_tokens;
  run.after = engine.stats();
  return run;
}

Json settings_of(const EngineOptions& options, const Model& model, int64_t max_length) {
  Json json = bench_settings(options.common, model);
  json.set("ragged", options.ragged);
  if (options.ragged) {
    json.set("requests", options.requests);
    json.set("max_length", std::min(options.max_length, max_length));
  } else {
    json.set("batch", options.batch);
    json.set("prompt_tokens", options.prompt_tokens);
    json.set("new_tokens", options.new_tokens);
  }
  json.set("max_running", options.engine.scheduler.running_on(model.device().is_cuda()));
  json.set("max_batch_tokens", options.engine.scheduler.max_batch_tokens);
  return json;
}

Json stats_of(const Run& run) {
  Json json;
  json.set("steps", run.after.num_steps - run.before.num_steps);
  json.set("computed", run.after.num_computed - run.before.num_computed);
  json.set("drawn", run.after.num_drawn - run.before.num_drawn);
  json.set("preempted", run.after.num_preempted - run.before.num_preempted);
  return json;
}

}  // namespace

std::string bench_engine_flags() { return options_help<EngineOptions>(); }

Json bench_engine_decode(const Arguments& arguments) {
  const auto options = parse_options<EngineOptions>(arguments);
  const Stopwatch watch;
  const auto model = make_bench_model(options.common, {});
  Engine engine(*model, options.engine);
  log_info("model ready after ", watch.seconds(), " s");
  const auto requests = make_requests(options, engine.max_length(), model->config().vocab_size);
  const bool cuda = model->device().is_cuda();
  if (cuda) reset_peak_cuda_bytes();
  std::vector<double> whole, decode, first;
  Run run;
  for (int64_t i = 0; i <= options.common.repeats; ++i) {
    run = run_once(engine, requests);
    const double rate = static_cast<double>(run.num_tokens) / run.seconds;
    log_info(i == 0 ? "warming up" : str("run ", i), ": ", run.seconds, " s, ", rate, " tokens/s");
    if (i == 0) continue;
    whole.push_back(rate);
    first.push_back(run.first_token_s);
    if (run.num_after > 0) decode.push_back(static_cast<double>(run.num_after) / (run.seconds - run.all_started_s));
  }
  Json json = bench_line("engine.decode", settings_of(options, *model, engine.max_length()));
  json.set("tokens_per_s", spread_of(whole));
  if (!options.ragged && !decode.empty()) json.set("decode_tokens_per_s", spread_of(decode));
  json.set("first_token_s", spread_of(first));
  json.set("peak_bytes", peak_bytes(model->device()));
  json.set("cache_bytes", engine.memory_bytes());
  json.set("stats", stats_of(run));
  return json;
}

}  // namespace kedge::cli
