#include "kedge/engine/engine_memory.h"

#include <algorithm>

#include "kedge/engine/kv_memory.h"

namespace kedge {
namespace {

// Of the tokens of one step through runner.cpp: the stream, a norm's output, and either attention's part or the MLP's, which never exist
// at the same time.
int64_t step_bytes(const ModelConfig& model, int64_t tokens, int64_t element) {
  const int64_t attention = 2 * model.qkv_size() + model.q_size(), mlp = model.gate_up_size() + model.mlp_size;
  return tokens * (2 * model.hidden_size + std::max(attention, mlp)) * element;
}

}  // namespace

EngineBytes engine_bytes(const EngineInput& input) {
  const ModelConfig& model = input.model;
  const int64_t running = std::min(input.answers, input.scheduler.running_on(input.is_cuda));
  const auto blocks_of = [](int64_t tokens) { return (tokens + kPagedBlock - 1) / kPagedBlock; };
  const int64_t element = input.dtype == at::kFloat ? 4 : 2;
  // fp32 on a GPU; a CPU computes them as wide as its weights are, and widens them for sampling.
  const int64_t logits = running * model.vocab_size * (input.is_cuda || element == 4 ? 4 : element + 4);
  EngineBytes bytes;
  bytes.cache = KeyValueMemory::bytes_for(model, input.dtype, running * blocks_of(input.usual) + 1);
  bytes.one = KeyValueMemory::bytes_for(model, input.dtype, blocks_of(input.longest) + 1);
  // Prompts are computed many tokens at a time, answers one token per sequence.
  const int64_t prompts = std::min(input.scheduler.max_batch_tokens, running * input.usual);
  const int64_t decoding = step_bytes(model, running, element) + logits;
  bytes.workspace = std::max(step_bytes(model, prompts, element) + logits, decoding);
  // CUDA graphs keep their own memory.
  if (input.is_cuda && input.use_graphs) bytes.workspace += decoding;
  return bytes;
}

}  // namespace kedge
