#include "kedge/model/bucket_memory.h"

#include <ATen/ops/set.h>
#include <c10/core/StorageImpl.h>

namespace kedge {
namespace {

c10::StorageImpl& storage_of(const Tensor& row) { return *row.storage().unsafeGetStorageImpl(); }

}  // namespace

// Its storage has the size that views of it need, and nothing behind it.
Tensor row_without_memory(int64_t size, const at::TensorOptions& options) {
  Tensor row = at::empty({0}, options);
  const auto bytes = static_cast<int64_t>(static_cast<size_t>(size) * row.element_size());
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, row.device()), row.storage().allocator(), true);
  row.set_(storage, 0, {size}, {1});
  return row;
}

bool has_memory(const Tensor& row) { return row.numel() == 0 || storage_of(row).data() != nullptr; }

void take_memory(const Tensor& row) {
  if (!has_memory(row)) storage_of(row).set_data_ptr_noswap(storage_of(row).allocator()->allocate(row.nbytes()));
}

void give_memory_back(const Tensor& row) { storage_of(row).set_data_ptr_noswap(c10::DataPtr(nullptr, row.device())); }

}  // namespace kedge
