#include "kedge/data/sets/prompt_dataset.h"

#include "kedge/core/log.h"

namespace kedge {

PromptDataset::PromptDataset(Rows rows, TextEncoder encoder, const DataConfig& config, int64_t max_tokens, ChatRenderer chat)
    : rows_(std::move(rows)),
      encoder_(std::move(encoder)),
      config_(config),
      max_tokens_(max_tokens),
      reader_(config, std::move(chat)),
      kept_(rows_.size()),
      replacements_(str("prompts of at most ", max_tokens, " tokens")) {
  kept_.filter([&](int64_t row) { return read(row).has_value() || !config_.drop_over_long; });
  check(size() > 0, rows_.name(), ": no prompt has at most ", max_tokens_, " tokens");
  if (num_dropped() > 0) log_warn_of_job(rows_.name(), ": left out ", num_dropped(), " prompts of more than ", max_tokens_, " tokens");
}

std::optional<PromptExample> PromptDataset::read(int64_t row_number) const {
  Row row = rows_.row(row_number);
  PromptExample example{row_number, row_number, reader_.text(row), {}, {}};
  example.ids = encode_text(encoder_, ends_of(config_), example.text);
  if (example.ids.empty()) row.fail(RowFault::empty_prompt, "a prompt without tokens");
  encoder_.check_ids(example.ids, [&] { return row.where(); });
  if (static_cast<int64_t>(example.ids.size()) > max_tokens_) return std::nullopt;
  example.row = row.take_json();
  return example;
}

PromptExample PromptDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": prompt ", index, " of ", size());
  auto example = replacements_.find<PromptExample>(
      index, size(), [&](int64_t i) { return read(kept_[i]); }, [&](int64_t i) { return rows_.where(kept_[i]); });
  example.id = index;
  return example;
}

}  // namespace kedge
