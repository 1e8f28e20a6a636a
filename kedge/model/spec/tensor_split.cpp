#include "kedge/model/spec/tensor_split.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using Rows = ParameterPart::Rows;

// A rank's parts of one layer's fused matrices, in rows of the outputs and columns of the inputs.
struct LayerCut {
  std::vector<Rows> qkv, gate_up;
  Share heads, mlp;  // columns of `out` and of `down`
};

// How many ranks share a key-value head.
int sharers_of(const ModelConfig& whole, const TensorSplit& split) {
  return whole.num_kv_heads >= split.size ? 1 : split.size / static_cast<int>(whole.num_kv_heads);
}

LayerCut cut_layer(const ModelConfig& whole, const TensorSplit& split) {
  const ModelConfig own = split_config(whole, split);
  const int64_t q = own.q_size(), kv = own.kv_size(), mlp = own.mlp_size;
  const int sharers = sharers_of(whole, split);
  const int64_t first_q = split.rank * q, first_kv = split.rank / sharers * kv, first_mlp = split.rank * mlp;
  LayerCut cut;
  cut.qkv = {
      {first_q, 0, q, 1}, {whole.q_size() + first_kv, q, kv, sharers}, {whole.q_size() + whole.kv_size() + first_kv, q + kv, kv, sharers}};
  cut.gate_up = {{first_mlp, 0, mlp, 1}};
  if (whole.gated) cut.gate_up.push_back({whole.mlp_size + first_mlp, mlp, mlp, 1});
  cut.heads = {first_q, first_q + q};
  cut.mlp = {first_mlp, first_mlp + mlp};
  return cut;
}

int64_t columns_of(const ParameterSpec& spec) { return spec.shape.size() < 2 ? 1 : spec.shape[1]; }

// All of a parameter, as every rank has it.
ParameterPart everything(const ParameterSpec& spec, const TensorSplit& split, bool has_summands = false) {
  return {{{0, 0, spec.shape[0], split.size}}, {0, columns_of(spec)}, has_summands};
}

ParameterPart some_rows(const ParameterSpec& spec, std::vector<Rows> rows) {
  const bool is_shared = std::any_of(rows.begin(), rows.end(), [](const Rows& range) { return range.sharers > 1; });
  return {std::move(rows), {0, columns_of(spec)}, is_shared};
}

ParameterPart some_columns(const ParameterSpec& spec, Share columns) { return {{{0, 0, spec.shape[0], 1}}, columns, false}; }

}  // namespace

int64_t ParameterPart::num_rows() const {
  int64_t count = 0;
  for (const Rows& range : rows) count += range.count;
  return count;
}

void check_tensor_split(const ModelConfig& whole, int size, std::string_view where) {
  check(whole.num_heads % size == 0, where, ": ", size, " ranks do not divide the model's ", whole.num_heads, " attention heads");
  check(whole.num_kv_heads % size == 0 || size % whole.num_kv_heads == 0, where, ": ", size, " ranks neither divide the model's ",
        whole.num_kv_heads, " key-value heads nor are a multiple of them");
  check(whole.mlp_size % size == 0, where, ": ", size, " ranks do not divide the model's MLP of ", whole.mlp_size);
  check(whole.vocab_size >= size, where, ": ", size, " ranks for a vocabulary of ", whole.vocab_size);
}

ModelConfig split_config(const ModelConfig& whole, const TensorSplit& split) {
  if (!split.is_split()) return whole;
  ModelConfig own = whole;
  own.num_heads = whole.num_heads / split.size;
  own.num_kv_heads = std::max<int64_t>(1, whole.num_kv_heads / split.size);
  own.mlp_size = whole.mlp_size / split.size;
  const Share ids = vocabulary_share(whole, split);
  own.vocab_size = ids.end - ids.begin;
  return own;
}

Share vocabulary_share(const ModelConfig& whole, const TensorSplit& split) { return share_of(whole.vocab_size, split.rank, split.size); }

std::vector<ParameterPart> parameter_parts(const ModelConfig& whole, const HeadOptions& head, const TensorSplit& split) {
  const ModelParameters places = make_parameters(whole, head);
  std::vector<ParameterPart> parts;
  for (const ParameterSpec& spec : places.specs) parts.push_back(everything(spec, split));
  if (!split.is_split()) return parts;
  const auto set = [&](int place, auto&& part_of) {
    if (place >= 0) parts[static_cast<size_t>(place)] = part_of(places.specs[static_cast<size_t>(place)]);
  };
  const Share ids = vocabulary_share(whole, split);
  const auto of_vocabulary = [&](const ParameterSpec& spec) { return some_rows(spec, {{ids.begin, 0, ids.end - ids.begin, 1}}); };
  set(places.embedding, of_vocabulary);
  set(places.head, of_vocabulary);
  // Of norms between layers each rank has what its own tokens add to the gradients.
  const auto set_norm = [&](std::initializer_list<int> weights) {
    for (const int place : weights) set(place, [&](const ParameterSpec& spec) { return everything(spec, split, split.divides_tokens); });
  };
  set_norm({places.norm, places.norm_bias});
  const LayerCut cut = cut_layer(whole, split);
  for (const LayerParameters& layer : places.layers) {
    set_norm({layer.norm1, layer.norm1_bias, layer.norm2, layer.norm2_bias});
    for (const int place : {layer.qkv, layer.qkv_bias}) set(place, [&](const ParameterSpec& spec) { return some_rows(spec, cut.qkv); });
    for (const int place : {layer.gate_up, layer.gate_up_bias})
      set(place, [&](const ParameterSpec& spec) { return some_rows(spec, cut.gate_up); });
    set(layer.out, [&](const ParameterSpec& spec) { return some_columns(spec, cut.heads); });
    set(layer.down, [&](const ParameterSpec& spec) { return some_columns(spec, cut.mlp); });
    // Each rank has the norms' gradients of its own heads.
    for (const int place : {layer.q_norm, layer.k_norm})
      set(place, [&](const ParameterSpec& spec) { return everything(spec, split, true); });
  }
  return parts;
}

std::vector<ParameterPart> adapter_parts(const ModelConfig& whole, const HeadOptions& head, const std::vector<LinearSlice>& slices,
                                         const std::vector<ParameterSpec>& specs, const TensorSplit& split) {
  std::vector<ParameterPart> parts;
  for (const ParameterSpec& spec : specs) parts.push_back(everything(spec, split));
  if (!split.is_split()) return parts;
  const std::vector<ParameterPart> network = parameter_parts(whole, head, split);
  for (size_t i = 0; i < slices.size(); ++i) {
    const LinearSlice& slice = slices[i];
    const ParameterPart& base = network[static_cast<size_t>(slice.parameter)];
    ParameterPart &a = parts[2 * i], &b = parts[2 * i + 1];
    if (base.columns.end - base.columns.begin < slice.in_size) {
      // The layer's inputs are cut: B A x is a summand of the output, and A x of what B's gradient is made from.
      a = some_columns(specs[2 * i], base.columns);
      b.has_summands = true;
      continue;
    }
    // Its outputs are: every rank has that summand of A's gradient which comes from its own ones.
    a.has_summands = true;
    std::vector<Rows> rows;
    int64_t own = 0;
    for (const Rows& range : base.rows) {
      const int64_t first = std::max(range.whole, slice.row), last = std::min(range.whole + range.count, slice.row + slice.rows);
      if (first >= last) continue;
      rows.push_back({first - slice.row, own, last - first, range.sharers});
      own += last - first;
    }
    b = some_rows(specs[2 * i + 1], std::move(rows));
  }
  return parts;
}

std::vector<ParameterSpec> split_specs(const std::vector<ParameterSpec>& whole, const std::vector<ParameterPart>& parts) {
  std::vector<ParameterSpec> specs = whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    specs[i].shape[0] = parts[i].num_rows();
    if (specs[i].shape.size() > 1) specs[i].shape[1] = parts[i].columns.end - parts[i].columns.begin;
  }
  return specs;
}

}  // namespace kedge
