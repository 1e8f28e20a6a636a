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

// Where a row of a tensor's elements begins in the complete one, and the size of that.
struct StatePart {
  int64_t begin = 0, size = 0;
};

// A copy in host memory: training may continue while another thread writes it. Without `copies`, tensors stay where they are, and must not
// change until they are written. Each rank that holds a part of the state writes its own file next to the others'.
class StateSnapshot {
 public:
  explicit StateSnapshot(bool copies = true) : copies_(copies) {}
  [[nodiscard]] bool copies() const { return copies_; }
  [[nodiscard]] bool has_tensors() const { return !tensors_.empty(); }

  // fp32 or bf16; names are unique.
  void add(const std::string& name, const Tensor& tensor);
  void take(const std::string& name, Tensor tensor);  // not copied: in host memory, and not changed any more
  // A row of a tensor, the rest of which is added by other calls or other ranks. Which parts there are is up to them. Returns what is
  // written of it: the copy, or the row itself.
  Tensor add_part(const std::string& name, const StatePart& part, const Tensor& row);
  void set(std::string_view key, Json value) { numbers_.set(key, std::move(value)); }

  // state.safetensors and state.json.
  void write(const Path& folder) const;
  // The tensors alone, of a rank above 0: state.RANK.safetensors.
  void write_tensors(const Path& folder, int rank) const;

 private:
  [[nodiscard]] Tensor host_copy(const Tensor& tensor) const;

  bool copies_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
  Json numbers_ = Json(Json::Object{});
};

// Errors name the file and what is missing or has another shape or type.
class StateFiles {
 public:
  explicit StateFiles(const Path& folder);

  void read(const std::string& name, const Tensor& to) const;
  // The elements from `begin` on of a tensor that has `size` in all, whichever ranks wrote it.
  void read_part(const std::string& name, const StatePart& part, const Tensor& to) const;
  [[nodiscard]] const Json& at(std::string_view key) const { return numbers_.at(key, where_); }
  [[nodiscard]] const Json* find(std::string_view key) const { return numbers_.find(key); }  // null: a state from before there was one
  // bit_hash() of a tensor's bytes.
  [[nodiscard]] std::string hash(const std::string& name) const;

 private:
  // A tensor in a file, or a row of it.
  struct Piece {
    const SafetensorsFile* file;
    const TensorEntry* entry;
    StatePart part;  // size -1: the complete tensor
  };
  [[nodiscard]] std::vector<Piece> pieces_of(const std::string& name) const;  // in order, at least one
  void check_complete(const std::string& name, const std::vector<Piece>& pieces, int64_t size) const;

  std::vector<SafetensorsFile> files_;  // of rank 0, 1, ...
  std::string where_;                   // of the numbers
  Json numbers_;
};

}  // namespace kedge
