#include "kedge/model/decoder.h"

#include <utility>

#include <ATen/core/ivalue.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// Undefined where the family has no such parameter.
Tensor value_at(const Parameters& parameters, int place) { return place < 0 ? Tensor() : parameters.value(place); }
Tensor gradient_at(const Parameters& parameters, int place) { return place < 0 ? Tensor() : parameters.gradient(place); }

}  // namespace

// What a recorded pass keeps for its backward.
struct Decoder::Tape : torch::CustomClassHolder {
  Tape(const Decoder& decoder_of, const PackedBatch& batch_of, const PassOptions& options_of)
      : decoder(decoder_of), batch(batch_of), options(options_of) {}

  [[nodiscard]] PassContext context() const {
    return {batch, rotation.cos.defined() ? &rotation : nullptr, options.dropout_seed, decoder.slices_of(batch.ids.size(0))};
  }

  const Decoder& decoder;
  PackedBatch batch;
  PassOptions options;
  bool adapted = false;  // were adapters switched on?
  Rotation rotation;
  std::vector<LayerState> layers;
  Tensor last;  // the last layer's output, of the tokens that this rank has
  Normed norm;
};

class Decoder::Pass : public torch::autograd::Function<Pass> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& /*anchor*/, const c10::intrusive_ptr<Tape>& tape) {
    context->saved_data["tape"] = c10::IValue::make_capsule(tape);
    return tape->decoder.forward(*tape, true);
  }
  static torch::autograd::variable_list backward(AutogradContext* context, const torch::autograd::variable_list& gradients) {
    const auto capsule = context->saved_data["tape"].toCapsule();
    auto& tape = static_cast<Tape&>(*capsule);
    ensure(tape.last.defined(), "backward runs once per pass");
    tape.decoder.backward(tape, gradients[0].contiguous());
    return {Tensor(), Tensor()};
  }
};

Decoder::Decoder(const ModelConfig& config, const ModelParameters& places, const Parameters& parameters, const Adapters* adapters)
    : config_(config),
      places_(places),
      parameters_(parameters),
      adapters_(adapters),
      rotary_(config, parameters.options().device),
      anchor_(at::zeros({1}, at::TensorOptions(parameters.options().device)).requires_grad_(true)) {}

bool Decoder::trains() const {
  return parameters_.options().trainable || (adapters_ != nullptr && adapters_->enabled() && adapters_->parameters().options().trainable);
}

NormWeights Decoder::norm_of(int weight, int bias, NormKind kind) const {
  return {value_at(parameters_, weight),
          value_at(parameters_, bias),
          gradient_at(parameters_, weight),
          gradient_at(parameters_, bias),
          kind,
          config_.norm_eps};
}

NormWeights Decoder::last_norm() const { return norm_of(places_.norm, places_.norm_bias, config_.norm); }

LayerView Decoder::layer(size_t index) const {
  const LayerParameters& at = places_.layers[index];
  const auto linear_of = [&](int weight, int bias) {
    return LinearView{value_at(parameters_, weight), value_at(parameters_, bias), gradient_at(parameters_, weight),
                      gradient_at(parameters_, bias), adapters_ == nullptr ? nullptr : &adapters_->on(weight)};
  };
  return {norm_of(at.norm1, at.norm1_bias, config_.norm),
          norm_of(at.norm2, at.norm2_bias, config_.norm),
          norm_of(at.q_norm, -1, NormKind::rms),
          norm_of(at.k_norm, -1, NormKind::rms),
          linear_of(at.qkv, at.qkv_bias),
          linear_of(at.out, at.out_bias),
          linear_of(at.gate_up, at.gate_up_bias),
          linear_of(at.down, at.down_bias),
          {config_.num_heads, config_.num_kv_heads, config_.head_dim, config_.windows[index]},
          {config_.activation, config_.gated},
          parameters_.is_split() ? &parameters_.options().tensor : nullptr};
}

Decoder::OwnTokens Decoder::own_tokens(const Tensor& ids) const {
  const ParameterPart::Rows& own = parameters_.part(places_.embedding).rows[0];
  const Tensor are_own = ids.ge(own.whole).logical_and_(ids.lt(own.whole + own.count));
  return {(ids - own.whole).mul_(are_own), are_own};
}

TokenSlices Decoder::slices_of(int64_t num_tokens) const {
  if (!parameters_.is_split()) return {};
  return {&parameters_.options().tensor, parameters_.options().divides_tokens, num_tokens};
}

Tensor Decoder::embed(const Tensor& ids, const Tensor& positions) const {
  return embed(ids, positions, parameters_.is_split() ? TokenSlices{&parameters_.options().tensor} : TokenSlices{});
}

Tensor Decoder::embed(const Tensor& ids, const Tensor& positions, const TokenSlices& tokens) const {
  const Tensor& table = parameters_.value(places_.embedding);
  Tensor x;
  if (tokens.is_split()) {
    const OwnTokens own = own_tokens(ids);
    x = tokens.sum(table.index_select(0, own.rows).mul_(own.are_own.unsqueeze(1)));
  } else {
    x = table.index_select(0, ids);
  }
  if (places_.positions >= 0) x.add_(parameters_.value(places_.positions).index_select(0, tokens.own(positions)));
  return x;
}

Tensor Decoder::forward(Tape& tape, bool keep) const {
  if (!config_.learned_positions) tape.rotation = rotary_.rotation(tape.batch);
  const PassContext context = tape.context();
  check(places_.positions < 0 || tape.batch.max_length <= config_.max_positions, "a row of ", tape.batch.max_length, " tokens, but this ",
        name_of(config_.family), " model has only ", config_.max_positions, " positions");
  Tensor x = embed(tape.batch.ids, tape.batch.positions, context.tokens);
  if (keep) tape.layers.resize(static_cast<size_t>(config_.num_layers));
  for (size_t i = 0; i < static_cast<size_t>(config_.num_layers); ++i) {
    if (keep && tape.options.checkpoint) tape.layers[i].x = x;
    parameters_.open_layer(i);
    x = layer_forward(layer(i), context, x, keep && !tape.options.checkpoint ? &tape.layers[i] : nullptr);
    parameters_.close_layer(i);
  }
  parameters_.end_forward();
  Normed normed = norm(x, last_norm());
  Tensor out = context.tokens.all(std::exchange(normed.out, Tensor()));
  if (keep) tape.last = std::move(x), tape.norm = std::move(normed);
  return out;
}

void Decoder::backward(Tape& tape, const Tensor& dhidden) const {
  ensure(tape.adapted == (adapters_ != nullptr && adapters_->enabled()), "adapters were switched between a pass and its backward");
  parameters_.begin_backward();
  const PassContext context = tape.context();
  Tensor dx = norm_backward(context.tokens.own(dhidden), tape.last, tape.norm, last_norm(), {});
  tape.last.reset(), tape.norm = {};
  const bool wants_embedding = parameters_.options().trainable;
  for (size_t i = tape.layers.size(); i-- > 0;) {
    parameters_.begin_layer_backward(i);
    const LayerView view = layer(i);
    LayerState& state = tape.layers[i];
    if (tape.options.checkpoint) static_cast<void>(layer_forward(view, context, Tensor(state.x), &state));
    dx = layer_backward(view, context, dx, state, i > 0 || wants_embedding);
    parameters_.end_layer_backward(i);
  }
  if (wants_embedding) {
    dx = context.tokens.all(dx);
    parameters_.open_embedding_gradient();
    if (parameters_.is_split()) {
      const OwnTokens own = own_tokens(tape.batch.ids);
      add_rows_(parameters_.gradient(places_.embedding), own.rows, dx * own.are_own.unsqueeze(1));
    } else {
      add_rows_(parameters_.gradient(places_.embedding), tape.batch.ids, dx);
    }
    if (places_.positions >= 0) add_rows_(parameters_.gradient(places_.positions), tape.batch.positions, dx);
  }
  parameters_.end_backward();
  if (adapters_ != nullptr) adapters_->parameters().end_backward();
}

Tensor Decoder::hidden(const PackedBatch& batch, const PassOptions& options) const {
  auto tape = c10::make_intrusive<Tape>(*this, batch, options);
  tape->adapted = adapters_ != nullptr && adapters_->enabled();
  if (at::GradMode::is_enabled() && trains()) return Pass::apply(anchor_, tape);
  const NoGrad no_grad;
  return forward(*tape, false);
}

}  // namespace kedge
