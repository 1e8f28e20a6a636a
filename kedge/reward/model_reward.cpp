#include "kedge/reward/model_reward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/dist/partition.h"
#include "kedge/reward/ids_request.h"

namespace kedge {
namespace {

bool takes(const ModelSignature& signature, std::string_view input) {
  return std::any_of(signature.inputs.begin(), signature.inputs.end(), [&](const TensorSpec& spec) { return spec.name == input; });
}

std::vector<RowReward> failed(size_t count, const std::string& error) { return std::vector<RowReward>(count, RowReward{.error = error}); }

// One reward per row. A model that returns several attributes must merge them itself.
std::vector<RowReward> read_rewards(const InferReply& reply, size_t count, const std::string& caller) {
  const std::string name = reply.sender.empty() ? caller : "the " + reply.sender;
  const WireTensor* rewards = find_tensor(reply.outputs, "rewards");
  if (rewards == nullptr) throw Error(str(name, ": the answer has no rewards"));
  const bool fits = rewards->type == WireType::fp32 && !rewards->shape.empty() && rewards->shape[0] == static_cast<int64_t>(count) &&
                    num_elements(rewards->shape) == static_cast<int64_t>(count);
  if (!fits)
    throw Error(str(name, ": expected one FP32 reward for each of ", count, " rows, found ", name_of(rewards->type), " ",
                    shape_json(rewards->shape),
                    rewards->shape.size() == 2 && rewards->shape[1] > 1
                        ? "; a server with several attributes must merge them (model.regression.merge_attributes)"
                        : ""));
  std::vector<RowReward> rows;
  for (const float value : fp32_values(*rewards)) {
    rows.push_back({.value = value});
    if (!std::isfinite(value)) rows.back().error = str(name, " gave ", value);
  }
  return rows;
}

}  // namespace

ModelCaller remote_caller(ModelClient& client, const std::string& model) {
  return {str(model, " of the ", client.server_name()), [&client, model] { return client.signature(model); },
          [&client, model](InferRequest request) { return client.infer(model, std::move(request)); }};
}

ModelCaller pool_caller(ServerPool& pool) {
  return {pool.name(), [&pool] { return pool.signature(); }, [&pool](InferRequest request) { return pool.infer(std::move(request)); },
          pool.size()};
}

ModelCaller local_caller(ServedModel model, const std::string& name) {
  const auto served = std::make_shared<const ServedModel>(std::move(model));
  const auto worker = std::make_shared<SerialWorker>();
  const auto infer = [served, worker](InferRequest request) {
    auto promise = std::make_shared<std::promise<InferReply>>();
    worker->post([served, promise, request = std::move(request)] {
      try {
        (void)check_inputs(served->signature, request);
        if (served->check) served->check(request);
        ServedResult result = served->run(request.inputs, request.parameters);
        promise->set_value(
            {.model_name = served->signature.name, .parameters = std::move(result.parameters), .outputs = std::move(result.outputs)});
      } catch (const RequestError& error) {
        promise->set_exception(std::make_exception_ptr(RemoteError(error.status(), error.what())));
      } catch (...) {
        promise->set_exception(std::current_exception());
      }
    });
    return promise->get_future();
  };
  return {name, [served] { return served->signature; }, infer};
}

Json conversation_of(const Rollout& rollout) {
  if (!rollout.row) return {};
  for (const char* field : {"messages", "prompt", "conversations"}) {
    const Json* list = rollout.row->find(field);
    if (list == nullptr || !list->is_array()) continue;
    Json messages{Json::Array{}};
    for (const Json& message : list->as_array(field)) {
      const bool is_shared_gpt = message.find("from") != nullptr;
      const Json* role = message.find(is_shared_gpt ? "from" : "role");
      const Json* content = message.find(is_shared_gpt ? "value" : "content");
      if (role == nullptr || content == nullptr || !role->is_text()) return {};
      const std::string& name = role->as_text(field);
      messages.push_back(Json::Object{{"role", name == "human" ? "user" : name == "gpt" ? "assistant" : name}, {"content", *content}});
    }
    messages.push_back(Json::Object{{"role", "assistant"}, {"content", rollout.response}});
    return messages;
  }
  return {};
}

RewardInput choose_input(const ModelSignature& signature, const ModelRewardOptions& options, const Rollout& rollout) {
  if (options.send != RewardInput::automatic) return options.send;
  const std::string tokenizer = parameter_of(signature, "tokenizer_fingerprint"),
                    chat = parameter_of(signature, "chat_template_fingerprint");
  // Servers that publish none, NeMo-Aligner's among them, get the policy's ids, as NeMo-Aligner sends them. Text goes to one that accepts
  // no ids.
  if (tokenizer.empty()) return takes(signature, "sentences") && !takes(signature, "tokens") ? RewardInput::text : RewardInput::tokens;
  const bool is_conversation = !conversation_of(rollout).is_null();
  const bool same_ids = tokenizer == options.tokenizer_fingerprint;
  const bool same_template = chat == options.chat_template_fingerprint;
  if (same_ids && (!is_conversation || same_template)) return RewardInput::tokens;
  // The model was trained on conversations in its own template.
  if (is_conversation && !chat.empty() && takes(signature, "messages")) return RewardInput::messages;
  return RewardInput::text;
}

ModelReward::ModelReward(ModelCaller caller, ModelRewardOptions options) : caller_(std::move(caller)), options_(std::move(options)) {}

std::future<std::vector<RowReward>> ModelReward::submit(Rollouts rollouts) {
  struct Sent {
    std::vector<Part> parts;
    std::vector<std::future<InferReply>> replies;
  };
  const size_t count = rollouts.size();
  auto sent = std::make_shared<std::promise<Sent>>();
  auto ready = std::make_shared<std::future<Sent>>(sent->get_future());
  sender_.post([this, sent, rollouts = std::move(rollouts)] {
    try {
      Sent result{.parts = parts_of(rollouts), .replies = {}};
      for (const Part& part : result.parts) result.replies.push_back(caller_.infer(request_of(part)));
      sent->set_value(std::move(result));
    } catch (...) {
      sent->set_exception(std::current_exception());
    }
  });
  return std::async(std::launch::deferred, [this, ready, count] {
    Sent result = ready->get();
    std::vector<RowReward> rewards(count);
    for (size_t i = 0; i < result.parts.size(); ++i) {
      const Part& part = result.parts[i];
      std::vector<RowReward> some = rewards_of(part, std::move(result.replies[i]));
      for (size_t row = 0; row < some.size(); ++row) rewards[part.places[row]] = std::move(some[row]);
    }
    return rewards;
  });
}

std::vector<ModelReward::Part> ModelReward::parts_of(const Rollouts& rollouts) {
  const ModelSignature signature = caller_.signature();
  std::vector<Part> parts;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const RewardInput input = choose_input(signature, options_, *rollouts[i]);
    warn_of_unknown_tokenizer(signature, input, *rollouts[i]);
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& other) { return other.input == input; });
    if (part == parts.end()) part = parts.insert(parts.end(), Part{.input = input});
    part->places.push_back(i);
    part->rollouts.push_back(rollouts[i]);
  }
  if (caller_.num_servers == 1) return parts;
  std::vector<Part> shares;
  for (const Part& part : parts)
    for (Part& share : shares_of(part)) shares.push_back(std::move(share));
  return shares;
}

// Calls of about as many tokens, one for each server.
std::vector<ModelReward::Part> ModelReward::shares_of(const Part& part) const {
  std::vector<int64_t> sizes;
  for (const auto& rollout : part.rollouts) sizes.push_back(std::ssize(rollout->ids));
  const int count = static_cast<int>(std::min(caller_.num_servers, sizes.size()));
  std::vector<Part> shares;
  for (int i = 0; i < count; ++i) {
    Part& share = shares.emplace_back(Part{.input = part.input});
    for (const int64_t place : share_by_size(sizes, i, count)) {
      share.places.push_back(part.places[static_cast<size_t>(place)]);
      share.rollouts.push_back(part.rollouts[static_cast<size_t>(place)]);
    }
  }
  std::erase_if(shares, [](const Part& share) { return share.rollouts.empty(); });
  return shares;
}

void ModelReward::warn_of_unknown_tokenizer(const ModelSignature& signature, RewardInput input, const Rollout& rollout) {
  if (!parameter_of(signature, "tokenizer_fingerprint").empty() || options_.send != RewardInput::automatic) return;
  std::call_once(warned_, [&] {
    const std::string text = rollout.prompt + rollout.response;
    if (input == RewardInput::text) {
      log_warn(caller_.name, " does not report its tokenizer and accepts no ids, so it gets text. Example:\n", text);
      return;
    }
    std::string ids;
    for (const TokenId id : rollout.ids) ids += str(ids.empty() ? "" : " ", id);
    log_warn(caller_.name,
             " does not report its tokenizer, so it gets the policy's ids, with the token that ends a response: its tokenizer must "
             "be the ",
             "policy's (send=text would send text). Example:\n", ids, "\n", text);
  });
}

InferRequest ModelReward::request_of(const Part& part) const {
  if (part.input == RewardInput::tokens) return ids_request(part.rollouts, options_.pad_to_length);
  const bool is_text = part.input == RewardInput::text;
  std::vector<std::string> texts;
  for (const auto& rollout : part.rollouts)
    texts.push_back(is_text ? rollout->prompt + rollout->response : conversation_of(*rollout).dump_compact());
  InferRequest request;
  request.inputs = {text_tensor(is_text ? "sentences" : "messages", {static_cast<int64_t>(texts.size()), 1}, texts)};
  return request;
}

std::vector<RowReward> ModelReward::rewards_of(const Part& part, std::future<InferReply> reply) const {
  try {
    return read_rewards(reply.get(), part.rollouts.size(), caller_.name);
  } catch (const RemoteError& error) {
    if (part.rollouts.size() == 1) return failed(1, error.what());
  }
  // One bad row fails a call: sending each alone shows which.
  std::vector<RowReward> rows;
  std::vector<std::future<InferReply>> replies;
  const auto alone = [&](size_t row) { return Part{part.input, {row}, {part.rollouts[row]}}; };
  for (size_t row = 0; row < part.rollouts.size(); ++row) replies.push_back(caller_.infer(request_of(alone(row))));
  for (size_t row = 0; row < part.rollouts.size(); ++row) rows.push_back(rewards_of(alone(row), std::move(replies[row])).front());
  return rows;
}

}  // namespace kedge
