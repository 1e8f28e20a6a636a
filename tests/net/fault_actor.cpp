// Plays the actor of a training run against a critic's server, for tests that kill, cut and flood: rounds of values asked for at the same
// time, then a training call that nobody waits for until the next, now and then a save. What it sends is a function of seed and round, so
// an actor that was killed and goes on from its last save sends the same again.
//
//   fault_actor port=5556 [KEY=VALUE ...]
//
// One JSON line for every reply, on standard output, in an order that does not depend on time.
#include <charconv>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <thread>

#include "kedge/config/config.h"
#include "kedge/core/error.h"
#include "kedge/core/random.h"
#include "kedge/net/model_client.h"

namespace {

using namespace kedge;

struct ActorConfig {
  int64_t port = 5556, seed = 1, rounds = 8, calls = 4, rows = 2, width = 24, train_rows = 16, vocab = 7, save_every = 3, limit_s = 120;
  int64_t pause_ms = 0;
  std::optional<int64_t> resume;

  void fields(auto&& field) {
    field("port", port, "of the critic's server, on this machine", at_least(1));
    field("seed", seed, "of everything it sends");
    field("rounds", rounds, "after which it ends", at_least(1));
    field("calls", calls, "to critic_infer at the same time", at_least(0));
    field("rows", rows, "of each", at_least(1));
    field("width", width, "of rows, in tokens", at_least(2));
    field("train_rows", train_rows, "of a call to critic_train", at_least(1));
    field("vocab", vocab, "token ids", at_least(1));
    field("save_every", save_every, "rounds; the last one is saved too", at_least(1));
    field("limit_s", limit_s, "how long the server may be away", at_least(1));
    field("pause_ms", pause_ms, "between two rounds", at_least(0));
    field("resume", resume, "the step to go on from: the newest that was saved; null: the beginning", at_least(0));
  }
};

// Numbers that belong to a place of a round.
class Draws {
 public:
  Draws(const ActorConfig& config, int64_t round, int64_t call)
      : config_(config),
        random_(static_cast<uint64_t>(config.seed), Random::stream_of({static_cast<uint64_t>(round), static_cast<uint64_t>(call)})) {}

  std::vector<int64_t> ids(int64_t count) {
    std::vector<int64_t> values;
    while (static_cast<int64_t>(values.size()) < count) values.push_back(below(config_.vocab));
    return values;
  }
  std::vector<float> normal(int64_t count) {
    std::vector<float> values;
    while (static_cast<int64_t>(values.size()) < count) values.push_back(static_cast<float>(random_.normal(position_++)));
    return values;
  }
  int64_t below(int64_t bound) { return static_cast<int64_t>(random_.below(static_cast<uint64_t>(bound), position_++)); }

 private:
  const ActorConfig& config_;
  Random random_;
  uint64_t position_ = 0;
};

InferRequest infer_request(const ActorConfig& config, int64_t round, int64_t call) {
  Draws draws(config, round, call + 1);
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < config.rows; ++row) lengths.push_back(1 + draws.below(config.width));
  InferRequest request;
  request.inputs = {int64_tensor("tokens", {config.rows, config.width}, draws.ids(config.rows * config.width)),
                    int64_tensor("sequence_lengths", {config.rows, 1}, lengths)};
  request.parameters.set("min_train_calls", round);
  return request;
}

InferRequest train_request(const ActorConfig& config, int64_t round) {
  Draws draws(config, round, 0);
  const int64_t rows = config.train_rows, targets = config.width - 1;
  std::vector<float> mask;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t begin = draws.below(targets), end = begin + 1 + draws.below(targets - begin);
    for (int64_t at = 0; at < targets; ++at) mask.push_back(at >= begin && at < end ? 1.0F : 0.0F);
  }
  InferRequest request;
  request.inputs = {int64_tensor("tokens", {rows, config.width}, draws.ids(rows * config.width)),
                    fp32_tensor("returns", {rows, targets}, draws.normal(rows * targets)),
                    fp32_tensor("prev_values", {rows, targets}, draws.normal(rows * targets)), fp32_tensor("mask", {rows, targets}, mask)};
  request.parameters.set("request_key", str(config.seed, "-train-", round));
  return request;
}

// Its bits, as text.
std::string hash_of(const std::vector<WireTensor>& tensors) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const WireTensor& tensor : tensors)
    for (const char byte : tensor.data) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3U;
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), hash, 16).ptr;
  return {digits, end};
}

class Actor {
 public:
  explicit Actor(const ActorConfig& config) : config_(config), client_(options_of(config)) {}

  void run() {
    const int64_t first = config_.resume.value_or(0);
    restore(first);
    std::optional<std::future<InferReply>> training;
    for (int64_t round = first; round < config_.rounds; ++round) {
      if (round > first) std::this_thread::sleep_for(std::chrono::milliseconds(config_.pause_ms));
      ask_values(round);
      if (training) tell(round - 1, "train", training->get());
      training = send("critic_train", train_request(config_, round), Resend::by_key);
      if ((round + 1) % config_.save_every != 0 && round + 1 != config_.rounds) continue;
      // Connections overtake each other: a save that is to hold the training is sent when that is done.
      tell(round, "train", training->get());
      training.reset();
      save(round + 1);
    }
  }

 private:
  static ClientOptions options_of(const ActorConfig& config) {
    const std::chrono::seconds limit(config.limit_s);
    return {.server = {.label = "critic",
                       .port = config.port,
                       .period = std::chrono::milliseconds(200),
                       .start_limit = limit,
                       .return_limit = limit},
            .max_resends = 1000};
  }

  // Everything else it sends is sent again by an actor that comes after it, but going back is meant every time. From here on calls carry
  // the epoch, so that one of an earlier actor that arrives late is refused.
  void restore(int64_t step) {
    InferRequest request;
    request.inputs = {int64_tensor("actor_step", {1}, {&step, 1})};
    std::random_device random;
    request.parameters.set("request_key", str(config_.seed, "-restore-", step, "-", random(), "-", random()));
    const InferReply reply = client_.infer("critic_restore", std::move(request), Resend::by_key).get();
    check_calls(step - 1, "restore", reply);
    epoch_ = reply.parameters.at("epoch", "a reply").as_integer("epoch");
  }

  std::future<InferReply> send(const char* model, InferRequest request, Resend resend) {
    request.parameters.set("epoch", epoch_);
    return client_.infer(model, std::move(request), resend);
  }

  void ask_values(int64_t round) {
    std::vector<std::future<InferReply>> replies;
    for (int64_t call = 0; call < config_.calls; ++call)
      replies.push_back(send("critic_infer", infer_request(config_, round, call), Resend::safe));
    for (std::future<InferReply>& reply : replies) tell(round - 1, "infer", reply.get());
  }

  void save(int64_t step) {
    const int64_t any = 0;
    InferRequest request;
    request.inputs = {int64_tensor("dummy_var", {1}, {&any, 1})};
    request.parameters.set("actor_step", step);
    request.parameters.set("request_key", str(config_.seed, "-save-", step));
    tell(step - 1, "save", send("critic_save", std::move(request), Resend::by_key).get());
  }

  // The training call of `round` must be the last that is in effect.
  static int64_t check_calls(int64_t round, const std::string& call, const InferReply& reply) {
    const int64_t train_calls = reply.parameters.at("train_calls", "a reply").as_integer("train_calls");
    if (train_calls != round + 1) throw Error(str(call, ": ", train_calls, " training calls are in effect, and not ", round + 1));
    return train_calls;
  }

  static void tell(int64_t round, const std::string& call, const InferReply& reply) {
    const int64_t train_calls = check_calls(round, call, reply);
    Json line;
    line.set("call", call);
    line.set("train_calls", train_calls);
    line.set("hash", hash_of(reply.outputs));
    if (call == "train") line.set("loss", static_cast<double>(fp32_values(reply.outputs.at(0))[0]));
    if (call == "infer") {
      Json::Array begin;
      for (const float value : fp32_values(reply.outputs.at(0)).subspan(0, 4)) begin.emplace_back(static_cast<double>(value));
      line.set("values", begin);
    }
    std::cout << line.dump_compact() << std::endl;  // flushed: it may be killed at any time
  }

  const ActorConfig& config_;
  ModelClient client_;
  int64_t epoch_ = 0;  // of the last restore
};

}  // namespace

int main(int argc, char** argv) {
  try {
    ActorConfig config;
    load_config(describe(config), std::nullopt, {argv + 1, argv + argc});
    Actor(config).run();
    return kExitOk;
  } catch (const std::exception& error) {
    std::cerr << "fault_actor: " << error.what() << "\n";
    return kExitWorld;
  }
}
