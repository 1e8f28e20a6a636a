#include "cli/model_rows.h"

#include <chrono>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/files/peft_files.h"
#include "kedge/text/chat/model_chat.h"

namespace kedge::cli {

std::unique_ptr<Model> load_for_reading(const ModelRowFlags& flags, const Path& folder, HeadKind head) {
  LoadOptions load{.storage = flags.device.storage(), .head = head};
  if (flags.adapter && head == HeadKind::score) start_head_of_adapter(load, *flags.adapter);
  auto model = load_model(folder, load);
  if (flags.adapter) load_adapter(*model, *flags.adapter, false);
  return model;
}

RowReader::RowReader(Path folder, const ModelConfig& config, const RowRules& rules)
    : folder_(std::move(folder)), config_(config), rules_(rules), chat_(chat_of_model(folder_)) {}

TokenIds RowReader::from_text(const std::string& text, const std::string& where) { return encode(text, rules_.add_special, where); }

TokenIds RowReader::from_ids(const Json& list, const std::string& where) {
  TokenIds ids;
  for (const Json& item : list.as_array(where)) {
    const int64_t id = item.as_integer(where);
    check(id >= 0 && id < config_.vocab_size, where, ": id ", id, " is outside the model's vocabulary of ", config_.vocab_size);
    ids.push_back(static_cast<TokenId>(id));
  }
  return checked(std::move(ids), where);
}

TokenIds RowReader::from_messages(const Json& messages, const Json& line, const std::string& where) {
  check(!messages.as_array(where).empty(), where, ": no messages");
  std::string text;
  try {
    text = chat_({.messages = messages, .row = line, .add_generation_prompt = rules_.is_prompt}).text;
  } catch (const UsageError& error) {
    throw UsageError(str(where, ": ", error.what()));
  }
  return encode(text, false, where);
}

const Tokenizer& RowReader::tokenizer() {
  if (!tokenizer_) tokenizer_ = load_tokenizer(folder_);
  return *tokenizer_;
}

TokenIds RowReader::encode(const std::string& text, bool add_special, const std::string& where) {
  return checked(tokenizer().encode(text, {.add_special = add_special}), where);
}

TokenIds RowReader::checked(TokenIds ids, const std::string& where) {
  check(!ids.empty(), where, ": no tokens");
  for (const TokenId id : ids)
    check(id < config_.vocab_size, where, ": the tokenizer's id ", id, " is outside the model's vocabulary of ", config_.vocab_size);
  if (rules_.is_prompt) return ids;
  const bool is_long = static_cast<int64_t>(ids.size()) > config_.max_positions;
  check(!is_long || !config_.learned_positions, where, ": ", ids.size(), " tokens, but the model has only ", config_.max_positions,
        " positions");
  if (is_long && !warned_) {
    log_warn(where, ": ", ids.size(), " tokens; the model is designed for ", config_.max_positions,
             " at most. Further such rows are not reported");
    warned_ = true;
  }
  return ids;
}

void RowBatches::add(TokenIds row, Json line) {
  const auto length = static_cast<int64_t>(row.size());
  if (!batch_.rows.empty() && batch_tokens_ + length > max_tokens_) run();
  batch_tokens_ += length;
  batch_.rows.push_back(std::move(row));
  batch_.lines.push_back(std::move(line));
}

void RowBatches::finish() {
  if (!batch_.rows.empty()) run();
}

void RowBatches::run() {
  const auto begin = std::chrono::steady_clock::now();
  const auto num_rows = static_cast<int64_t>(batch_.rows.size());
  const int64_t num_tokens = std::exchange(batch_tokens_, 0);
  use_(std::exchange(batch_, {}));
  progress_.add(num_rows, num_tokens, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace kedge::cli
