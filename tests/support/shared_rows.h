#pragma once
// The same answers to the same prompts twice: packed so that a prompt's answers share it, and as rows that each have their own copy.
#include <vector>

#include "kedge/model/kernels/shared_prompts.h"

#include "tests/support/tensors.h"

namespace kedge::testing {

struct SharedRows {
  PackedBatch shared, apart;
  Tensor places;                                      // int64 [tokens apart]: the same token of the shared batch
  Tensor is_copy;                                     // bool [tokens apart]: an earlier row has the same token of the prompt
  PredictedTokens shared_predicted, apart_predicted;  // the answers' tokens but the first
};

// Tokens of a prompt, and of each of its answers.
using PromptLengths = std::vector<std::pair<int64_t, std::vector<int64_t>>>;

inline SharedRows shared_rows(const PromptLengths& lengths, int64_t vocab_size = 31, at::Device device = at::kCPU) {
  std::vector<std::vector<int32_t>> ids, rows;  // of all answers with their prompts
  std::vector<PromptAnswers> prompts;
  std::vector<int64_t> targets, shared_places, apart_places;
  for (const auto& [prompt, answers] : lengths)
    for (const int64_t answer : answers) {
      const Tensor drawn = ids_below(vocab_size, prompt + answer, 300 + ids.size());
      ids.emplace_back(drawn.data_ptr<int64_t>(), drawn.data_ptr<int64_t>() + prompt + answer);
    }
  size_t next = 0;
  for (const auto& [prompt, answers] : lengths) {
    const size_t first = next;
    PromptAnswers group{std::span(ids[first]).first(static_cast<size_t>(prompt)), {}};
    for (size_t i = 0; i < answers.size(); ++i, ++next) {
      std::copy_n(ids[first].begin(), prompt, ids[next].begin());
      group.answers.push_back(std::span(ids[next]).subspan(static_cast<size_t>(prompt)));
      rows.push_back(ids[next]);
    }
    prompts.push_back(std::move(group));
  }
  PackedAnswers packed = pack_answers(prompts, device);
  std::vector<int64_t> places;
  std::vector<uint8_t> copies;
  int64_t prompt_start = 0, apart_start = 0;  // prompts come first in the shared batch
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto [length, answers] = lengths[p];
    const bool shares = answers.size() > 1 && length > 0;
    for (size_t a = 0; a < answers.size(); ++a) {
      const int64_t start = packed.starts[p][a];
      for (int64_t i = 0; i < length; ++i) {
        places.push_back((shares ? prompt_start : start - length) + i);
        copies.push_back(shares && a > 0 ? 1 : 0);
      }
      for (int64_t i = 0; i < answers[a]; ++i) places.push_back(start + i), copies.push_back(0);
      for (int64_t i = 0; i + 1 < answers[a]; ++i) {
        shared_places.push_back(start + i);
        apart_places.push_back(apart_start + length + i);
        targets.push_back(prompts[p].answers[a][static_cast<size_t>(i + 1)]);
      }
      apart_start += length + answers[a];
    }
    if (shares) prompt_start += length;
  }
  const auto on_device = [&](const std::vector<int64_t>& values) { return at::tensor(values, at::kLong).to(device); };
  SharedRows result;
  result.shared = std::move(packed.batch);
  result.apart = pack_rows(rows, device);
  result.places = on_device(places);
  result.is_copy = at::tensor(copies, at::kByte).to(at::kBool).to(device);
  result.shared_predicted = {on_device(shared_places), on_device(targets)};
  result.apart_predicted = {on_device(apart_places), on_device(targets)};
  return result;
}

}  // namespace kedge::testing
