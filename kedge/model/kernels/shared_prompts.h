#pragma once
// Packs answers so that a prompt is computed once for all of them: its tokens are a row, and each answer is a row that continues it. Every
// token sees the tokens that it would see in a row of its own.
#include <span>
#include <vector>

#include "kedge/model/kernels/packed_batch.h"
#include "kedge/model/spec/model_config.h"

namespace kedge {

// Both must outlive the call; every answer has at least one token.
struct PromptAnswers {
  std::span<const int32_t> prompt;
  std::vector<std::span<const int32_t>> answers;
};

struct PackedAnswers {
  PackedBatch batch;
  std::vector<std::vector<int64_t>> starts;  // by prompt and answer: the place of the answer's first token
};

// A prompt with a single answer, or without tokens, is a row with each of its answers. So is a prompt without answers.
[[nodiscard]] PackedAnswers pack_answers(std::span<const PromptAnswers> prompts, at::Device device);

// Can answers of up to `longest` tokens, prompt included, share it? Not where a token's angles depend on the length of its row, and not
// where it would be slow: flash attention cannot skip the part of a shared prompt that is outside a window.
[[nodiscard]] bool can_share_prompts(const ModelConfig& model, at::Device device, int64_t longest);

}  // namespace kedge
