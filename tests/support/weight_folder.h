#pragma once
// The tensors of a model folder in memory, to be changed and written again.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kedge/model/files/tensor_bytes.h"

namespace kedge::testing {

class WeightFolder {
 public:
  explicit WeightFolder(Path file) : file_(std::move(file)) {
    const SafetensorsFile stored(file_);
    for (const TensorEntry& entry : stored.entries()) {
      Tensor tensor = at::empty(entry.shape, scalar_type(weight_type(entry, "test")));
      read_tensor({stored.bytes(entry), weight_type(entry, "test"), entry.shape}, tensor);
      tensors_.emplace_back(entry.name, tensor);
    }
  }

  [[nodiscard]] bool has(const std::string& name) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& entry) { return entry.first == name; });
  }
  [[nodiscard]] const Tensor& at(const std::string& name) const {
    return std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& entry) { return entry.first == name; })->second;
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const auto& entry) { return entry.first == name; });
  }
  void add(const std::string& name, const Tensor& tensor) { tensors_.emplace_back(name, tensor.contiguous()); }
  void rename(const std::string& from, const std::string& to) {
    const Tensor tensor = at(from);
    remove(from);
    add(to, tensor);
  }

  void write() const {
    std::vector<TensorEntry> entries;
    for (const auto& [name, tensor] : tensors_) entries.push_back({name, weight_type_of(tensor.scalar_type(), name), tensor.sizes().vec()});
    SafetensorsWriter writer(file_, entries);
    for (const auto& [name, tensor] : tensors_)
      write_tensor(tensor, weight_type_of(tensor.scalar_type(), name), [&](std::string_view bytes) { writer.write(bytes); });
    writer.finish();
  }

 private:
  Path file_;
  std::vector<std::pair<std::string, Tensor>> tensors_;
};

}  // namespace kedge::testing
