#include "kedge/critic/critic_service.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/numbers.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

std::string request_key(const Json& parameters) {
  const Json* key = parameters.find("request_key");
  check_request(key == nullptr || key->is_text(), "parameters: request_key: expected a string");
  return key == nullptr ? "" : key->as_text("request_key");
}

std::optional<int64_t> integer_parameter(const Json& parameters, const char* name) {
  const Json* number = parameters.find(name);
  if (number == nullptr) return std::nullopt;
  check_request(number->is_integer() && number->as_integer(name) >= 0, "parameters: ", name, ": expected an integer of at least 0");
  return number->as_integer(name);
}

// "2,8,10". An older actor names only the newest.
std::vector<int64_t> resumable_steps_of(const Json& parameters) {
  const Json* list = parameters.find("resumable_steps");
  std::vector<int64_t> steps;
  if (list == nullptr) {
    if (const auto newest = integer_parameter(parameters, "resumable_step")) steps.push_back(*newest);
    return steps;
  }
  constexpr const char* kExpected = "parameters: resumable_steps: expected a string of integers, with commas in between";
  check_request(list->is_text(), kExpected);
  std::istringstream words(list->as_text("resumable_steps"));
  for (std::string word; std::getline(words, word, ',');) check_request(read_integer(word, steps.emplace_back()), kExpected);
  return steps;
}

CriticCaller caller_of(const Json& parameters) {
  const Json *run = parameters.find("run_id"), *takes_over = parameters.find("take_over");
  check_request(run == nullptr || run->is_text(), "parameters: run_id: expected a string");
  check_request(takes_over == nullptr || takes_over->is_bool(), "parameters: take_over: expected true or false");
  return {.run = run == nullptr ? "" : run->as_text("run_id"),
          .epoch = integer_parameter(parameters, "epoch"),
          .takes_over = takes_over != nullptr && takes_over->as_bool("take_over")};
}

ServedResult reply_of(std::vector<WireTensor> outputs, int64_t train_calls) {
  return {std::move(outputs), Json(Json::Object{{"train_calls", train_calls}})};
}

ServedResult status_reply(int64_t train_calls) {
  const int64_t done = 0;
  return reply_of({int64_tensor("status", {1}, {&done, 1})}, train_calls);
}

ServedModel changing_model(const std::string& name) {
  ServedModel model;
  model.signature.name = name;
  model.is_kept = true;
  return model;
}

// [rows, width], with zeros after the rows' ends.
WireTensor values_tensor(const Critic& critic, const ReadRows& read) {
  const Tensor packed = critic.values(read.rows);
  const auto* value = packed.const_data_ptr<float>();
  const auto width = static_cast<size_t>(read.width);
  std::vector<float> values(read.rows.size() * width, 0.0F);
  for (size_t row = 0; row < read.rows.size(); ++row) {
    std::copy_n(value, read.rows[row].size(), values.begin() + static_cast<int64_t>(row * width));
    value += read.rows[row].size();
  }
  return fp32_tensor("values", {static_cast<int64_t>(read.rows.size()), read.width}, values);
}

ServedModel infer_service(const CriticServiceParts& parts) {
  ServedModel model = served_rows_model("critic_infer", parts.rows, parts.batches);
  model.signature.outputs = {{"values", WireType::fp32, {-1}}};
  const bool gives_rewards = parts.critic.model().gives_rewards();
  if (gives_rewards) model.signature.outputs.push_back({"rewards", WireType::fp32, {-1}});
  model.check = [check_rows = model.check](const InferRequest& request) {
    static_cast<void>(integer_parameter(request.parameters, "min_train_calls"));
    static_cast<void>(integer_parameter(request.parameters, "epoch"));
    check_rows(request);
  };
  model.may_run = [&critic = parts.critic](const InferRequest& request) {
    critic.check_epoch(integer_parameter(request.parameters, "epoch"));
    const int64_t wanted = integer_parameter(request.parameters, "min_train_calls").value_or(0), done = critic.train_calls();
    // A caller has at most one pending training call: a larger count never arrives, because this is a different critic.
    if (wanted > done + 1)
      throw RequestError(409, str("the call expects a critic after ", wanted, " training calls, but this one has had ", done));
    return done >= wanted;
  };
  model.run = [&critic = parts.critic, &rows = parts.rows, gives_rewards](const std::vector<WireTensor>& inputs, const Json&) {
    const ReadRows read = rows.read(inputs);
    std::vector<WireTensor> outputs = {values_tensor(critic, read)};
    if (gives_rewards) outputs.push_back(rewards_tensor(critic.rewards(read.rows)));
    return reply_of(std::move(outputs), critic.train_calls());
  };
  return model;
}

const WireTensor& input_of(std::span<const WireTensor> inputs, const char* name) {
  const WireTensor* found = find_tensor(inputs, name);
  ensure(found != nullptr, "no ", name, " in a request that was checked against the signature");
  return *found;
}

CriticBatch read_batch(std::span<const WireTensor> inputs, const ModelConfig& network, int64_t max_length) {
  const WireTensor& tokens = input_of(inputs, "tokens");
  CriticBatch batch;
  batch.num_rows = tokens.shape[0];
  batch.width = tokens.shape[1];
  check_request(batch.num_rows >= 1 && batch.width >= 2, "tokens: expected one or more rows of at least 2 tokens, found ", batch.num_rows,
                " rows of ", batch.width);
  check_request(batch.width <= max_length, "tokens: ", batch.width, " columns, but encoder_seq_length is ", max_length);
  const std::span<const int64_t> ids = int64_values(tokens);
  for (const int64_t id : ids)
    check_request(id >= 0 && id < network.vocab_size, "tokens: id ", id, " is outside the model's vocabulary of ", network.vocab_size);
  batch.tokens.assign(ids.begin(), ids.end());
  for (const auto& [name, to] : {std::pair{"returns", &batch.returns}, {"prev_values", &batch.previous}, {"mask", &batch.mask}}) {
    const WireTensor& input = input_of(inputs, name);
    check_request(input.shape == std::vector<int64_t>{batch.num_rows, batch.width - 1}, name, ": expected [", batch.num_rows, ",",
                  batch.width - 1, "], a column less than tokens, found [", input.shape[0], ",", input.shape[1], "]");
    const std::span<const float> numbers = fp32_values(input);
    to->assign(numbers.begin(), numbers.end());
  }
  for (size_t i = 0; i < batch.mask.size(); ++i) {
    if (batch.mask[i] == 0) continue;
    const size_t row = i / static_cast<size_t>(batch.width - 1), place = i % static_cast<size_t>(batch.width - 1);
    check_request(std::isfinite(batch.mask[i]) && std::isfinite(batch.returns[i]) && std::isfinite(batch.previous[i]), "row ", row,
                  ", place ", place, ": returns, prev_values and mask must be finite where the mask is not 0");
    check_request(static_cast<int64_t>(place) < network.max_positions, "row ", row, ", place ", place, ": the model has only ",
                  network.max_positions, " positions");
  }
  return batch;
}

ServedModel train_service(const CriticServiceParts& parts) {
  ServedModel model = changing_model("critic_train");
  model.signature.inputs = {{"tokens", WireType::int64, {-1, -1}},
                            {"returns", WireType::fp32, {-1, -1}},
                            {"prev_values", WireType::fp32, {-1, -1}},
                            {"mask", WireType::fp32, {-1, -1}}};
  model.signature.outputs = {{"loss_mean", WireType::fp32, {1}}};
  const auto read = [network = parts.critic.model().model().config(), max_length = parts.max_length](std::span<const WireTensor> inputs) {
    return read_batch(inputs, network, max_length);
  };
  model.check = [read](const InferRequest& request) {
    static_cast<void>(request_key(request.parameters));
    static_cast<void>(integer_parameter(request.parameters, "after_train_calls"));
    static_cast<void>(caller_of(request.parameters));
    static_cast<void>(read(request.inputs));
  };
  model.run = [read, &critic = parts.critic](const std::vector<WireTensor>& inputs, const Json& parameters) {
    const CriticResult result =
        critic.train(read(inputs), request_key(parameters), integer_parameter(parameters, "after_train_calls"), caller_of(parameters));
    const auto loss = static_cast<float>(result.loss.value_or(std::nan("")));
    return reply_of({fp32_tensor("loss_mean", {1}, {&loss, 1})}, result.train_calls);
  };
  return model;
}

ServedModel save_service(const CriticServiceParts& parts) {
  ServedModel model = changing_model("critic_save");
  model.signature.inputs = {{"dummy_var", WireType::int64, {1}}};
  model.signature.outputs = {{"status", WireType::int64, {1}}};
  model.check = [](const InferRequest& request) {
    static_cast<void>(request_key(request.parameters));
    static_cast<void>(integer_parameter(request.parameters, "actor_step"));
    static_cast<void>(resumable_steps_of(request.parameters));
    static_cast<void>(caller_of(request.parameters));
  };
  model.run = [&critic = parts.critic](const std::vector<WireTensor>&, const Json& parameters) {
    const CriticResult result = critic.save(integer_parameter(parameters, "actor_step"), request_key(parameters), caller_of(parameters),
                                            resumable_steps_of(parameters));
    return status_reply(result.train_calls);
  };
  return model;
}

ServedModel restore_service(const CriticServiceParts& parts) {
  ServedModel model = changing_model("critic_restore");
  model.signature.inputs = {{"actor_step", WireType::int64, {1}}};
  model.signature.outputs = {{"status", WireType::int64, {1}}};
  model.check = [](const InferRequest& request) {
    static_cast<void>(request_key(request.parameters));
    static_cast<void>(caller_of(request.parameters));
    check_request(int64_values(input_of(request.inputs, "actor_step"))[0] >= 0, "actor_step: expected a number of at least 0");
  };
  model.run = [&critic = parts.critic](const std::vector<WireTensor>& inputs, const Json& parameters) {
    const CriticResult result =
        critic.restore(int64_values(input_of(inputs, "actor_step"))[0], request_key(parameters), caller_of(parameters));
    ServedResult reply = status_reply(result.train_calls);
    reply.parameters.set("epoch", result.epoch);
    // As the reply to that training had it.
    if (result.loss) reply.parameters.set("loss", double{static_cast<float>(*result.loss)});
    return reply;
  };
  return model;
}

}  // namespace

std::vector<ServedModel> make_critic_service(const CriticServiceParts& parts) {
  return {infer_service(parts), train_service(parts), save_service(parts), restore_service(parts)};
}

}  // namespace kedge
