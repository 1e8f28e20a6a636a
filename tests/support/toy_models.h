#pragma once
// Models for tests of servers and clients: one that doubles rows of numbers and may be batched, one that counts its calls and runs alone.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kedge/net/request_error.h"
#include "kedge/net/served_model.h"

namespace kedge::testing {

// Takes `x` INT64 [rows, width], gives `y` INT64 of twice that. `before` is called ahead of every batch with its rows.
inline ServedModel doubling_model(std::function<void(int64_t rows)> before = {}, std::vector<int64_t> preferred = {},
                                  int64_t delay_us = 0) {
  ServedModel model;
  model.signature = {.name = "double",
                     .max_batch_size = 1000,
                     .inputs = {{"x", WireType::int64, {-1}}},
                     .outputs = {{"y", WireType::int64, {-1}}},
                     .preferred_batch_sizes = std::move(preferred),
                     .max_queue_delay_us = delay_us};
  model.run = [before = std::move(before)](const std::vector<WireTensor>& inputs, const Json&) {
    if (before) before(inputs[0].shape[0]);
    std::vector<int64_t> twice;
    for (const int64_t value : int64_values(inputs[0])) {
      if (value == 666) throw std::runtime_error("cannot double 666");
      twice.push_back(2 * value);
    }
    return ServedResult{{int64_tensor("y", inputs[0].shape, twice)}, Json(Json::Object{})};
  };
  return model;
}

// Adds `by` INT64 [1] to a sum, once for each request_key, and gives the `sum`.
class Counter {
 public:
  [[nodiscard]] ServedModel model(std::function<void()> before = {}) {
    ServedModel served;
    served.signature = {.name = "count", .inputs = {{"by", WireType::int64, {1}}}, .outputs = {{"sum", WireType::int64, {1}}}};
    served.is_kept = true;
    served.run = [this, before = std::move(before)](const std::vector<WireTensor>& inputs, const Json& parameters) {
      if (before) before();
      const Json* key = parameters.find("request_key");
      if (key == nullptr || keys_.insert(key->as_text("request_key")).second) sum_ += int64_values(inputs[0])[0];
      const int64_t sum = sum_;
      return ServedResult{{int64_tensor("sum", {1}, std::vector<int64_t>{sum})}, Json(Json::Object{})};
    };
    return served;
  }
  [[nodiscard]] int64_t sum() const { return sum_; }

 private:
  std::atomic<int64_t> sum_ = 0;
  std::set<std::string> keys_;
};

inline InferRequest numbers(std::vector<int64_t> values, int64_t rows = 1) {
  const auto width = static_cast<int64_t>(values.size()) / rows;
  InferRequest request;
  request.inputs = {int64_tensor("x", {rows, width}, values)};
  return request;
}

inline InferRequest count_by(int64_t by, const std::string& key = {}) {
  InferRequest request;
  request.inputs = {int64_tensor("by", {1}, std::vector<int64_t>{by})};
  if (!key.empty()) request.parameters.set("request_key", key);
  return request;
}

}  // namespace kedge::testing
