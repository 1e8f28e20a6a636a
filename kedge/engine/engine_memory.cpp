#include "kedge/engine/engine_memory.h"

#include <algorithm>
#include <bit>

#include "kedge/engine/kv_memory.h"

namespace kedge {
namespace {

// Of the tokens of one step through runner.cpp: the stream, a norm's output, and either attention's part or the MLP's, which never exist
// at the same time.
int64_t step_bytes(const ModelConfig& model, int64_t tokens, int64_t element) {
  const int64_t attention = 2 * model.qkv_size() + model.q_size(), mlp = model.gate_up_size() + model.mlp_size;
  return tokens * (2 * model.hidden_size + std::max(attention, mlp)) * element;
}

// Of decoding with divided keys: a sum for every part, and the logarithm of its weights'. Only kernels for bf16 divide them.
int64_t split_bytes(const EngineInput& input, int64_t running) {
  if (!input.is_cuda || input.dtype != at::kBFloat16) return 0;
  const ModelConfig& model = input.model;
  const int64_t splits = key_splits(running, model.num_kv_heads, input.longest, true);
  return splits == 1 ? 0 : running * model.num_heads * splits * (model.head_dim + 1) * 4;
}

}  // namespace

int64_t key_splits(int64_t rows, int64_t num_kv_heads, int64_t longest, bool decodes) {
  constexpr int64_t kTasks = 528, kLeast = 256, kMost = 1024;  // tasks that keep a GPU busy; keys that are worth one; keys of one at most
  const int64_t tasks = rows * num_kv_heads, wanted = (kTasks + tasks - 1) / tasks, useful = std::max<int64_t>(1, longest / kLeast);
  // The tokens of a prompt's piece are about equally long, and many: none waits for another.
  const int64_t splits = std::max(std::min(wanted, useful), decodes ? longest / kMost : 1);
  return std::min<int64_t>(32, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(splits))));
}

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
  const int64_t decoding = step_bytes(model, running, element) + logits + split_bytes(input, running);
  bytes.workspace = std::max(step_bytes(model, prompts, element) + logits, decoding);
  // CUDA graphs keep their own memory.
  if (input.is_cuda && input.use_graphs) bytes.workspace += decoding;
  return bytes;
}

}  // namespace kedge
