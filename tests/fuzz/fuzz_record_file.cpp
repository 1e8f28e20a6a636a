// Bytes as the record of a step's answers. Only UsageError may come out; what is read is written and read again as the same text, and
// where a resumed run may take the answers, they are those that are looked at.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/rollout/record_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const kedge::RolloutRows rows = kedge::parse_record_rows(text, "f", kedge::RecordParts::all);
    const std::string written = kedge::format_record(kedge::parse_record_header(text, "f"), rows);
    const kedge::RolloutRows again = kedge::parse_record_rows(written, "f", kedge::RecordParts::all);
    if (kedge::format_record(kedge::parse_record_header(written, "f"), again) != written) std::abort();
    const kedge::RolloutRows answers = kedge::parse_record_rows(text, "f", kedge::RecordParts::answers);
    if (answers.size() != rows.size()) std::abort();
    for (size_t i = 0; i < rows.size(); ++i)
      if (answers[i].rollout->ids != rows[i].rollout->ids || answers[i].slot != rows[i].slot) std::abort();
  } catch (const kedge::UsageError&) {
  }
  return 0;
}
