#include "kedge/model/spec/rope_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::array<std::pair<std::string_view, RopeType>, 5> kTypes = {{{"default", RopeType::plain},
                                                                          {"linear", RopeType::linear},
                                                                          {"dynamic", RopeType::dynamic},
                                                                          {"yarn", RopeType::yarn},
                                                                          {"llama3", RopeType::llama3}}};

const Json* find_set(const Json& json, std::string_view key) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// `prefix` stands before the key in errors: "config.json: " or "config.json: rope_scaling.".
double number_or(const Json& json, const char* key, double otherwise, const std::string& prefix) {
  const Json* value = find_set(json, key);
  return value == nullptr ? otherwise : value->as_number(prefix + key);
}

RopeType parse_type(const Json& scaling, const std::string& where) {
  const Json* name = find_set(scaling, "rope_type");
  if (name == nullptr) name = find_set(scaling, "type");
  if (name == nullptr) return RopeType::plain;
  const std::string& text = name->as_text(where + ".rope_type");
  for (const auto& [known, type] : kTypes)
    if (text == known) return type;
  throw UsageError(str(where, ".rope_type: \"", text, "\" is not supported; known are default, linear, dynamic, yarn and llama3"));
}

double yarn_scale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

double yarn_attention_factor(const Json& scaling, double factor, const std::string& where) {
  if (const Json* given = find_set(scaling, "attention_factor")) return given->as_number(where + ".attention_factor");
  const double mscale = number_or(scaling, "mscale", 0, where + "."), all_dim = number_or(scaling, "mscale_all_dim", 0, where + ".");
  return mscale != 0 && all_dim != 0 ? yarn_scale(factor, mscale) / yarn_scale(factor, all_dim) : yarn_scale(factor, 1);
}

// theta^(2i/dim): how many radians' worth of positions pair i needs for one.
std::vector<float> plain_periods(double theta, int64_t dim) {
  std::vector<float> periods;
  for (int64_t i = 0; i < dim; i += 2)
    periods.push_back(std::pow(static_cast<float>(theta), static_cast<float>(i) / static_cast<float>(dim)));
  return periods;
}

float llama3_frequency(float frequency, const RopeConfig& rope) {
  const auto length = static_cast<double>(rope.original_positions);
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < length / rope.high_freq_factor) return frequency;
  if (wavelength > length / rope.low_freq_factor) return frequency / static_cast<float>(rope.factor);
  const auto smooth = static_cast<float>((length / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor));
  return (1 - smooth) * frequency / static_cast<float>(rope.factor) + smooth * frequency;
}

// Fast pairs keep their angle, slow ones are stretched by the factor, those between are mixed.
std::vector<float> yarn_frequencies(const RopeConfig& rope) {
  const auto dim = static_cast<double>(rope.dim);
  const auto pair_that_turns = [&](double times) {
    return dim * std::log(static_cast<double>(rope.original_positions) / (times * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
  };
  double low = pair_that_turns(rope.beta_fast), high = pair_that_turns(rope.beta_slow);
  if (rope.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  std::vector<float> frequencies = plain_periods(rope.theta, rope.dim);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
    const float kept = 1 - ramp;
    const float period = frequencies[i];
    frequencies[i] = 1 / (static_cast<float>(rope.factor) * period) * (1 - kept) + 1 / period * kept;
  }
  return frequencies;
}

}  // namespace

RopeConfig parse_rope(const Json& config, int64_t head_dim, int64_t max_positions, const std::string& origin) {
  // As in transformers, a rope_scaling that says anything counts alone.
  const Json *parameters = find_set(config, "rope_parameters"), *scaling = find_set(config, "rope_scaling");
  const bool is_new = parameters != nullptr && (scaling == nullptr || *scaling == Json(Json::Object{}));
  const std::string where = str(origin, is_new ? ": rope_parameters" : ": rope_scaling");
  if (is_new) scaling = parameters;
  static const Json kNone = Json(Json::Object{});
  if (scaling == nullptr) scaling = &kNone;
  for (const auto& [key, value] : scaling->as_object(where))
    check(!value.is_object(), where, ".", key, ": rotary settings for each kind of layer are not supported");

  const std::string inside = where + ".", outside = origin + ": ";
  RopeConfig rope;
  rope.type = parse_type(*scaling, where);
  rope.max_positions = max_positions;
  rope.theta = number_or(*scaling, "rope_theta", number_or(config, "rope_theta", 10000, outside), inside);
  check(rope.theta > 1, where, ": rope_theta is ", rope.theta, ", expected more than 1");
  const double share = number_or(*scaling, "partial_rotary_factor", number_or(config, "partial_rotary_factor", 1, outside), inside);
  check(share == 1, outside, "partial_rotary_factor ", share, " is not supported: transformers rotates all channels of this family");
  check(head_dim > 0 && head_dim % 2 == 0, where, ": ", head_dim, " channels of a head would be rotated; expected an even number of them");
  rope.dim = head_dim;
  if (rope.type == RopeType::plain) return rope;

  rope.factor = scaling->at("factor", where).as_number(where + ".factor");
  check(rope.factor >= 1, where, ".factor: ", rope.factor, " is below 1");
  const double given =
      number_or(config, "original_max_position_embeddings",
                number_or(*scaling, "original_max_position_embeddings", static_cast<double>(max_positions), inside), outside);
  rope.original_positions = static_cast<int64_t>(given);
  check(rope.original_positions > 0, where, ".original_max_position_embeddings: ", rope.original_positions, " is not a length");
  if (rope.type == RopeType::llama3) {
    rope.low_freq_factor = scaling->at("low_freq_factor", where).as_number(where + ".low_freq_factor");
    rope.high_freq_factor = scaling->at("high_freq_factor", where).as_number(where + ".high_freq_factor");
    check(rope.low_freq_factor > 0 && rope.high_freq_factor > rope.low_freq_factor, where,
          ": expected 0 < low_freq_factor < high_freq_factor, found ", rope.low_freq_factor, " and ", rope.high_freq_factor);
  }
  if (rope.type == RopeType::yarn) {
    if (const double fast = number_or(*scaling, "beta_fast", 0, inside); fast != 0) rope.beta_fast = fast;
    if (const double slow = number_or(*scaling, "beta_slow", 0, inside); slow != 0) rope.beta_slow = slow;
    if (const Json* truncate = find_set(*scaling, "truncate")) rope.truncate = truncate->as_bool(where + ".truncate");
    rope.attention_factor = yarn_attention_factor(*scaling, rope.factor, where);
  }
  return rope;
}

std::vector<float> inverse_frequencies(const RopeConfig& rope, int64_t length) {
  if (rope.type == RopeType::yarn) return yarn_frequencies(rope);
  double theta = rope.theta;
  if (rope.type == RopeType::dynamic && length > rope.max_positions) {
    const double stretch = rope.factor * static_cast<double>(length) / static_cast<double>(rope.max_positions) - (rope.factor - 1);
    theta *= std::pow(stretch, static_cast<double>(rope.dim) / static_cast<double>(rope.dim - 2));
  }
  std::vector<float> frequencies = plain_periods(theta, rope.dim);
  for (float& frequency : frequencies) {
    frequency = 1 / frequency;
    if (rope.type == RopeType::linear) frequency /= static_cast<float>(rope.factor);
    if (rope.type == RopeType::llama3) frequency = llama3_frequency(frequency, rope);
  }
  return frequencies;
}

}  // namespace kedge
