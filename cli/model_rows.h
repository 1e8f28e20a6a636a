#pragma once
// JSON lines to rows of token ids that a model can read, and rows to batches: what the tools that ask a model have in common.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/data/chat_renderer.h"
#include "kedge/data/tokenizer.h"
#include "kedge/model/model.h"

#include "cli/device_flags.h"

namespace kedge::cli {

struct ModelRowFlags {
  std::string model;
  std::optional<std::string> adapter, text;
  std::string input = "-";
  bool add_special = false;
  int64_t batch_tokens = 8192;
  DeviceFlags device;

  void fields(auto&& field) {
    field("model", model, "a model folder, or Org/Name in the Hugging Face cache", required());
    field("adapter", adapter, "a folder with a LoRA adapter for it, in PEFT's layout");
    field("text", text, "read this text instead of lines");
    field("input", input, "JSON lines; - is standard input");
    field("add_special", add_special, "put the tokenizer's own special tokens around texts");
    field("batch_tokens", batch_tokens, "tokens computed together; a longer row goes alone", at_least(1));
    device.fields(field);
  }
};

// The model of the flags with its adapter, to compute with and not to train.
[[nodiscard]] std::unique_ptr<Model> load_for_reading(const ModelRowFlags& flags, const Path& folder, HeadKind head);

// Ids from what lines hold. Every error opens with `where`. The tokenizer is loaded when the first text comes, so that ids need none.
// Not thread-safe; `config` must outlive it.
class RowReader {
 public:
  RowReader(Path folder, const ModelConfig& config, bool add_special);

  [[nodiscard]] TokenIds from_text(const std::string& text, const std::string& where);
  [[nodiscard]] TokenIds from_ids(const Json& list, const std::string& where);
  // By the folder's chat template, which brings its special tokens; `line` may hold "tools" and "documents".
  [[nodiscard]] TokenIds from_messages(const Json& messages, const Json& line, const std::string& where);

 private:
  [[nodiscard]] TokenIds encode(const std::string& text, bool add_special, const std::string& where);
  // A row that the network cannot read is a UsageError; the first that is longer than it was made for is warned of.
  [[nodiscard]] TokenIds checked(TokenIds ids, const std::string& where);

  Path folder_;
  const ModelConfig& config_;
  bool add_special_;
  bool warned_ = false;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatRenderer chat_;
};

// Of equal length; `lines` are what the rows came from.
struct RowBatch {
  std::vector<TokenIds> rows;
  std::vector<Json> lines;
};

// Rows in, batches of at most so many tokens out, in order; how far and how fast goes to standard error.
class RowBatches {
 public:
  RowBatches(int64_t max_tokens, std::function<void(RowBatch batch)> use) : max_tokens_(max_tokens), use_(std::move(use)) {}
  ~RowBatches();
  RowBatches(const RowBatches&) = delete;
  RowBatches& operator=(const RowBatches&) = delete;

  void add(TokenIds row, Json line);
  void finish();  // what is left

  // "12 rows, 345 tokens, 6789 tokens/s"
  [[nodiscard]] std::string summary() const;

 private:
  void run();

  int64_t max_tokens_;
  std::function<void(RowBatch)> use_;
  RowBatch batch_;
  int64_t batch_tokens_ = 0;
  int64_t num_rows_ = 0, num_tokens_ = 0;
  double seconds_ = 0;  // of computing
  std::chrono::steady_clock::time_point last_said_ = std::chrono::steady_clock::now();
};

}  // namespace kedge::cli
