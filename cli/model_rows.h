#pragma once
// JSON lines to rows of token ids that a model can read, and rows to batches: shared by the commands that run a model.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/model/model.h"
#include "kedge/text/chat/chat_renderer.h"
#include "kedge/text/tokenizer/tokenizer.h"

#include "cli/device_flags.h"
#include "cli/text/row_progress.h"

namespace kedge::cli {

struct ModelRowFlags {
  std::string model;
  std::optional<std::string> adapter, text;
  std::string input = "-";
  bool add_special = false;
  DeviceFlags device;

  void fields(auto&& field) {
    field("model", model, "a model folder, or Org/Name in the Hugging Face cache", required());
    field("adapter", adapter, "folder of a LoRA adapter for the model, in PEFT's layout");
    field("text", text, "use this text instead of reading lines");
    field("input", input, "JSON lines; - is standard input");
    field("add_special", add_special, "add the tokenizer's special tokens to texts");
    device.fields(field);
  }
};

// Of the commands that compute complete rows in batches.
struct BatchedRowFlags : ModelRowFlags {
  int64_t batch_tokens = 8192;

  void fields(auto&& field) {
    ModelRowFlags::fields(field);
    field("batch_tokens", batch_tokens, "maximum tokens per batch; a longer row is computed alone", at_least(1));
  }
};

// The model of the flags with its adapter, for inference.
[[nodiscard]] std::unique_ptr<Model> load_for_reading(const ModelRowFlags& flags, const Path& folder, HeadKind head);

struct RowRules {
  bool add_special = false;
  // Rows are to be continued: messages end with the opening of the assistant's turn, and the engine limits their length.
  bool is_prompt = false;
};

// Ids from what lines hold. Every error opens with `where`. The tokenizer is loaded with the first text, so that ids need none.
// Not thread-safe; `config` must outlive it.
class RowReader {
 public:
  RowReader(Path folder, const ModelConfig& config, const RowRules& rules);

  [[nodiscard]] TokenIds from_text(const std::string& text, const std::string& where);
  [[nodiscard]] TokenIds from_ids(const Json& list, const std::string& where);
  // By the folder's chat template, which brings its special tokens; `line` may hold "tools" and "documents".
  [[nodiscard]] TokenIds from_messages(const Json& messages, const Json& line, const std::string& where);

  [[nodiscard]] const Tokenizer& tokenizer();

 private:
  [[nodiscard]] TokenIds encode(const std::string& text, bool add_special, const std::string& where);
  // A row that the network cannot read is a UsageError; the first that is longer than the model's context is logged as a warning.
  [[nodiscard]] TokenIds checked(TokenIds ids, const std::string& where);

  Path folder_;
  const ModelConfig& config_;
  RowRules rules_;
  bool warned_ = false;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatRenderer chat_;
};

// Of equal length; `lines` are what the rows came from.
struct RowBatch {
  std::vector<TokenIds> rows;
  std::vector<Json> lines;
};

// Rows in, batches of limited size out, in order; progress goes to standard error.
class RowBatches {
 public:
  RowBatches(int64_t max_tokens, std::function<void(RowBatch batch)> use) : max_tokens_(max_tokens), use_(std::move(use)) {}

  void add(TokenIds row, Json line);
  void finish();  // what is left

  [[nodiscard]] std::string summary() const { return progress_.summary(); }

 private:
  void run();

  int64_t max_tokens_;
  std::function<void(RowBatch)> use_;
  RowBatch batch_;
  int64_t batch_tokens_ = 0;
  RowProgress progress_;
};

}  // namespace kedge::cli
