#include "kedge/model/kernels/rope_cache.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"

namespace kedge {

RotaryTable::RotaryTable(const ModelConfig& config, at::Device device)
    : rope_(config.rope), num_heads_(config.num_heads + config.num_kv_heads), head_dim_(config.head_dim), device_(device) {}

// In fp64, rounded once: the fp32 functions of different CPUs differ in the last bit.
RotaryTable::Turns RotaryTable::turns(int64_t num_positions, int64_t length) const {
  const std::vector<float> frequencies = inverse_frequencies(rope_, length);
  const auto half = static_cast<int64_t>(frequencies.size());
  const auto factor = static_cast<float>(rope_.attention_factor);
  Turns turns{at::empty({num_positions, half}, at::kFloat), at::empty({num_positions, half}, at::kFloat)};
  auto *cos = turns.cos.mutable_data_ptr<float>(), *sin = turns.sin.mutable_data_ptr<float>();
  at::parallel_for(0, num_positions, 256, [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position)
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<float>(position) * frequencies[static_cast<size_t>(i)];
        cos[position * half + i] = static_cast<float>(std::cos(angle)) * factor;
        sin[position * half + i] = static_cast<float>(std::sin(angle)) * factor;
      }
  });
  return turns;
}

Rotation RotaryTable::table(int64_t length) {
  if (!cos_.defined() || cos_.size(0) < length) {
    int64_t size = 256;
    while (size < length) size *= 2;
    const Turns made = turns(size, 0);
    cos_ = made.cos.to(device_);
    sin_ = made.sin.to(device_);
  }
  return {cos_, sin_, num_heads_, head_dim_, rope_.dim};
}

Rotation RotaryTable::rotation(const Tensor& positions, int64_t length) {
  Rotation rotation = table(length);
  rotation.cos = rotation.cos.index_select(0, positions);
  rotation.sin = rotation.sin.index_select(0, positions);
  return rotation;
}

Rotation RotaryTable::rotation(const PackedBatch& batch) {
  Rotation rotation = this->rotation(batch.positions, batch.max_length);
  if (rope_.type != RopeType::dynamic) return rotation;
  // Rows longer than the model's original length have their own angles.
  ensure(!batch.shares_prompts() || batch.max_length <= rope_.max_positions, "a prompt whose angles differ by answer");
  int64_t start = 0;
  for (const int64_t length : batch.lengths) {
    if (length > rope_.max_positions) {
      const Turns own = turns(length, length);
      rotation.cos.narrow(0, start, length).copy_(own.cos);
      rotation.sin.narrow(0, start, length).copy_(own.sin);
    }
    start += length;
  }
  return rotation;
}

}  // namespace kedge
