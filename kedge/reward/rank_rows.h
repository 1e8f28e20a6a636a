#pragma once
// Rows that the ranks of a server compute together. Independent of what is computed.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// As they are sent to other ranks.
[[nodiscard]] std::string rows_to_bytes(std::span<const TokenIds> rows);
[[nodiscard]] std::vector<TokenIds> read_rows(std::string_view bytes);

enum class RowResult { of_row, of_token };  // a result has one entry for each row, or for each of its tokens

// Every rank computes some of the rows, about as many tokens as the others, maybe none; all get the results of all rows in the rows' order,
// [entries, ...]. `compute` gives those of its rows, fp32 and contiguous in host memory. Every rank has the same rows. Collective.
[[nodiscard]] Tensor compute_shared(const Group& group, std::span<const TokenIds> rows, RowResult kind,
                                    const std::function<Tensor(std::span<const TokenIds> rows)>& compute);

}  // namespace kedge
