#pragma once
// NeMo-Aligner's chat format: turns between special tokens, with the rules of which text is trained on. Pure text; independent of
// tokenizers and files.
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

struct ChatPromptTokens {
  std::string system_turn_start = std::string(1, '\x00');
  std::string turn_start = "\x11";
  std::string label_start = "\x12";
  std::string end_of_turn = "\n";
  std::string end_of_name = "\n";

  void fields(auto&& field) {
    field("system_turn_start", system_turn_start, "opens the system prompt");
    field("turn_start", turn_start, "opens a turn; trained on as the end of the preceding response");
    field("label_start", label_start, "opens a turn's label");
    field("end_of_turn", end_of_turn, "closes a turn");
    field("end_of_name", end_of_name, "closes a role's name and a label");
  }
};

struct Conversation {
  enum class Type { plain, value_to_text, text_to_value };
  struct Turn {
    std::string from, value;
    std::optional<std::string> label;
  };
  std::string system;
  std::vector<std::string> masked_roles;  // not trained on
  Type type = Type::plain;
  std::vector<Turn> turns;
};

// The conversation as text, with what is trained on.
[[nodiscard]] std::vector<TextPiece> chat_pieces(const Conversation& conversation, const ChatPromptTokens& tokens);

}  // namespace kedge
