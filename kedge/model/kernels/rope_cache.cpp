#include "kedge/model/kernels/rope_cache.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

RotaryTable::RotaryTable(const ModelConfig& config, at::Device device)
    : rope_(config.rope), num_heads_(config.num_heads + config.num_kv_heads), head_dim_(config.head_dim), device_(device) {}

Tensor RotaryTable::angles(int64_t num_positions, int64_t length) const {
  const std::vector<float> frequencies = inverse_frequencies(rope_, length);
  const auto half = static_cast<int64_t>(frequencies.size());
  Tensor angles = at::empty({num_positions, half}, at::kFloat);
  auto* out = angles.mutable_data_ptr<float>();
  for (int64_t position = 0; position < num_positions; ++position)
    for (const float frequency : frequencies) *out++ = static_cast<float>(position) * frequency;
  return angles;
}

Rotation RotaryTable::table(int64_t length) {
  if (!cos_.defined() || cos_.size(0) < length) {
    int64_t size = 256;
    while (size < length) size *= 2;
    const Tensor turned = angles(size, 0);
    cos_ = (turned.cos() * rope_.attention_factor).to(device_);
    sin_ = (turned.sin() * rope_.attention_factor).to(device_);
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
  const auto factor = rope_.attention_factor;
  if (rope_.type != RopeType::dynamic) return rotation;
  // Rows longer than the model's original length have their own angles.
  ensure(!batch.shares_prompts() || batch.max_length <= rope_.max_positions, "a prompt whose angles differ by answer");
  int64_t start = 0;
  for (const int64_t length : batch.lengths) {
    if (length > rope_.max_positions) {
      const Tensor turned = angles(length, length);
      rotation.cos.narrow(0, start, length).copy_(turned.cos() * factor);
      rotation.sin.narrow(0, start, length).copy_(turned.sin() * factor);
    }
    start += length;
  }
  return rotation;
}

}  // namespace kedge
