#include "kedge/train/memory_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/dist/reshard.h"
#include "kedge/model/adapters.h"
#include "kedge/model/kernels/attention.h"
#include "kedge/model/logprob_head.h"
#include "kedge/model/parameters.h"

namespace kedge {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20U;
// Measured: what a process holds in addition to its tensors (140 MB with a model of kilobytes, 160 to 200 MB with larger ones, whose
// products need more workspace in the libraries). On an H200: 0.95 to 1.2 GiB of GPU memory in addition to the tensors, half of it from the
// start; about 1 GiB of the host's memory; and for temporary tensors the allocator holds about 4 % more than requested.
constexpr int64_t kProgram = 170 * kMiB, kCudaProgram = 1100 * kMiB, kCudaContext = 500 * kMiB, kCudaHost = 1024 * kMiB;
constexpr int64_t kSlackParts = 25;
constexpr int64_t kCublasWorkspace = 32 * kMiB;  // torch's choice, one a process

// Tensors are allocated and freed; the peak counts.
class Tally {
 public:
  void take(int64_t bytes) {
    live_ += bytes;
    most_ = std::max(most_, live_);
  }
  void drop(int64_t bytes) { live_ -= bytes; }
  void pass(int64_t bytes) { take(bytes), drop(bytes); }  // held for a moment

  [[nodiscard]] int64_t live() const { return live_; }
  [[nodiscard]] int64_t most() const { return most_; }

 private:
  int64_t live_ = 0, most_ = 0;
};

// One micro-batch through decoder.cpp, decoder_layer.cpp, attention.cpp and logprob_head.cpp, in their order.
class MicroBatchMemory {
 public:
  // Both must outlive it.
  MicroBatchMemory(const MemoryInput& input, const std::vector<LinearSlice>& adapted)
      : in_(input), m_(input.model), trains_all_(!input.lora), adapters_(adapted) {}

  // What the passes keep between them, and the peak.
  struct Peak {
    int64_t kept = 0, most = 0;
  };
  Peak play() {
    Peak peak;
    tally_.take(thread_scratch() + rotation() + batch());
    outputs();  // the embedding's
    for (int64_t layer = 0; layer < m_.num_layers; ++layer) forward(layer, !in_.checkpoint);
    tally_.take(wide(m_.hidden_size) + norm_stats());  // the last norm: the hidden states, of all tokens
    peak.kept = tally_.live() - thread_scratch();
    in_.head.kind == HeadKind::language ? language_head() : score_head();
    tally_.take(stream());  // the gradient of the last layer's output
    tally_.pass(norm_sums());
    tally_.drop(stream() + norm_stats());  // the output itself
    for (int64_t layer = m_.num_layers; layer-- > 0;) {
      if (in_.checkpoint) {
        forward(layer, true);
        tally_.drop(stream());  // its output, computed before
      }
      backward(layer, layer > 0 || trains_all_);
    }
    if (trains_all_) tally_.pass(gathered() + (in_.is_cuda && narrow_type() ? in_.tokens * m_.hidden_size * 4 : 0));
    peak.most = tally_.most();
    return peak;
  }
  // A forward-only pass.
  int64_t look() {
    tally_.take(thread_scratch() + rotation() + batch());
    outputs();
    for (int64_t layer = 0; layer < m_.num_layers; ++layer) {
      forward(layer, false);
      tally_.drop(stream());  // its input
    }
    tally_.take(wide(m_.hidden_size));
    if (in_.head.kind == HeadKind::language) {
      const int64_t chunk = std::min(logit_memory(in_.is_cuda, m_.vocab_size).chunk, in_.tokens);
      tally_.pass(chunk * (m_.hidden_size * element() + m_.vocab_size * (in_.is_cuda ? 4 : element())));
    }
    return tally_.most();
  }

 private:
  [[nodiscard]] bool narrow_type() const { return in_.dtype != at::kFloat; }
  [[nodiscard]] int64_t element() const { return narrow_type() ? 2 : 4; }
  // A matrix with one row per token, and one fp32 number per token.
  [[nodiscard]] int64_t wide(int64_t columns) const { return in_.tokens * columns * element(); }
  [[nodiscard]] int64_t column(int64_t count) const { return in_.tokens * count * 4; }

  // The residual stream: rows of the tokens that a rank has between the layers' products. And rows of all tokens, put together for a
  // product from those of each rank.
  [[nodiscard]] int64_t own_tokens() const { return (in_.tokens + in_.token_ranks - 1) / in_.token_ranks; }
  [[nodiscard]] int64_t stream() const { return own_tokens() * m_.hidden_size * element(); }
  [[nodiscard]] int64_t gathered() const { return in_.token_ranks > 1 ? wide(m_.hidden_size) : 0; }

  [[nodiscard]] int64_t norm_stats() const { return own_tokens() * 4 * (m_.norm == NormKind::layer ? 2 : 1); }
  [[nodiscard]] int64_t head_norm_stats() const { return m_.qk_norm ? column(m_.num_heads + m_.num_kv_heads) : 0; }
  [[nodiscard]] bool is_flash() const { return in_.is_cuda && narrow_type() && flash_takes(m_.head_dim); }
  [[nodiscard]] int64_t log_sums() const { return in_.is_cuda && !is_flash() ? 0 : column(m_.num_heads); }
  [[nodiscard]] int64_t rotation() const { return m_.learned_positions ? 0 : column(m_.rope.dim); }
  [[nodiscard]] int64_t batch() const { return in_.tokens * 4 * 8; }  // ids, positions, places, targets
  // Norms' weight gradients are summed by blocks on CUDA.
  [[nodiscard]] int64_t norm_sums() const { return in_.is_cuda ? std::min<int64_t>(own_tokens(), 264) * m_.hidden_size * 4 : 0; }
  // Attention's copies of a head's keys, values and their gradients; a thread keeps them.
  [[nodiscard]] int64_t thread_scratch() const { return in_.is_cuda ? 0 : in_.threads * 4 * in_.longest * m_.head_dim * 4; }
  // On a CPU the library's bf16 products make a reordered copy of the weight, and a weight's gradient is computed separately,
  // widened and then added.
  void input_gradient(int64_t rows, int64_t columns) {
    if (!in_.is_cuda && narrow_type()) tally_.pass(rows * columns * 2);
  }
  void weight_gradient(int64_t rows, int64_t columns) {
    if (trains_all_ && !in_.is_cuda && narrow_type()) tally_.pass(rows * columns * (2 + 4));
  }

  // The products of adapters on the layer's parameter: the given number of columns of the rank, those that the backward keeps of each
  // adapter, and the slice's outputs, unless they are added where they belong.
  void adapters(int64_t layer, std::initializer_list<std::string_view> kinds, int64_t ranks) {
    const auto is_one = [&](const LinearSlice& slice) {
      return slice.layer == layer &&
             std::any_of(kinds.begin(), kinds.end(), [&](std::string_view kind) { return slice.module.ends_with(kind); });
    };
    const int64_t kept = std::count_if(adapters_.begin(), adapters_.end(), is_one);
    const bool adds_in_place = in_.is_cuda && in_.lora && in_.lora->adapter_dropout == 0;
    for (const LinearSlice& slice : adapters_)
      if (is_one(slice)) tally_.pass(wide((ranks + kept) * in_.lora->adapter_dim + (adds_in_place ? 0 : slice.rows)));
  }
  void qkv_adapters(int64_t layer, int64_t ranks) { adapters(layer, {"q_proj", "k_proj", "v_proj", "c_attn"}, ranks); }
  void out_adapters(int64_t layer, int64_t ranks) { adapters(layer, {"o_proj", "attn.c_proj"}, ranks); }
  void gate_up_adapters(int64_t layer, int64_t ranks) { adapters(layer, {"gate_proj", "up_proj", "c_fc"}, ranks); }
  void down_adapters(int64_t layer, int64_t ranks) { adapters(layer, {"down_proj", "mlp.c_proj"}, ranks); }

  // What a layer keeps in addition to its input.
  [[nodiscard]] int64_t layer_state() const {
    return 2 * norm_stats() + head_norm_stats() + log_sums() + stream() +
           wide((m_.qk_norm ? 2 : 1) * m_.qkv_size() + m_.q_size() + m_.gate_up_size());
  }

  // A product's outputs, of all tokens, become those of the tokens that a rank has.
  void outputs() {
    tally_.take(wide(m_.hidden_size));
    keep_own();
  }
  void keep_own() {
    if (in_.token_ranks > 1) tally_.take(stream()), tally_.drop(wide(m_.hidden_size));
  }

  // Leaves the output and the input, and the layer's state if it is kept.
  void forward(int64_t layer, bool keep) {
    tally_.take(stream() + norm_stats());
    tally_.take(gathered() + wide(m_.qkv_size()));
    qkv_adapters(layer, 1);
    tally_.drop(gathered());
    if (m_.qk_norm) {
      const int64_t normed = wide(m_.q_size() + m_.kv_size());
      tally_.take(wide(m_.qkv_size()) + normed + head_norm_stats());
      tally_.pass(wide(m_.kv_size()));
      tally_.drop(normed);
    }
    tally_.take(wide(m_.q_size()) + log_sums());
    if (in_.is_cuda && !is_flash()) tally_.pass(plain_scores());
    if (is_flash() && in_.prompts > 0) tally_.pass(wide(m_.q_size()) + log_sums());  // the answers' outputs with their prompts
    tally_.take(wide(m_.hidden_size));
    out_adapters(layer, 1);
    keep_own();
    tally_.take(stream() + norm_stats());
    tally_.take(gathered() + wide(m_.gate_up_size()));
    gate_up_adapters(layer, 1);
    tally_.drop(gathered());
    tally_.take(wide(m_.mlp_size));
    tally_.take(wide(m_.hidden_size));
    down_adapters(layer, 1);
    keep_own();
    tally_.drop(wide(m_.mlp_size) + 2 * stream());
    if (!keep) tally_.drop(layer_state());
  }

  void backward(int64_t layer, bool wants_input) {
    const int64_t gate_up = wide(m_.gate_up_size()), mlp = wide(m_.mlp_size);
    tally_.take(gathered() + mlp);
    input_gradient(m_.hidden_size, m_.mlp_size);
    down_adapters(layer, 1);
    tally_.take(gate_up + mlp);
    if (m_.gated && m_.activation != Activation::silu) tally_.pass(2 * mlp);
    tally_.drop(mlp);
    weight_gradient(m_.hidden_size, m_.mlp_size);
    down_adapters(layer, 2);
    tally_.drop(gathered() + gate_up + mlp);  // and those of the forward pass, and the gate's output once more
    tally_.take(stream() + gathered());
    weight_gradient(m_.gate_up_size(), m_.hidden_size);
    gate_up_adapters(layer, 2);
    tally_.drop(stream() + gathered());
    tally_.take(wide(m_.hidden_size));
    input_gradient(m_.gate_up_size(), m_.hidden_size);
    gate_up_adapters(layer, 1);
    keep_own();
    tally_.take(stream());
    tally_.pass(norm_sums());
    tally_.drop(2 * stream() + gate_up);  // the norm's output gradient, the state's h, the gate's gradient
    tally_.take(gathered());
    weight_gradient(m_.hidden_size, m_.q_size());
    out_adapters(layer, 2);
    tally_.take(wide(m_.q_size()));
    input_gradient(m_.hidden_size, m_.q_size());
    out_adapters(layer, 1);
    attention_backward();
    tally_.drop(gathered() + 2 * wide(m_.q_size()) + wide(m_.qkv_size()) + log_sums());
    if (m_.qk_norm) tally_.pass(3 * wide(m_.q_size()));
    tally_.take(stream() + gathered());
    weight_gradient(m_.qkv_size(), m_.hidden_size);
    qkv_adapters(layer, 2);
    tally_.drop(stream() + gathered());
    if (wants_input) {
      tally_.take(wide(m_.hidden_size));
      input_gradient(m_.qkv_size(), m_.hidden_size);
      qkv_adapters(layer, 1);
      keep_own();
      tally_.take(stream());
      tally_.pass(norm_sums());
      tally_.drop(stream());
    }
    // The state that is left with the layer's input, the gradients of qkv and h, and that of the output, which the new one replaces.
    tally_.drop(stream() + 2 * norm_stats() + head_norm_stats() + (m_.qk_norm ? wide(m_.qkv_size()) : 0));
    tally_.drop(wide(m_.qkv_size()) + 2 * stream());
  }

  // Leaves the gradient of qkv.
  void attention_backward() {
    if (is_flash()) {
      // By head: the sums of the queries' gradients in fp32 (rows padded to 128), and keys' and values' before their group is summed.
      const int64_t padded = in_.tokens + 128 * (in_.prompts > 0 ? in_.prompts + in_.answers : in_.rows);
      const bool grouped = m_.num_heads != m_.num_kv_heads;
      const int64_t flash = padded * (m_.q_size() + m_.num_heads) * 4 + (grouped ? 2 * wide(m_.q_size()) : 0);
      // cuDNN has all of them in fp32, for a number of tokens that is rounded up (cudnn_attention.cpp): by a sixth in the middle.
      const int64_t cudnn = in_.tokens * 7 / 6 * (m_.qkv_size() + (grouped ? 2 * m_.q_size() : 0) + m_.num_heads) * 4;
      const int64_t sums = std::max(flash, cudnn);
      tally_.take(wide(m_.qkv_size()));
      tally_.pass(sums);
      if (in_.prompts > 0) tally_.pass(wide(m_.qkv_size()) + sums);  // once more, for the answers with their prompts
      tally_.pass(wide(m_.qkv_size()));                              // the three side by side
      return;
    }
    tally_.take(wide(m_.qkv_size()));
    if (in_.is_cuda) tally_.pass(2 * plain_scores());
  }
  // The scores of the longest row, before and after the softmax.
  [[nodiscard]] int64_t plain_scores() const { return 2 * m_.num_heads * in_.longest * in_.longest * 4; }

  // Replaces the hidden states by their gradient.
  void language_head() {
    const int64_t predicted = std::max<int64_t>(in_.tokens - (in_.prompts > 0 ? in_.prompts : in_.rows), 0);
    const LogitMemory memory = logit_memory(in_.is_cuda, m_.vocab_size);
    const int64_t logit = in_.is_cuda ? 4 : element();
    int64_t budget = std::max(memory.waiting_bytes, in_.kept_logits), waiting = 0, num_waiting = 0;
    for (int64_t begin = 0; begin < predicted; begin += memory.chunk) {
      const int64_t count = std::min(memory.chunk, predicted - begin), logits = count * m_.vocab_size * logit;
      tally_.take(count * m_.hidden_size * element() + logits);
      budget -= logits;
      if (budget >= 0) waiting += logits, num_waiting += count;
      tally_.drop(count * m_.hidden_size * element() + (budget >= 0 ? 0 : logits));
    }
    const int64_t hidden = wide(m_.hidden_size), numbers = predicted * 4 * 4;
    tally_.take(numbers + hidden);
    for (int64_t begin = 0; begin < predicted; begin += memory.chunk) {
      const int64_t count = std::min(memory.chunk, predicted - begin);
      const int64_t again = begin < num_waiting ? 0 : count * m_.vocab_size * logit;
      const int64_t gradient = in_.is_cuda && narrow_type() ? count * m_.vocab_size * 2 : 0;
      tally_.take(count * m_.hidden_size * element() + again + gradient);
      tally_.take(count * m_.hidden_size * element());
      input_gradient(m_.vocab_size, m_.hidden_size);
      tally_.drop(count * m_.hidden_size * element());
      weight_gradient(m_.vocab_size, m_.hidden_size);
      tally_.drop(count * m_.hidden_size * element() + again + gradient);
    }
    tally_.drop(waiting + numbers + hidden);
  }
  void score_head() {
    tally_.take(wide(m_.hidden_size));
    tally_.pass(2 * in_.rows * m_.hidden_size * 4);
    tally_.drop(wide(m_.hidden_size));
  }

  const MemoryInput& in_;
  const ModelConfig& m_;
  bool trains_all_;
  const std::vector<LinearSlice>& adapters_;
  Tally tally_;
};

// What an update takes in addition to the buffers, when the passes' memory is free again: pieces of moments from the host.
int64_t update_workspace(const MemoryInput& input, int64_t share, int64_t moment) {
  const bool moves = input.optimizer.offload_adam_states && input.is_cuda;
  return moves ? 2 * std::min(share, int64_t{1} << 27U) * moment : 0;
}

// In elements, of the rank that has most.
struct ShardedSizes {
  int64_t updated = 0;                                     // master weights and moments
  int64_t whole_gradients = 0, sums = 0;                   // gradients of a pass, and their sums over ranks
  int64_t temporary_gradients = 0, temporary_weights = 0;  // of the buckets in work
  int64_t elsewhere = 0;                                   // weights that other ranks have, between passes
  int64_t layers = 0;                                      // weights that come and go
};

int64_t largest_share(const ShardLayout& layout) {
  int64_t most = 0;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) most = std::max(most, layout.own_size(rank));
  return most;
}

// Elements of the buckets of layers: of all, and of the largest.
std::pair<int64_t, int64_t> layer_sizes(const std::vector<ParameterSpec>& specs) {
  std::vector<int64_t> sizes;
  for (const ParameterSpec& spec : specs) {
    if (spec.layer < 0 || !spec.decays) continue;
    sizes.resize(std::max(sizes.size(), static_cast<size_t>(spec.layer) + 1));
    sizes[static_cast<size_t>(spec.layer)] += flat_size({spec});
  }
  return {std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end())};
}

ShardedSizes sharded_sizes(const MemoryInput& input, const std::vector<ParameterSpec>& base, const std::vector<ParameterSpec>& trained) {
  const int64_t size = flat_size(trained);
  if (input.num_ranks == 1) return {.updated = size, .whole_gradients = size};
  const Sharding kind = input.lora ? Sharding::none : input.sharding;  // adapters are small
  const ShardLayout layout = shard_layout(trained, input.shard_ranks, input.num_ranks);
  int64_t largest = 0;
  for (size_t b = 0; b < layout.num_buckets(); ++b) largest = std::max(largest, length(layout.bucket(b)));
  const int64_t share = largest_share(layout);
  ShardedSizes sizes{.updated = kind == Sharding::none ? size : share, .whole_gradients = size, .sums = share};
  sizes.temporary_gradients = std::min(largest, ShardExchange::kPieceElements);
  if (kind >= Sharding::gradients) {
    sizes.whole_gradients = 0;
    // Two layers' (model/parameters.h), and those of an embedding that is the head too all the while.
    sizes.temporary_gradients += largest + 2 * layer_sizes(trained).second;
  }
  if (input.sharding != Sharding::all) return sizes;
  const auto [layers, largest_layer] = layer_sizes(base);
  sizes.layers = layers;
  sizes.temporary_weights = 2 * largest_layer;
  // The parts that this rank stores, and complete buckets of what is outside the layers.
  sizes.elsewhere = layers - largest_share(shard_layout(base, input.shard_ranks, input.num_ranks));
  return sizes;
}

std::string line(const std::string& name, int64_t bytes, const std::string& note) {
  const std::string size = format_bytes(bytes);
  const auto padding = [](size_t width, const std::string& text) { return std::string(width - std::min(width, text.size()), ' '); };
  return str("  ", name, padding(20, name), padding(10, size), size, note.empty() ? "" : "  ", note, "\n");
}

}  // namespace

MemoryInput of_one_rank(const MemoryInput& input) {
  MemoryInput own = input;
  own.model = split_config(input.model, {input.tensor_ranks - 1, input.tensor_ranks});
  own.tensor_ranks = 1;
  return own;
}

MemoryPlan plan_memory(const MemoryInput& input) {
  if (input.tensor_ranks > 1) {
    MemoryPlan plan = plan_memory(of_one_rank(input));
    // Every rank's summands of a layer's outputs, while they are added up: of all tokens, or of the own ones.
    const int64_t summands = input.token_ranks > 1 ? 1 : input.tensor_ranks;
    plan.workspace += summands * input.tokens * input.model.hidden_size * (input.dtype == at::kFloat ? 4 : 2);
    return plan;
  }
  const ModelParameters places = make_parameters(input.model, input.head);
  std::vector<LinearSlice> adapted;
  std::vector<ParameterSpec> trained = places.specs;
  if (input.lora) {
    adapted = select_slices(*input.lora, linear_slices(input.model, places), input.model.num_layers, "peft");
    const bool score = input.head.kind == HeadKind::score;
    trained = adapter_specs(adapted, input.lora->adapter_dim,
                            {score ? std::vector<int64_t>{input.head.num_labels, input.model.hidden_size} : std::vector<int64_t>{},
                             score && input.head.score_bias});
  }
  const int64_t element = input.dtype == at::kFloat ? 4 : 2;
  const int64_t size = flat_size(trained), all = flat_size(places.specs) + (input.lora ? size : 0);
  const ShardedSizes shards = sharded_sizes(input, places.specs, trained);
  const int64_t moment = input.optimizer.name == OptimizerKind::sgd ? 0 : input.optimizer.moments == MomentType::fp32 ? 4 : 2;

  MemoryPlan plan;
  plan.is_cuda = input.is_cuda;
  plan.parameters = (all - shards.elsewhere) * element;
  plan.gathered = shards.layers * element;
  plan.master_weights = input.dtype == at::kFloat ? 0 : shards.updated * 4;
  plan.gradients = (shards.whole_gradients + shards.sums) * 4;
  const bool offloads = input.optimizer.offload_adam_states && input.is_cuda;
  if (offloads) plan.host_optimizer = 2 * pinned_bytes(shards.updated * moment);
  if (!offloads) plan.optimizer = 2 * shards.updated * moment;
  const MicroBatchMemory::Peak peak = MicroBatchMemory(input, adapted).play();
  plan.activations = peak.kept;
  plan.workspace = std::max(peak.most, update_workspace(input, shards.updated, moment)) - peak.kept +
                   (input.is_cuda ? kCublasWorkspace : 0) + shards.temporary_gradients * 4 + shards.temporary_weights * element;
  plan.look = MicroBatchMemory(input, adapted).look() + (input.is_cuda ? kCublasWorkspace : 0);
  if (input.is_cuda) plan.slack = (plan.activations + plan.workspace) / kSlackParts;
  plan.fixed = process_bytes(input.is_cuda);
  plan.snapshot = shards.updated * (4 + 2 * moment);
  return plan;
}

ForwardMemory plan_forward(const MemoryInput& input) {
  if (input.tensor_ranks > 1) return plan_forward(of_one_rank(input));
  return {flat_size(make_parameters(input.model, input.head).specs) * (input.dtype == at::kFloat ? 4 : 2),
          MicroBatchMemory(input, {}).look() + (input.is_cuda ? kCublasWorkspace : 0)};
}

int64_t resharded_bytes(const MemoryInput& input, int tensor_ranks) {
  MemoryInput copy = input;
  copy.model = split_config(input.model, {0, tensor_ranks});
  const ModelParameters places = make_parameters(copy.model, copy.head);
  int64_t elements = flat_size(places.specs);
  if (copy.lora)
    elements += flat_size(adapter_specs(select_slices(*copy.lora, linear_slices(copy.model, places), copy.model.num_layers, "peft"),
                                        copy.lora->adapter_dim, {}));
  const int64_t moving = std::min(elements, Reshard::kRoundElements);
  return (elements + 2 * moving) * (input.dtype == at::kFloat ? 4 : 2);
}

int64_t pinned_bytes(int64_t bytes) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes))); }

int64_t process_bytes(bool is_cuda) { return is_cuda ? kCudaProgram : kProgram; }

int64_t context_bytes() { return kCudaContext; }

int64_t gpu_host_bytes() { return kCudaHost; }

std::string MemoryPlan::table() const {
  std::string text = line("parameters", parameters, "");
  if (master_weights > 0) text += line("master weights", master_weights, "fp32");
  text += line("gradients", gradients, "fp32");
  text += line("optimizer", optimizer, host_optimizer > 0 ? "in host memory: " + format_bytes(host_optimizer) : "");
  text += line("fixed", fixed, is_cuda ? "the GPU's context and libraries" : "the program and its libraries");
  text += line("between steps", total(), "");
  text += line("activations", activations, "kept by a forward pass");
  text += line("workspace", workspace, "logits and other temporary tensors");
  if (gathered > 0) text += line("gathered", gathered, "other ranks' weights, in generation and forward-only passes");
  if (slack > 0) text += line("slack", slack, "between the allocator's pieces");
  text += line("peak", peak(), "");
  text += line("snapshot", snapshot, "in host memory while a checkpoint is written");
  return text;
}

Json MemoryPlan::json() const {
  Json json;
  json.set("parameters", parameters);
  json.set("master_weights", master_weights);
  json.set("gradients", gradients);
  json.set("optimizer", optimizer);
  json.set("activations", activations);
  json.set("workspace", workspace);
  json.set("slack", slack);
  json.set("look", look);
  json.set("gathered", gathered);
  json.set("fixed", fixed);
  json.set("total", total());
  json.set("peak", peak());
  json.set("host_optimizer", host_optimizer);
  json.set("snapshot", snapshot);
  return json;
}

}  // namespace kedge
