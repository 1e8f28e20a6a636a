#pragma once
// Rows of token ids from the inputs of a call to a reward model or a critic: texts, conversations, or ids with their lengths. What cannot
// be read is a RequestError that names the row.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/model/spec/model_config.h"
#include "kedge/net/signature.h"
#include "kedge/text/chat/chat_template.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

struct ServedRowsOptions {
  int64_t max_length = 4096;              // encoder_seq_length: longer texts are truncated, wider ids rejected
  bool add_bos = false, add_eos = false;  // around texts
};

struct ReadRows {
  std::vector<TokenIds> rows;
  int64_t width = 0;  // of the call's ids; of texts, max_length
};

// Safe to use from several threads.
class ServedRows {
 public:
  // With the tokenizer and chat template of the model's folder, if they exist.
  ServedRows(const Path& folder, const ModelConfig& network, const ServedRowsOptions& options);

  [[nodiscard]] std::vector<TensorSpec> inputs() const;
  // What a client needs to check that ids mean the same here.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> parameters() const;

  // `inputs` agree with inputs(). Texts count before conversations, and those before ids.
  [[nodiscard]] ReadRows read(std::span<const WireTensor> inputs) const;

 private:
  [[nodiscard]] ReadRows read_texts(const WireTensor& texts, bool are_messages) const;
  [[nodiscard]] ReadRows read_ids(const WireTensor& tokens, const WireTensor& lengths) const;
  [[nodiscard]] TokenIds encode(const std::string& text, bool is_rendered) const;

  std::unique_ptr<Tokenizer> tokenizer_;  // null: only ids can be read
  std::optional<ChatTemplate> chat_;
  ServedRowsOptions options_;
  int64_t vocab_size_, max_positions_;
};

// Sizes that all batched models have.
inline constexpr int64_t kServedBatchSize = 9999999;

}  // namespace kedge
