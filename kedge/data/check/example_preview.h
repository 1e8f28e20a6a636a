#pragma once
// One example of any kind of data as tokens and as its prompt, without a data set. For data_report.h.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kedge/data/check/data_report.h"
#include "kedge/data/files/rows.h"

namespace kedge {

struct RowView {
  std::vector<std::pair<std::string, MaskedTokens>> sides;  // not shortened
  std::string prompt;                                       // the prompt's text; used for overlap and repeats
  bool crosses = false;                      // a token reaches from the prompt of a pair into an answer, which kedge dpo refuses
  [[nodiscard]] int64_t num_tokens() const;  // of the longest side
};

// Reads one example; throws RowError. Called from several threads.
using RowViewer = std::function<RowView(const Rows& rows, int64_t example)>;
[[nodiscard]] RowViewer make_viewer(const DataCheckOptions& options);

}  // namespace kedge
