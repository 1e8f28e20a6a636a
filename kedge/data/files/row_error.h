#pragma once
// What can be wrong with one row of a data file. Datasets throw it; data_report.h counts it by kind.
#include <array>
#include <string>
#include <string_view>

#include "kedge/core/error.h"

namespace kedge {

enum class RowFault {
  empty_line,
  not_utf8,
  not_json,
  not_an_object,
  missing_field,
  wrong_type,
  bad_value,
  empty_prompt,
  different_prompts
};

inline constexpr std::array<std::string_view, 9> kRowFaultNames = {"empty line",    "not UTF-8",     "not valid JSON",
                                                                   "not an object", "missing field", "wrong type",
                                                                   "wrong value",   "empty prompt",  "different prompts"};

[[nodiscard]] constexpr std::string_view name_of(RowFault fault) { return kRowFaultNames.at(static_cast<size_t>(fault)); }

// The text opens with file and line.
class RowError : public UsageError {
 public:
  RowError(RowFault fault, const std::string& text) : UsageError(text), fault_(fault) {}
  [[nodiscard]] RowFault fault() const { return fault_; }

 private:
  RowFault fault_;
};

}  // namespace kedge
