#include "kedge/model/bucket_memory.h"

#include <c10/core/StorageImpl.h>

namespace kedge {
namespace {

void set_memory(const Tensor& row, size_t bytes) {
  c10::StorageImpl& storage = *row.storage().unsafeGetStorageImpl();
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
}

}  // namespace

Tensor row_without_memory(int64_t size, const at::TensorOptions& options) {
  Tensor row = at::empty({size}, options);
  give_memory_back(row);
  return row;
}

bool has_memory(const Tensor& row) { return row.numel() == 0 || row.storage().nbytes() > 0; }

void take_memory(const Tensor& row) {
  if (!has_memory(row)) set_memory(row, row.nbytes());
}

void give_memory_back(const Tensor& row) {
  if (row.storage().nbytes() > 0) set_memory(row, 0);
}

}  // namespace kedge
