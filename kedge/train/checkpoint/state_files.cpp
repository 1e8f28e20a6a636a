#include "kedge/train/checkpoint/state_files.h"

#include <algorithm>
#include <array>

#include "kedge/core/autograd.h"
#include "kedge/core/bit_hash.h"
#include "kedge/core/error.h"
#include "kedge/model/files/tensor_bytes.h"

namespace kedge {
namespace {

constexpr std::string_view kTensors = "state.safetensors", kNumbers = "state.json";

}  // namespace

void StateSnapshot::add(const std::string& name, const Tensor& tensor) {
  const NoGrad no_grad;
  tensors_.emplace_back(name, copies_ ? tensor.detach().to(tensor.options().device(at::kCPU), false, true) : tensor.detach());
}

void StateSnapshot::take(const std::string& name, Tensor tensor) { tensors_.emplace_back(name, std::move(tensor)); }

void StateSnapshot::write(const Path& folder) const {
  make_folder(folder);
  // The wider numbers first, so that all are aligned.
  std::vector<const std::pair<std::string, Tensor>*> order;
  for (const auto& named : tensors_) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.element_size() > b->second.element_size(); });
  std::vector<TensorEntry> entries;
  for (const auto* named : order)
    entries.push_back({named->first, weight_type_of(named->second.scalar_type(), named->first), named->second.sizes().vec()});
  SafetensorsWriter writer(folder / kTensors, entries);
  for (size_t i = 0; i < order.size(); ++i)
    write_tensor(order[i]->second, *entries[i].type, [&](std::string_view bytes) { writer.write(bytes); });
  writer.finish();
  write_atomic(folder / kNumbers, numbers_.dump(2) + "\n");
}

StateFiles::StateFiles(const Path& folder)
    : tensors_(folder / kTensors), where_((folder / kNumbers).string()), numbers_(Json::parse(read_text(folder / kNumbers), where_)) {}

void StateFiles::read(const std::string& name, const Tensor& to) const { read_from(name, to.sizes(), 0, to); }

void StateFiles::read_part(const std::string& name, const Part& part, const Tensor& to) const {
  const std::array<int64_t, 1> shape = {part.size};
  read_from(name, shape, part.begin, to);
}

const TensorEntry& StateFiles::entry_of(const std::string& name) const {
  const auto& entries = tensors_.entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const TensorEntry& one) { return one.name == name; });
  check(entry != entries.end(), tensors_.path().string(), ": no ", name);
  return *entry;
}

std::string StateFiles::hash(const std::string& name) const { return bit_hash(tensors_.bytes(entry_of(name))); }

void StateFiles::read_from(const std::string& name, at::IntArrayRef shape, int64_t begin, const Tensor& to) const {
  const NoGrad no_grad;
  const std::string file = tensors_.path().string();
  const TensorEntry* const entry = &entry_of(name);
  check(at::IntArrayRef(entry->shape) == shape, file, ": ", name, " has the shape ", at::IntArrayRef(entry->shape), ", expected ", shape);
  const WeightType type = weight_type(*entry, file), wanted = weight_type_of(to.scalar_type(), name);
  check(type == wanted, file, ": ", name, " is ", name_of(type), ", expected ", name_of(wanted));
  const size_t from = static_cast<size_t>(begin) * bytes_of(type);
  read_tensor({tensors_.bytes(*entry).substr(from, to.nbytes()), type, to.sizes().vec()}, to);
  tensors_.drop(*entry);
}

}  // namespace kedge
