#pragma once
// Rotary positions: the rotation angle of every pair of channels per position, with the known scalings. Independent of tensors.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/core/json.h"

namespace kedge {

enum class RopeType { plain, linear, dynamic, yarn, llama3 };

struct RopeConfig {
  RopeType type = RopeType::plain;
  double theta = 10000;
  int64_t dim = 0;            // rotated channels of a head, the first ones; even
  int64_t max_positions = 0;  // max_position_embeddings; `dynamic` stretches beyond it
  double factor = 1;
  int64_t original_positions = 0;  // llama3, yarn: the length before stretching
  double low_freq_factor = 1, high_freq_factor = 4;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 1;  // cosines and sines are multiplied by it
  bool truncate = true;

  friend bool operator==(const RopeConfig&, const RopeConfig&) = default;
};

// From a config.json, in the spelling of transformers 4 (rope_theta, rope_scaling) or 5 (rope_parameters). What is not supported is
// a UsageError that opens with `origin`. `head_dim` and `max_positions` are the model's.
[[nodiscard]] RopeConfig parse_rope(const Json& config, int64_t head_dim, int64_t max_positions, const std::string& origin);

// Radians per position, one number for each pair of channels, in a sequence of `length` tokens (only `dynamic` uses it).
// Computed in single precision as transformers does, so that long positions get the same angles.
[[nodiscard]] std::vector<float> inverse_frequencies(const RopeConfig& rope, int64_t length);

}  // namespace kedge
