#include "kedge/train/wire_plan.h"

#include <algorithm>

#include "kedge/model/parameters.h"
#include "kedge/model/stored_weights.h"

namespace kedge {
namespace {

// Elements of a rank's own parts, of the others' parts in the same buckets, and of those if all were as long as the longest.
// What the own parts' sums over `num_groups` groups make a rank of the first group send: slices to be summed by the others, and its own
// sums to all.
struct Parts {
  int64_t own = 0, others = 0, padded = 0, between_groups = 0;
};

template <typename F>
Parts parts_of(const ShardLayout& layout, int rank, int num_groups, F&& counts) {
  Parts parts;
  for (size_t b = 0; b < layout.num_buckets(); ++b) {
    if (!counts(layout.bucket(b))) continue;
    const int64_t own = length(layout.part(b, rank));
    parts.own += own;
    parts.others += length(layout.bucket(b)) - own;
    int64_t longest = 0;
    for (int other = 0; other < layout.num_ranks(); ++other) longest = std::max(longest, length(layout.part(b, other)));
    parts.padded += longest * (layout.num_ranks() - 1);
    const int64_t slice = length(share_of(own, 0, num_groups));
    if (num_groups > 1) parts.between_groups += own - slice + slice * (num_groups - 1);
  }
  return parts;
}

// Where the matrices of the layers begin and end.
Share layers_of(const std::vector<ParameterSpec>& specs) {
  Share layers{-1, -1};
  int64_t at = 0;
  for (const ParameterSpec& spec : specs) {
    if (!spec.decays) continue;
    const int64_t end = at + flat_size({spec});
    if (spec.layer >= 0) layers = {layers.begin < 0 ? at : layers.begin, end};
    at = end;
  }
  return layers;
}

}  // namespace

WireBytes wire_bytes(const WireInput& input, const WireEvents& events, int shard_rank) {
  WireBytes bytes;
  if (input.num_ranks == 1) return bytes;
  constexpr int64_t kFloat = 4;
  const int num_groups = input.num_ranks / input.shard_ranks;
  const int64_t others = input.shard_ranks - 1;
  const Sharding kind = input.has_adapters ? Sharding::none : input.sharding;  // of what is trained
  const auto all = [](const Share&) { return true; };

  const Parts trained = parts_of(shard_layout(input.trained, input.shard_ranks, input.num_ranks), shard_rank, num_groups, all);
  const bool each_pass = kind >= Sharding::gradients || input.collectives == Collectives::ordered;
  const int64_t reductions = each_pass ? events.passes : events.updates;
  bytes.in_group += reductions * (input.collectives == Collectives::fast ? trained.padded : trained.others) * kFloat;
  bytes.between_groups += reductions * trained.between_groups * kFloat;
  if (kind == Sharding::none) bytes.in_group += events.updates * trained.own * others * kFloat;  // everybody gets all sums
  if (kind == Sharding::optimizer || kind == Sharding::gradients)
    bytes.in_group += events.updates * trained.own * others * input.element_bytes;
  if (input.sharding != Sharding::all) return bytes;

  const ShardLayout network = shard_layout(input.network, input.shard_ranks, input.num_ranks);
  const Share layers = layers_of(input.network);
  const auto in_layers = [&](const Share& bucket) { return bucket.begin >= layers.begin && bucket.begin < layers.end; };
  const Parts comes_and_goes = parts_of(network, shard_rank, num_groups, in_layers);
  const Parts stays = parts_of(network, shard_rank, num_groups, [&](const Share& bucket) { return !in_layers(bucket); });
  bytes.in_group += (2 * events.passes + events.wholes) * comes_and_goes.own * others * input.element_bytes;
  if (!input.has_adapters) bytes.in_group += events.updates * stays.own * others * input.element_bytes;
  return bytes;
}

TensorWireInput tensor_wire_input(const MemoryInput& input) {
  return {.tensor_ranks = input.tensor_ranks,
          .layers = input.model.num_layers,
          .hidden = input.model.hidden_size,
          .vocabulary = input.model.vocab_size,
          .element_bytes = input.dtype == at::kFloat ? 4 : 2,
          .recomputes = input.checkpoint,
          .divides_tokens = input.token_ranks > 1};
}

int64_t tensor_wire_bytes(const TensorWireInput& input, const TensorWireTokens& tokens) {
  if (input.tensor_ranks == 1) return 0;
  // A row that is summed: two ranks send each other all of it, more of them slices to be summed, and their own sums to all.
  const double others = input.tensor_ranks - 1, sent = input.tensor_ranks == 2 ? 1 : 2 * others / input.tensor_ranks;
  const auto layers = static_cast<double>(input.layers);
  const double forward = 2 * layers + 1;                                   // after attention, after the MLP; the embedding
  double backward = 2 * layers + 1 + (input.recomputes ? 2 * layers : 0);  // before each of them; the head
  // Where ranks divide the tokens, a sum is two halves: rows that are summed for each rank, and those that ranks put together elsewhere.
  // Inputs of attention and of the MLP are put together once more for the weights' gradients, and the embedding's gradient is.
  if (input.divides_tokens) backward += layers + 0.5;
  const double rows = tokens.trained * (forward + backward) + tokens.seen * forward;
  const double logits = tokens.drawn * static_cast<double>(input.vocabulary) * 4 * others / input.tensor_ranks;
  return static_cast<int64_t>(rows * sent * static_cast<double>(input.hidden * input.element_bytes) + logits);
}

int64_t reshard_bytes(const MemoryInput& input, int tensor_ranks) {
  const std::vector<ParameterSpec> whole = make_parameters(input.model, input.head).specs;
  const int world = input.num_ranks * input.tensor_ranks;
  const auto parts = [&](int rank, int size) {
    return size == 1 ? std::vector<ParameterPart>() : parameter_parts(input.model, input.head, {rank % size, size});
  };
  const auto blocks = [&](const StoredPlace& place) {
    std::vector<WeightBlock> all;
    for (const StoredBlock& stored : stored_blocks(whole, place)) all.push_back(stored.block);
    return all;
  };
  BlocksOfRanks have, want;
  for (int rank = 0; rank < world; ++rank) {
    have.push_back(blocks({.parts = parts(rank, input.tensor_ranks),
                           .is_cut = input.num_ranks > 1 && input.sharding == Sharding::all,
                           .shard_rank = rank / input.tensor_ranks % input.shard_ranks,
                           .shard_ranks = input.shard_ranks,
                           .num_ranks = input.num_ranks}));
    want.push_back(blocks({.parts = parts(rank, tensor_ranks)}));
  }
  const std::vector<WeightMove> moves = plan_reshard(have, want);
  std::vector<int64_t> sent(static_cast<size_t>(world));
  for (const WeightMove& move : moves)
    if (move.from != move.to) sent[static_cast<size_t>(move.from)] += move.block.size();
  return *std::max_element(sent.begin(), sent.end()) * (input.dtype == at::kFloat ? 4 : 2);
}

}  // namespace kedge
