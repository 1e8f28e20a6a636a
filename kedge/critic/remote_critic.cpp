#include "kedge/critic/remote_critic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/log.h"
#include "kedge/reward/ids_request.h"

namespace kedge {
namespace {

bool gives(const ModelSignature& signature, std::string_view output) {
  return std::any_of(signature.outputs.begin(), signature.outputs.end(), [&](const TensorSpec& spec) { return spec.name == output; });
}

const WireTensor& output_of(const InferReply& reply, const char* name) {
  const WireTensor* found = find_tensor(reply.outputs, name);
  if (found == nullptr) throw Error(str(reply.model_name, ": the answer has no ", name));
  if (found->type != WireType::fp32) throw Error(str(reply.model_name, ": expected FP32 ", name, ", found ", name_of(found->type)));
  return *found;
}

int64_t number_in(const InferReply& reply, const char* parameter) {
  const Json* number = reply.parameters.find(parameter);
  return number != nullptr && number->is_integer() ? number->as_integer(parameter) : -1;
}

int64_t train_calls_of(const InferReply& reply) { return number_in(reply, "train_calls"); }

}  // namespace

RemoteCritic::RemoteCritic(ModelClient& client, RemoteCriticOptions options)
    : client_(client), options_(std::move(options)), name_(random_hex(8)) {}

void RemoteCritic::check_server() {
  const ModelSignature signature = client_.signature(options_.infer);
  const std::string what = str(options_.infer, " of the ", client_.server_name());
  const bool has_rewards = gives(signature, "rewards");
  check(has_rewards == options_.wants_rewards, options_.combine_key, " is ", options_.wants_rewards ? "true" : "false", ", but ", what,
        has_rewards ? " gives rewards" : " gives no rewards", "; the server's trainer.ppo.combine_rm_and_critic_server must be equal");
  const std::string tokenizer = parameter_of(signature, "tokenizer_fingerprint");
  check(tokenizer.empty() || options_.tokenizer_fingerprint.empty() || tokenizer == options_.tokenizer_fingerprint, what,
        " has a different tokenizer from the policy (fingerprints ", tokenizer, " and ", options_.tokenizer_fingerprint,
        "): the ids sent to it would mean something else there. Start the critic from a model with the policy's tokenizer");
  if (tokenizer.empty() && !options_.tokenizer_fingerprint.empty() && leads())
    log_warn(what, " does not report its tokenizer; it must be the policy's, because it receives the policy's ids");
  const std::string longest = parameter_of(signature, "encoder_seq_length");
  const bool is_number = !longest.empty() && longest.size() < 19 && longest.find_first_not_of("0123456789") == std::string::npos;
  const int64_t wanted = std::max(options_.longest_row, options_.pad_to_length.value_or(0));
  check(!is_number || std::stoll(longest) >= wanted, what, " takes rows of up to ", longest, " tokens (its model.encoder_seq_length), but ",
        wanted, " may be sent (model.encoder_seq_length, remote_critic_rm.pad_to_length)");
}

std::future<RolloutValues> RemoteCritic::values(Rollouts rollouts) {
  auto sent = std::make_shared<std::promise<std::future<InferReply>>>();
  auto reply = std::make_shared<std::future<std::future<InferReply>>>(sent->get_future());
  // Only kedge servers delay a call until the required training is done; with others, training must be finished first.
  sender_.post([this, sent, rollouts, training = training_, wanted = train_calls_, epoch = epoch_] {
    try {
      InferRequest request = ids_request(rollouts, options_.pad_to_length);
      const bool holds_back = wanted >= 0 && client_.is_kedge();
      if (holds_back) request.parameters.set("min_train_calls", wanted);
      if (holds_back && epoch >= 0) request.parameters.set("epoch", epoch);
      if (!holds_back && training.valid()) (void)training.get();
      sent->set_value(client_.infer(options_.infer, std::move(request)));
    } catch (...) {
      sent->set_exception(std::current_exception());
    }
  });
  return std::async(std::launch::deferred, [this, reply, rollouts = std::move(rollouts), training = training_] {
    if (training.valid()) (void)training.get();  // if it failed, the call below would wait forever
    return read_values(reply->get().get(), rollouts);
  });
}

RolloutValues RemoteCritic::read_values(const InferReply& reply, const Rollouts& rollouts) const {
  const auto count = static_cast<int64_t>(rollouts.size());
  const WireTensor& values = output_of(reply, "values");
  int64_t longest = 0;
  for (const auto& rollout : rollouts) longest = std::max(longest, rollout->length());
  if (values.shape.size() != 2 || values.shape[0] != count || values.shape[1] < longest)
    throw Error(str(options_.infer, " of the ", client_.server_name(), ": expected values of ", count, " rows of ", longest,
                    " tokens or more, found ", shape_json(values.shape)));
  RolloutValues result;
  const std::span<const float> all = fp32_values(values);
  for (int64_t row = 0; row < count; ++row) {
    const Rollout& rollout = *rollouts[static_cast<size_t>(row)];
    const auto begin = all.begin() + row * values.shape[1];
    result.values.emplace_back(begin, begin + (rollout.length() - 1));
    if (!std::all_of(result.values.back().begin(), result.values.back().end(), [](float value) { return std::isfinite(value); }))
      throw Error(
          str(options_.infer, " of the ", client_.server_name(), " returned values that are not finite for prompt ", rollout.prompt_id));
  }
  if (!options_.wants_rewards) return result;
  const WireTensor& rewards = output_of(reply, "rewards");
  if (num_elements(rewards.shape) != count)
    throw Error(str(options_.infer, " of the ", client_.server_name(), ": expected one reward for each of ", count, " rows, found ",
                    shape_json(rewards.shape)));
  for (const float value : fp32_values(rewards)) {
    result.rewards.push_back({.value = value});
    if (!std::isfinite(value)) result.rewards.back().error = str("the ", client_.server_name(), " gave ", value);
  }
  return result;
}

Json RemoteCritic::change_parameters(const char* call) {
  Json parameters = Json::Object{{"request_key", str(name_, "-", call, "-", num_changes_++)}};
  if (!options_.run_id.empty()) parameters.set("run_id", options_.run_id);
  if (epoch_ >= 0) parameters.set("epoch", epoch_);
  return parameters;
}

// The others' calls for values must use the same counts.
void RemoteCritic::share_train_calls() {
  std::array<double, 2> shared = {-1, -1};
  if (leads()) shared = {static_cast<double>(train_calls_), static_cast<double>(epoch_)};
  options_.group.all_reduce(std::span<double>(shared), Reduce::max);
  train_calls_ = static_cast<int64_t>(shared[0]);
  epoch_ = static_cast<int64_t>(shared[1]);
}

void RemoteCritic::train(CriticBatch batch) {
  finish_training();
  is_training_ = true;
  if (leads()) {
    // A repeated save must not find a critic that was trained further. Its result is for those who wait for it.
    if (saving_.valid()) std::exchange(saving_, {}).wait();
    const std::vector<int64_t> wide = {batch.num_rows, batch.width}, narrow = {batch.num_rows, batch.width - 1};
    InferRequest request;
    request.parameters = change_parameters("train");
    if (train_calls_ >= 0) request.parameters.set("after_train_calls", train_calls_);
    request.inputs = {int64_tensor("tokens", wide, batch.tokens), fp32_tensor("returns", narrow, batch.returns),
                      fp32_tensor("prev_values", narrow, batch.previous), fp32_tensor("mask", narrow, batch.mask)};
    training_ = client_.infer(options_.train, std::move(request), Resend::by_key).share();
    if (train_calls_ >= 0) ++train_calls_;
  }
  share_train_calls();
  // A server that does not count cannot hold back the calls of other ranks, and only rank 0 sees when it is done.
  if (train_calls_ < 0 && options_.group.size() > 1) finish_training();
}

// Empty, or what went wrong.
std::string RemoteCritic::wait_for_training() {
  try {
    const std::shared_future<InferReply> training = std::exchange(training_, {});
    const InferReply& reply = training.get();
    train_calls_ = train_calls_of(reply);
    const WireTensor& loss = output_of(reply, "loss_mean");
    if (num_elements(loss.shape) != 1) return str(options_.train, ": expected one loss, found ", shape_json(loss.shape));
    const float value = fp32_values(loss)[0];
    if (!std::isfinite(value)) return str(options_.train, " of the ", client_.server_name(), ": the loss is ", value);
    last_loss_ = value;
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void RemoteCritic::finish_training() {
  if (!std::exchange(is_training_, false)) return;
  std::string problem = leads() ? wait_for_training() : std::string();
  options_.group.broadcast(problem, 0);
  if (!problem.empty()) throw Error(problem);
  share_train_calls();
}

std::shared_future<void> RemoteCritic::save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) {
  if (!leads()) return std::async(std::launch::deferred, [] {}).share();
  InferRequest request;
  request.parameters = change_parameters("save");
  request.parameters.set("actor_step", actor_step);
  std::string list;
  for (const int64_t step : resumable_steps) list += str(list.empty() ? "" : ",", step);
  request.parameters.set("resumable_steps", list);
  request.parameters.set("resumable_step", resumable_steps.empty() ? 0 : resumable_steps.back());  // for a server that knows only this one
  request.inputs = {int64_tensor("dummy_var", {1}, std::vector<int64_t>{0})};
  auto sent = std::make_shared<std::promise<std::future<InferReply>>>();
  auto reply = std::make_shared<std::future<std::future<InferReply>>>(sent->get_future());
  sender_.post([this, sent, request = std::move(request), training = training_]() mutable {
    try {
      if (training.valid()) (void)training.get();  // while pending, it could be overtaken; and a failed training must not be saved
      sent->set_value(client_.infer(options_.save, std::move(request), Resend::by_key));
    } catch (...) {
      sent->set_exception(std::current_exception());
    }
  });
  saving_ = std::async(std::launch::deferred, [reply] { static_cast<void>(reply->get().get()); }).share();
  return saving_;
}

std::optional<int64_t> RemoteCritic::restore(int64_t actor_step) {
  is_training_ = false;
  if (leads()) restore_here(actor_step);
  share_train_calls();
  return train_calls_ < 0 ? std::nullopt : std::optional(train_calls_);
}

void RemoteCritic::restore_here(int64_t actor_step) {
  // Pending calls are undone as well, but must not arrive after this.
  if (training_.valid()) std::exchange(training_, {}).wait();
  if (saving_.valid()) std::exchange(saving_, {}).wait();
  if (!client_.is_kedge()) {
    if (actor_step > 0)
      log_warn("the ", client_.server_name(), " cannot restore its critic: it stays as it is, and may not be the one of step ", actor_step);
    return;
  }
  InferRequest request;
  epoch_ = -1;  // the reply contains a new one
  request.parameters = change_parameters("restore");
  if (options_.take_over) request.parameters.set("take_over", true);
  request.inputs = {int64_tensor("actor_step", {1}, std::vector<int64_t>{actor_step})};
  const InferReply reply = client_.infer(options_.restore, std::move(request), Resend::by_key).get();
  train_calls_ = train_calls_of(reply);
  epoch_ = number_in(reply, "epoch");
  const Json* loss = reply.parameters.find("loss");
  last_loss_ = loss != nullptr && loss->is_number() ? std::optional(loss->as_number("loss")) : std::nullopt;
}

}  // namespace kedge
