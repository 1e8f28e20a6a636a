#pragma once
// Conversations for SFT: NeMo-Aligner's {"system", "mask", "conversations"} rows, and rows of messages for a chat template
// (without "mask"), with loss on what the trained roles say.
#include <vector>

#include "kedge/data/files/rows.h"
#include "kedge/data/sets/length_filter.h"
#include "kedge/data/sets/messages.h"
#include "kedge/data/sets/sft_config.h"
#include "kedge/text/chat/chat_prompt.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

// A row {"system", "mask", "type", "conversations": [{"from", "value", "label"}, ...]}.
[[nodiscard]] Conversation read_conversation(const Row& row);

// Rendered text cut at the borders of what is trained on.
[[nodiscard]] std::vector<TextPiece> span_pieces(const RenderedChat& chat);

class ChatReader {
 public:
  ChatReader(const SftDataConfig& config, ChatRenderer chat);
  // Either kind of row; one with nothing to train on is a RowError.
  [[nodiscard]] std::vector<TextPiece> pieces(const Row& row) const;

 private:
  ChatPromptTokens tokens_;
  RoleNames roles_;
  ChatRenderer chat_;
};

// Safe to use from several threads.
class ChatDataset {
 public:
  // Encodes every row once, so that a broken one is refused at load. Rows of more than `max_seq_length` tokens are cut on the
  // right.
  ChatDataset(Rows rows, TextEncoder encoder, const SftDataConfig& config, int64_t max_seq_length, ChatRenderer chat = {});

  [[nodiscard]] int64_t size() const { return rows_.size(); }
  [[nodiscard]] MaskedTokens get(int64_t index) const;
  [[nodiscard]] const Truncations& truncations() const { return truncations_; }

 private:
  [[nodiscard]] MaskedTokens encode(int64_t row) const;

  Rows rows_;
  PieceEncoder encoder_;
  ChatReader reader_;
  int64_t max_seq_length_;
  Truncations truncations_;
};

}  // namespace kedge
