#include "kedge/model/rotary.h"

#include <algorithm>

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

Rotation RotaryTable::rotation(const PackedBatch& batch) {
  const auto factor = rope_.attention_factor;
  if (!cos_.defined() || cos_.size(0) < batch.max_length) {
    int64_t size = 256;
    while (size < batch.max_length) size *= 2;
    const Tensor turned = angles(size, 0);
    cos_ = (turned.cos() * factor).to(device_);
    sin_ = (turned.sin() * factor).to(device_);
  }
  Rotation rotation{cos_.index_select(0, batch.positions), sin_.index_select(0, batch.positions), num_heads_, head_dim_, rope_.dim};
  if (rope_.type != RopeType::dynamic) return rotation;
  // Rows longer than the model was made for turn by angles of their own.
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
