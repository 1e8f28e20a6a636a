#include "kedge/data/sets/length_filter.h"

#include <algorithm>

#include "kedge/data/files/rows.h"

namespace kedge {

void KeptRows::filter(const std::function<bool(int64_t)>& keep) {
  const int64_t before = size();
  std::vector<uint8_t> kept(static_cast<size_t>(before));
  for_each_example(before, [&](int64_t i) { kept[static_cast<size_t>(i)] = keep((*this)[i]) ? 1 : 0; });
  if (std::find(kept.begin(), kept.end(), 0) == kept.end()) return;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < before; ++i)
    if (kept[static_cast<size_t>(i)] != 0) rows.push_back((*this)[i]);
  rows_ = std::move(rows);
}

}  // namespace kedge
