#include "cli/model_rows.h"

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/data/model_chat.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/model_files.h"
#include "kedge/model/peft_files.h"

namespace kedge::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) { return std::chrono::duration<double>(end - begin).count(); }

}  // namespace

std::unique_ptr<Model> load_for_reading(const ModelRowFlags& flags, const Path& folder, HeadKind head) {
  auto model = load_model(folder, {.storage = flags.device.storage(), .head = head});
  if (flags.adapter) load_adapter(*model, *flags.adapter, false);
  return model;
}

RowReader::RowReader(Path folder, const ModelConfig& config, bool add_special)
    : folder_(std::move(folder)), config_(config), add_special_(add_special), chat_(chat_of_model(folder_)) {}

TokenIds RowReader::from_text(const std::string& text, const std::string& where) { return encode(text, add_special_, where); }

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
    text = chat_({.messages = messages, .row = line}).text;
  } catch (const UsageError& error) {
    throw UsageError(str(where, ": ", error.what()));
  }
  return encode(text, false, where);
}

TokenIds RowReader::encode(const std::string& text, bool add_special, const std::string& where) {
  if (!tokenizer_) tokenizer_ = load_tokenizer(folder_);
  return checked(tokenizer_->encode(text, {.add_special = add_special}), where);
}

TokenIds RowReader::checked(TokenIds ids, const std::string& where) {
  check(!ids.empty(), where, ": no tokens");
  for (const TokenId id : ids)
    check(id < config_.vocab_size, where, ": the tokenizer's id ", id, " is outside the model's vocabulary of ", config_.vocab_size);
  const bool is_long = static_cast<int64_t>(ids.size()) > config_.max_positions;
  check(!is_long || !config_.learned_positions, where, ": ", ids.size(), " tokens, but the model has only ", config_.max_positions,
        " positions");
  if (is_long && !warned_) {
    log_warn(where, ": ", ids.size(), " tokens; the model was made for ", config_.max_positions,
             " at most. Further such rows are not named");
    warned_ = true;
  }
  return ids;
}

RowBatches::~RowBatches() { set_status_line(""); }

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
  constexpr double kSayEvery = 30;
  const auto begin = Clock::now();
  num_rows_ += static_cast<int64_t>(batch_.rows.size());
  num_tokens_ += batch_tokens_;
  use_(std::move(batch_));
  batch_ = {};
  batch_tokens_ = 0;
  const auto end = Clock::now();
  seconds_ += seconds_between(begin, end);
  set_status_line(summary());
  if (!log_to_terminal() && seconds_between(last_said_, end) > kSayEvery) {
    log_info(summary());
    last_said_ = end;
  }
}

std::string RowBatches::summary() const {
  std::string text = str(num_rows_, num_rows_ == 1 ? " row, " : " rows, ", num_tokens_, num_tokens_ == 1 ? " token" : " tokens");
  if (seconds_ > 0) text += str(", ", format_number(static_cast<double>(num_tokens_) / seconds_), " tokens/s");
  return text;
}

}  // namespace kedge::cli
