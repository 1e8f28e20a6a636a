#include "kedge/engine/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kedge/core/logarithm.h"
#include "kedge/core/simd.h"
#include "kedge/core/vector_sums.h"
#include "kedge/core/vectors.h"

namespace kedge {
namespace {

using cpu::kLanes;

constexpr float kNever = -std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();

// The lanes of cpu::sum_of, as vectors.
using Vector = cpu::VectorTypes<KEDGE_VECTOR_BYTES>::Floats;
using Mask = cpu::VectorTypes<KEDGE_VECTOR_BYTES>::Integers;
constexpr int64_t kWidth = KEDGE_VECTOR_BYTES / 4, kVectors = kLanes / kWidth;

// The largest logit; NaN if one is NaN or plus infinity.
KEDGE_VECTOR_CLONES float largest(const float* logits, int64_t n) {
  Vector most[kVectors];
  Mask are_logits[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) most[v] = Vector{} + kNever, are_logits[v] = ~Mask{};
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vector x = *reinterpret_cast<const Vector*>(logits + i + v * kWidth);
      most[v] = cpu::larger<KEDGE_VECTOR_BYTES>(x, most[v]);
      are_logits[v] &= x <= kMost;
    }
  for (int64_t v = 1; v < kVectors; ++v) {
    most[0] = cpu::larger<KEDGE_VECTOR_BYTES>(most[v], most[0]);
    are_logits[0] &= are_logits[v];
  }
  float result = most[0][0];
  bool is_row = true;
  for (int64_t lane = 0; lane < kWidth; ++lane) {
    result = std::max(result, most[0][lane]);
    is_row = is_row && are_logits[0][lane] != 0;
  }
  for (int64_t i = whole; i < n; ++i) {
    result = std::max(result, logits[i]);
    is_row = is_row && logits[i] <= kMost;
  }
  return is_row ? result : std::numeric_limits<float>::quiet_NaN();
}

// How a logit becomes a weight. Raw and divided ones, e^(logit - most) and e^(logit / factor - most), have the bits of the powers in
// training's log-probs; scaled ones, 2^((logit - most) * factor) with log2(e) in the factor, are cheaper.
enum class PowerKind { raw, divided, scaled };
struct Power {
  float most = 0, factor = 1;
  PowerKind kind = PowerKind::raw;

  static Power raw(float most) { return {most, 1, PowerKind::raw}; }
  static Power divided(float most, float temperature) { return {most / temperature, temperature, PowerKind::divided}; }
  static Power scaled(float most, double temperature) {
    return {most, static_cast<float>(std::min(std::numbers::log2e / temperature, static_cast<double>(kMost))), PowerKind::scaled};
  }
};

template <PowerKind Kind>
[[gnu::always_inline]] inline void to_weights(const float* logits, const Power& power, Vector (&weights)[kVectors]) {
  for (int64_t v = 0; v < kVectors; ++v) {
    weights[v] = *reinterpret_cast<const Vector*>(logits + v * kWidth);
    if constexpr (Kind == PowerKind::divided) weights[v] /= power.factor;
    weights[v] -= power.most;
  }
  if constexpr (Kind == PowerKind::scaled) {
    for (int64_t v = 0; v < kVectors; ++v) weights[v] *= power.factor;
    cpu::to_exp2<KEDGE_VECTOR_BYTES>(weights);
  } else {
    cpu::to_exp<KEDGE_VECTOR_BYTES>(weights);
  }
}

// As many as fill the lanes, of which only the first `count` are there.
template <PowerKind Kind>
[[gnu::always_inline]] inline void to_last_weights(const float* logits, int64_t count, const Power& power, Vector (&weights)[kVectors]) {
  float filled[kLanes];
  std::fill(std::copy_n(logits, count, filled), filled + kLanes, kNever);
  to_weights<Kind>(filled, power, weights);
}

// In the order of cpu::total_of.
[[gnu::always_inline]] inline float total_of(const Vector (&lanes)[kVectors]) {
  Vector sums[kVectors];
  std::copy_n(lanes, kVectors, sums);
  for (int64_t width = kVectors / 2; width > 0; width /= 2)
    for (int64_t v = 0; v < width; ++v) sums[v] += sums[v + width];
  Vector& last = sums[0];
  for (int64_t width = kWidth / 2; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i) last[i] += last[i + width];
  return last[0];
}

constexpr int64_t kBlock = 8 * kLanes;

// sums[b] = the sum of all weights up to the end of block b. The last one of raw or divided weights has the bits of cpu::sum_of.
template <PowerKind Kind>
[[gnu::always_inline]] inline void add_up(const float* logits, int64_t n, const Power& power, float* sums) {
  Vector lanes[kVectors] = {}, weights[kVectors];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      to_weights<Kind>(logits + i, power, weights);
      for (int64_t v = 0; v < kVectors; ++v) lanes[v] += weights[v];
    }
    if (i < end) {
      to_last_weights<Kind>(logits + i, end - i, power, weights);
      for (int64_t v = 0; v < kVectors; ++v) lanes[v] += weights[v];
    }
    *sums++ = total_of(lanes);
  }
}

KEDGE_VECTOR_CLONES void running_sums(const float* logits, int64_t n, const Power& power, float* sums) {
  switch (power.kind) {
    case PowerKind::raw:
      return add_up<PowerKind::raw>(logits, n, power, sums);
    case PowerKind::divided:
      return add_up<PowerKind::divided>(logits, n, power, sums);
    case PowerKind::scaled:
      return add_up<PowerKind::scaled>(logits, n, power, sums);
  }
}

// One by one, of a block or less; `weights` has room for a block. Not for divided ones, which are only summed.
KEDGE_VECTOR_CLONES void block_weights(const float* logits, int64_t n, const Power& power, float* weights) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Vector lanes[kVectors];
    power.kind == PowerKind::raw ? to_last_weights<PowerKind::raw>(logits + i, std::min(kLanes, n - i), power, lanes)
                                 : to_last_weights<PowerKind::scaled>(logits + i, std::min(kLanes, n - i), power, lanes);
    for (int64_t v = 0; v < kVectors; ++v) *reinterpret_cast<Vector*>(weights + i + v * kWidth) = lanes[v];
  }
}

// A row's weights summed up; `sums` belongs to the scratch.
struct Weights {
  std::span<const float> logits, sums;
  Power power;

  [[nodiscard]] float total() const { return sums.back(); }
};

Weights weights_of(std::span<const float> logits, const Power& power, SamplingScratch& scratch) {
  const auto n = std::ssize(logits);
  scratch.sums.resize(static_cast<size_t>((n + kBlock - 1) / kBlock));
  running_sums(logits.data(), n, power, scratch.sums.data());
  return {logits, scratch.sums, power};
}

// The token in whose share of [0, 1), in the order of ids, `uniform` falls: first its block, then the token itself.
int32_t pick(const Weights& weights, double uniform) {
  const double wanted = uniform * static_cast<double>(weights.total());
  // Sums never decrease, and a block that adds nothing has no token to sample. Rounding may leave a sliver after the last one.
  auto block = std::upper_bound(weights.sums.begin(), weights.sums.end(), wanted);
  if (block == weights.sums.end()) block = std::lower_bound(weights.sums.begin(), weights.sums.end(), weights.total());
  const int64_t begin = (block - weights.sums.begin()) * kBlock, count = std::min(kBlock, std::ssize(weights.logits) - begin);
  float single[kBlock];
  block_weights(weights.logits.data() + begin, count, weights.power, single);
  double sum = block == weights.sums.begin() ? 0.0 : static_cast<double>(*(block - 1));
  int64_t last = 0;
  for (int64_t i = 0; i < count && sum <= wanted; ++i) {
    if (single[i] == 0) continue;
    sum += static_cast<double>(single[i]);
    last = i;
  }
  return static_cast<int32_t>(begin + last);
}

// Every id once, however often it was used.
void penalise(std::span<float> logits, std::span<const int32_t> used, double penalty, std::vector<bool>& is_used) {
  if (penalty == 1) return;
  is_used.resize(std::max(is_used.size(), logits.size()));
  const auto is_known = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); };
  for (const int32_t id : used)
    if (is_known(id) && !is_used[static_cast<size_t>(id)]) {
      is_used[static_cast<size_t>(id)] = true;
      logits[static_cast<size_t>(id)] /= static_cast<float>(penalty);
    }
  for (const int32_t id : used)
    if (is_known(id)) is_used[static_cast<size_t>(id)] = false;
}

void keep_top_k(std::span<float> logits, int64_t k, std::vector<float>& order) {
  if (k <= 0 || static_cast<size_t>(k) >= logits.size()) return;
  order.assign(logits.begin(), logits.end());
  std::nth_element(order.begin(), order.begin() + k - 1, order.end(), std::greater<>());
  const float least = order[static_cast<size_t>(k - 1)];
  for (float& logit : logits) logit = logit < least ? kNever : logit;
}

// Everything after the first token with which the probabilities, from the largest on, exceed p.
void keep_top_p(std::span<float> logits, double p, float most, SamplingScratch& scratch) {
  if (p <= 0 || p >= 1) return;
  const Weights weights = weights_of(logits, Power::raw(most), scratch);
  const auto total = static_cast<double>(weights.total());
  // All tokens below this share together have less than 1 - p, so the others exceed p without them; half of it, because sums are rounded.
  const float least = most + static_cast<float>(std::log(total * (1 - p) / static_cast<double>(logits.size()) / 2));
  scratch.likely.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= least) scratch.likely.push_back(static_cast<int32_t>(i));
  const auto logit_of = [&](int32_t id) { return scratch.logits[static_cast<size_t>(id)]; };
  std::sort(scratch.likely.begin(), scratch.likely.end(),
            [&](int32_t a, int32_t b) { return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b; });
  scratch.order.clear();
  for (const int32_t id : scratch.likely) scratch.order.push_back(logit_of(id));
  const int64_t num_likely = std::ssize(scratch.order);
  double sum = 0;
  int64_t num_kept = 0;
  float single[kBlock];
  while (num_kept < num_likely && sum <= p * total) {
    if (num_kept % kBlock == 0)
      block_weights(scratch.order.data() + num_kept, std::min(kBlock, num_likely - num_kept), Power::raw(most), single);
    sum += static_cast<double>(single[num_kept++ % kBlock]);
  }
  std::fill(logits.begin(), logits.end(), kNever);
  for (size_t i = 0; i < static_cast<size_t>(num_kept); ++i) logits[static_cast<size_t>(scratch.likely[i])] = scratch.order[i];
}

// A copy of the logits without the tokens that may not be sampled.
std::span<float> allowed_logits(std::span<const float> logits, const SamplingRow& row, SamplingScratch& scratch) {
  scratch.logits.assign(logits.begin(), logits.end());
  for (const int32_t id : row.not_yet)
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) scratch.logits[static_cast<size_t>(id)] = kNever;
  return scratch.logits;
}

// `logits` is scratch.logits.
int32_t draw_changed(std::span<float> logits, const SamplingConfig& config, const SamplingRow& row, SamplingScratch& scratch) {
  for (float& logit : logits) logit /= static_cast<float>(config.temperature);
  penalise(logits, row.used, config.repetition_penalty, scratch.is_used);
  keep_top_k(logits, config.top_k, scratch.order);
  const float most = largest(logits.data(), std::ssize(logits));
  keep_top_p(logits, config.top_p, most, scratch);
  return pick(weights_of(logits, Power::raw(most), scratch), row.uniform);
}

bool changes_more_than_temperature(const SamplingConfig& config) {
  return config.repetition_penalty != 1 || config.top_k > 0 || (config.top_p > 0 && config.top_p < 1);
}

}  // namespace

std::optional<Drawn> draw_token(std::span<const float> logits, const SamplingConfig& config, const SamplingRow& row,
                                SamplingScratch& scratch) {
  const float raw_most = largest(logits.data(), std::ssize(logits));
  if (std::isnan(raw_most)) return std::nullopt;
  const size_t vocab_size = row.vocab_size > 0 ? std::min(logits.size(), static_cast<size_t>(row.vocab_size)) : logits.size();
  const bool is_masked = !row.not_yet.empty(), is_changed = !config.use_greedy && changes_more_than_temperature(config);
  std::span<const float> allowed = logits.first(vocab_size);
  if (is_masked || is_changed) allowed = allowed_logits(allowed, row, scratch);
  const float most = is_masked || vocab_size < logits.size() ? largest(allowed.data(), std::ssize(allowed)) : raw_most;
  if (most == kNever) return std::nullopt;

  int32_t token = 0;
  const auto temperature = static_cast<float>(row.logprob_temperature);
  bool has_sum = false;  // the one that the log-prob needs
  if (config.use_greedy) {
    token = static_cast<int32_t>(std::find(allowed.begin(), allowed.end(), most) - allowed.begin());  // the first of equals
  } else if (is_changed) {
    token = draw_changed(scratch.logits, config, row, scratch);
  } else {
    const bool is_raw = config.temperature == 1 && !is_masked && vocab_size == logits.size();
    const Power power = is_raw ? Power::raw(most) : Power::scaled(most, config.temperature);
    has_sum = is_raw && temperature == 1.0F;
    token = pick(weights_of(allowed, power, scratch), row.uniform);
  }
  const Power power = temperature == 1.0F ? Power::raw(raw_most) : Power::divided(raw_most, temperature);
  const float sum = has_sum ? scratch.sums.back() : weights_of(logits, power, scratch).total();
  return Drawn{token, logits[static_cast<size_t>(token)] / temperature - (power.most + natural_log(sum))};
}

}  // namespace kedge
