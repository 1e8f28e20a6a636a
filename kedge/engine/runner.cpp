#include "kedge/engine/runner.h"

#include <algorithm>
#include <bit>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/engine/cuda_sampling.h"
#include "kedge/engine/engine_memory.h"

namespace kedge {
namespace {

// Steps of these numbers of sequences are recorded; others are padded with rows that are never read.
int64_t recorded_rows(int64_t rows) {
  for (const auto& [most, step] : {std::pair{8, 1}, {64, 8}, {256, 16}})
    if (rows <= most) return (rows + step - 1) / step * step;
  return (rows + 63) / 64 * 64;
}

Tensor from_vector(const std::vector<int32_t>& numbers) {
  return at::from_blob(const_cast<int32_t*>(numbers.data()), {static_cast<int64_t>(numbers.size())}, at::kInt);
}

// The same numbers as in training.
void add_outputs_(Tensor& x, const LayerView& layer, const LinearView& linear, const Tensor& in) {
  if (layer.ranks == nullptr) return add_adapted_linear_(x, in, linear);
  x = summed_linear(in, linear, {}, x, {layer.ranks});
}

}  // namespace

Runner::Runner(const Model& model, const KeyValueMemory& memory, const RunnerOptions& options)
    : model_(model), memory_(memory), options_(options), rotary_(model.own_shape(), model.device()) {}

Runner::Tokens Runner::collect(const Step& step, const Scheduler& scheduler) {
  Tokens tokens;
  const auto num_tokens = static_cast<size_t>(step.num_tokens());
  for (auto* numbers : {&tokens.ids, &tokens.positions}) numbers->reserve(num_tokens);
  tokens.sequences.reserve(num_tokens);
  tokens.drawn.reserve(step.rows.size());
  tokens.awaited.reserve(2 * step.rows.size());
  const auto is_fresh = [](const StepRow& row) { return row.begin == 0 && row.count > 1; };
  std::vector<int32_t> last(step.rows.size());
  for (const bool fresh : {false, true})
    for (size_t r = 0; r < step.rows.size(); ++r) {
      const StepRow& row = step.rows[r];
      if (is_fresh(row) != fresh) continue;
      const Sequence& sequence = scheduler.sequence(row.sequence);
      for (int64_t i = row.begin; i < row.begin + row.count; ++i) {
        tokens.ids.push_back(sequence.tokens[static_cast<size_t>(i)]);
        tokens.positions.push_back(static_cast<int32_t>(i));
        tokens.sequences.push_back(&sequence);
      }
      last[r] = static_cast<int32_t>(tokens.ids.size()) - 1;
      if (sequence.awaited >= 0 && row.begin + row.count == sequence.length())
        tokens.awaited.insert(tokens.awaited.end(), {last[r], static_cast<int32_t>(sequence.awaited)});
      if (fresh) tokens.fresh.push_back(row.count);
      if (!fresh) tokens.num_paged += row.count;
      tokens.longest = std::max(tokens.longest, row.begin + row.count);
    }
  for (size_t r = 0; r < step.rows.size(); ++r)
    if (step.rows[r].num_draws > 0) tokens.drawn.push_back(last[r]);
  tokens.decodes = tokens.ids.size() == step.rows.size();
  return tokens;
}

Runner::Inputs Runner::cpu_inputs(const Tokens& tokens) {
  Inputs inputs{from_vector(tokens.ids), from_vector(tokens.positions), {}, {}};
  if (tokens.drawn.size() < tokens.ids.size()) inputs.drawn = from_vector(tokens.drawn);
  PagedTokens& paged = inputs.tokens;
  paged.num_paged = tokens.num_paged;
  for (size_t i = 0; i < tokens.ids.size(); ++i) paged.queries.push_back({tokens.sequences[i]->blocks.data(), tokens.positions[i]});
  paged.fresh.lengths = tokens.fresh;
  if (!model_.config().learned_positions) paged.rotation = rotary_.rotation(inputs.positions, tokens.longest);
  return inputs;
}

// Everything in one upload: ids, positions and places of the tokens, filled up to num_rows, which tokens are sampled, where new rows
// start, the blocks of the paged tokens, and which ids are still to be copied from `drawn`: last, so that recorded steps find the rest
// where it was.
Runner::Inputs Runner::cuda_inputs(const Tokens& tokens, int64_t num_rows, const Tensor& drawn) {
  const auto num_tokens = static_cast<int64_t>(tokens.ids.size());
  const int64_t num_paged = tokens.num_paged + num_rows - num_tokens;
  const bool draws_all = tokens.drawn.size() == tokens.ids.size();
  const auto num_fresh = static_cast<int64_t>(tokens.fresh.size()), num_drawn = draws_all ? 0 : static_cast<int64_t>(tokens.drawn.size());
  const int64_t width = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>((tokens.longest + kPagedBlock - 1) / kPagedBlock)));
  const auto num_awaited = static_cast<int64_t>(tokens.awaited.size());
  const int64_t size = 3 * num_rows + num_drawn + num_fresh + 1 + num_paged * width + num_awaited;
  if (!device_.defined() || device_.numel() < size) {
    // Recorded steps read from here, so the place for the largest of them must not change.
    const int64_t room = std::max(size, int64_t{1} << 20U);
    graphs_.clear();
    for (Tensor& host : hosts_) host = at::empty({room}, at::TensorOptions(at::kInt).pinned_memory(true));
    device_ = at::empty({room}, at::TensorOptions(at::kInt).device(model_.device()));
  }
  const Tensor& host = hosts_[turn_ = 1 - turn_];
  auto* to = host.mutable_data_ptr<int32_t>();
  int64_t at = 0;
  const auto part = [&](int64_t count) {
    const Tensor slice = device_.narrow(0, at, count);
    at += count;
    return slice;
  };
  int32_t *ids = to, *positions = to + num_rows, *slots = to + 2 * num_rows;
  std::fill_n(ids, 2 * num_rows, 0);
  std::fill_n(slots, num_rows, static_cast<int32_t>(memory_.spare_block() * kPagedBlock));
  // Padding rows follow the paged tokens; there are none if there are new rows.
  for (int64_t i = 0; i < num_tokens; ++i) {
    const auto from = static_cast<size_t>(i);
    ids[i] = tokens.ids[from];
    positions[i] = tokens.positions[from];
    slots[i] = static_cast<int32_t>(tokens.sequences[from]->blocks[static_cast<size_t>(positions[i] / kPagedBlock)] * kPagedBlock +
                                    positions[i] % kPagedBlock);
  }
  Inputs inputs{part(num_rows), part(num_rows), {}, {}};
  PagedTokens& paged = inputs.tokens;
  paged.num_paged = num_paged;
  paged.decodes = tokens.decodes;
  paged.positions = inputs.positions;
  paged.slots = part(num_rows);
  if (!draws_all) {
    std::copy(tokens.drawn.begin(), tokens.drawn.end(), to + at);
    inputs.drawn = part(num_drawn);
  }
  int32_t start = 0;
  for (int64_t i = 0; i < num_fresh; ++i) {
    to[at + i] = start;
    start += static_cast<int32_t>(tokens.fresh[static_cast<size_t>(i)]);
  }
  to[at + num_fresh] = start;
  paged.fresh.offsets = part(num_fresh + 1);
  paged.fresh.lengths = tokens.fresh;
  paged.fresh.max_length = tokens.longest;
  for (int64_t i = 0; i < num_paged; ++i) {
    int32_t* table = to + at + i * width;
    if (i < tokens.num_paged) {
      const auto& blocks = tokens.sequences[static_cast<size_t>(i)]->blocks;
      std::copy_n(blocks.begin(), std::min<size_t>(blocks.size(), static_cast<size_t>(width)), table);
    } else {
      table[0] = memory_.spare_block();
    }
  }
  paged.tables = part(num_paged * width).view({num_paged, width});
  paged.num_splits = key_splits(std::max<int64_t>(1, num_paged), model_.own_shape().num_kv_heads, tokens.longest, tokens.decodes);
  if (!model_.config().learned_positions) paged.rotation = rotary_.table(options_.max_length);
  std::copy(tokens.awaited.begin(), tokens.awaited.end(), to + at);
  const Tensor awaited = part(num_awaited);
  // The draws of a step are read, and so this is done, before the step after the next takes the buffer; without draws nobody waits.
  device_.narrow(0, 0, at).copy_(host.narrow(0, 0, at), !tokens.drawn.empty());
  if (num_awaited > 0) cuda::fill_awaited(drawn, awaited, inputs.ids);
  return inputs;
}

Tensor Runner::logits(const Inputs& inputs) const {
  const Decoder& decoder = model_.decoder();
  Tensor x = decoder.embed(inputs.ids, inputs.positions);
  for (size_t i = 0; i < static_cast<size_t>(model_.config().num_layers); ++i) {
    const LayerView layer = decoder.layer(i);
    const Tensor qkv = adapted_linear(norm(x, layer.norm1).out, layer.qkv, {});
    add_outputs_(x, layer, layer.out, paged_attention(qkv, layer, inputs.tokens, memory_.layer(i)));
    const Tensor gate_up = adapted_linear(norm(x, layer.norm2).out, layer.gate_up, {});
    add_outputs_(x, layer, layer.down, gate(gate_up, layer.gate));
  }
  if (inputs.drawn.defined()) x = x.index_select(0, inputs.drawn);
  const Tensor& head = model_.language_head().weight;
  if (x.size(0) == 0) return at::empty({0, head.size(0)}, x.options());
  return logits_of(norm(x, decoder.last_norm()).out, head);
}

// One token of each sequence.
Tensor Runner::decode(const Tokens& tokens, const Tensor& drawn) {
  const auto rows = static_cast<int64_t>(tokens.ids.size());
  const Inputs inputs = cuda_inputs(tokens, recorded_rows(rows), drawn);
  const PagedTokens& paged = inputs.tokens;
  const Adapters* adapters = model_.adapters();
  if (const int64_t placement = model_.parameters().placement(); placement != placement_) {
    graphs_.clear();
    placement_ = placement;
  }
  const int64_t adapted = adapters == nullptr || !adapters->enabled() ? 0 : reinterpret_cast<int64_t>(adapters);
  const Tensor all = graphs_.run({inputs.ids.size(0), paged.tables.size(1), paged.num_splits, adapted}, [&] { return logits(inputs); });
  return all.narrow(0, 0, rows);
}

Tensor Runner::run(const Step& step, const Scheduler& scheduler, const Tensor& drawn) {
  const NoGrad no_grad;
  tokens_ = collect(step, scheduler);
  if (!model_.device().is_cuda()) {
    // A sequence without a token has failed; what is computed for it is not read.
    for (size_t i = 0; i < tokens_.awaited.size(); i += 2)
      tokens_.ids[static_cast<size_t>(tokens_.awaited[i])] = std::max(0, drawn.const_data_ptr<int32_t>()[tokens_.awaited[i + 1]]);
    return logits(cpu_inputs(tokens_));
  }
  const auto num_tokens = static_cast<int64_t>(tokens_.ids.size());
  const bool one_each = tokens_.decodes && tokens_.drawn.size() == tokens_.ids.size();
  return one_each && options_.use_graphs ? decode(tokens_, drawn) : logits(cuda_inputs(tokens_, num_tokens, drawn));
}

}  // namespace kedge
