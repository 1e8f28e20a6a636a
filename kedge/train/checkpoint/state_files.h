#pragma once
// The state of a run in addition to its model: named tensors and JSON, copied at a step boundary, written and read back bit-exactly.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/core/tensor.h"
#include "kedge/model/files/safetensors.h"

namespace kedge {

// A copy in host memory: training may continue while another thread writes it. Without `copies`, tensors stay where they are, and must not
// change until they are written.
class StateSnapshot {
 public:
  explicit StateSnapshot(bool copies = true) : copies_(copies) {}
  [[nodiscard]] bool copies() const { return copies_; }

  // fp32 or bf16; names are unique.
  void add(const std::string& name, const Tensor& tensor);
  void take(const std::string& name, Tensor tensor);  // not copied: in host memory, and not changed any more
  void set(std::string_view key, Json value) { numbers_.set(key, std::move(value)); }

  // state.safetensors and state.json.
  void write(const Path& folder) const;

 private:
  bool copies_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
  Json numbers_ = Json(Json::Object{});
};

// Errors name the file and what is missing or has another shape or type.
class StateFiles {
 public:
  explicit StateFiles(const Path& folder);

  void read(const std::string& name, const Tensor& to) const;
  // `to` [rows] from row `begin` on, of a tensor of `size` rows.
  struct Part {
    int64_t begin = 0, size = 0;
  };
  void read_part(const std::string& name, const Part& part, const Tensor& to) const;
  [[nodiscard]] const Json& at(std::string_view key) const { return numbers_.at(key, where_); }
  [[nodiscard]] const Json* find(std::string_view key) const { return numbers_.find(key); }  // null: a state from before there was one
  // bit_hash() of a tensor's bytes in the file.
  [[nodiscard]] std::string hash(const std::string& name) const;

 private:
  [[nodiscard]] const TensorEntry& entry_of(const std::string& name) const;
  // Reads `to` from `begin` elements on of the tensor, which must have that shape.
  void read_from(const std::string& name, at::IntArrayRef shape, int64_t begin, const Tensor& to) const;

  SafetensorsFile tensors_;
  std::string where_;  // of the numbers
  Json numbers_;
};

}  // namespace kedge
