#include "kedge/reward/rank_rows.h"

#include <algorithm>
#include <cstring>

#include "kedge/core/error.h"
#include "kedge/dist/partition.h"

namespace kedge {

// Their number, their lengths, then their ids, in the machine's own order of bytes.
std::string rows_to_bytes(std::span<const TokenIds> rows) {
  std::string bytes;
  const auto add = [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); };
  const auto add_number = [&](size_t number) { add(&number, sizeof number); };
  add_number(rows.size());
  for (const TokenIds& row : rows) add_number(row.size());
  for (const TokenIds& row : rows) add(row.data(), row.size() * sizeof(TokenId));
  return bytes;
}

std::vector<TokenIds> read_rows(std::string_view bytes) {
  const auto take = [&](void* to, size_t size) {
    ensure(size <= bytes.size(), "rows from another rank that end early");
    std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  size_t count = 0;
  take(&count, sizeof count);
  ensure(count <= bytes.size() / sizeof count, "rows from another rank that end early");
  std::vector<size_t> sizes(count);
  take(sizes.data(), count * sizeof count);
  std::vector<TokenIds> rows;
  for (const size_t size : sizes) {
    ensure(size <= bytes.size() / sizeof(TokenId), "rows from another rank that end early");
    take(rows.emplace_back(size).data(), size * sizeof(TokenId));
  }
  return rows;
}

Tensor compute_shared(const Group& group, std::span<const TokenIds> rows, RowResult kind,
                      const std::function<Tensor(std::span<const TokenIds> rows)>& compute) {
  if (group.size() == 1) return compute(rows);
  std::vector<int64_t> sizes, begins = {0};  // begins: of a row's results
  for (const TokenIds& row : rows) {
    sizes.push_back(std::ssize(row));
    begins.push_back(begins.back() + (kind == RowResult::of_token ? sizes.back() : 1));
  }
  std::vector<TokenIds> own;
  for (const int64_t place : share_by_size(sizes, group.rank(), group.size())) own.push_back(rows[static_cast<size_t>(place)]);
  const Tensor gathered = group.all_gather_rows(compute(own)), ordered = at::empty_like(gathered);
  ensure(gathered.size(0) == begins.back(), "ranks computed ", gathered.size(0), " results of ", begins.back());
  const int64_t width = gathered.numel() / std::max<int64_t>(1, gathered.size(0));
  const auto* from = gathered.const_data_ptr<float>();
  auto* to = ordered.mutable_data_ptr<float>();
  for (int rank = 0; rank < group.size(); ++rank)
    for (const int64_t place : share_by_size(sizes, rank, group.size())) {
      const int64_t begin = begins[static_cast<size_t>(place)] * width, end = begins[static_cast<size_t>(place) + 1] * width;
      std::copy_n(from, end - begin, to + begin);
      from += end - begin;
    }
  return ordered;
}

}  // namespace kedge
