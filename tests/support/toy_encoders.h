#pragma once
// Encoders small enough to work out by hand, and short forms for what they give.
#include <algorithm>
#include <string>
#include <string_view>

#include "kedge/text/chat/chat_renderer.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge::testing {

inline constexpr TokenId kToyBos = 256, kToyEos = 257;

// A token a byte, so that a token is seen in the text.
inline TextEncoder byte_encoder() {
  return {.encode =
              [](std::string_view text) {
                TokenIds ids;
                for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
                return ids;
              },
          .decode =
              [](std::span<const TokenId> ids) {
                std::string text;
                for (const TokenId id : ids) text += id == kToyBos ? "<s>" : id == kToyEos ? "</s>" : std::string(1, static_cast<char>(id));
                return text;
              },
          .bos = kToyBos,
          .eos = kToyEos};
}

// The same for a model without z and what comes behind it, also EOS.
inline TextEncoder encoder_without_z() {
  TextEncoder encoder = byte_encoder();
  encoder.vocab_size = 'z';
  return encoder;
}

// The same with a blank (shown as _) before every text, as SentencePiece does; decoding takes the first off again.
inline TextEncoder blank_encoder() {
  TextEncoder encoder = byte_encoder();
  encoder.encode = [bytes = byte_encoder()](std::string_view text) {
    std::string marked = "_" + std::string(text);
    std::replace(marked.begin(), marked.end(), ' ', '_');
    return bytes.encode(marked);
  };
  encoder.decode = [bytes = byte_encoder()](std::span<const TokenId> ids) {
    std::string text = bytes.decode(ids);
    std::replace(text.begin(), text.end(), '_', ' ');
    return text.starts_with(' ') ? text.substr(1) : text;
  };
  return encoder;
}

// Bytes, but "ab" is one token, 300: text that is cut between the two encodes otherwise.
inline TextEncoder merging_encoder() {
  TextEncoder encoder = byte_encoder();
  encoder.encode = [](std::string_view text) {
    TokenIds ids;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool merged = text.substr(i, 2) == "ab";
      ids.push_back(merged ? 300 : static_cast<unsigned char>(text[i]));
      if (merged) ++i;
    }
    return ids;
  };
  return encoder;
}

// Ids as text; BOS is ^, EOS is $, SEP (id 0) is 0.
inline std::string shown(std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) text += id == kToyBos ? '^' : id == kToyEos ? '$' : id == 0 ? '0' : static_cast<char>(id);
  return text;
}

// The mask as digits, one a token.
inline std::string digits(std::span<const uint8_t> mask) {
  std::string text;
  for (const uint8_t bit : mask) text += bit != 0 ? '1' : '0';
  return text;
}

// A chat template: "<role:content>" a message, "<assistant:" to open the answer. Trained on are the assistant's contents and the >
// behind them.
inline RenderedChat render_toy_chat(const ChatRequest& request) {
  RenderedChat chat;
  for (const Json& message : request.messages.as_array("messages")) {
    const std::string& role = message.at("role", "message").as_text("role");
    chat.text += "<" + role + ":";
    const size_t begin = chat.text.size();
    chat.text += message.at("content", "message").as_text("content") + ">";
    if (request.want_loss_spans && role == "assistant") chat.loss_spans.push_back({begin, chat.text.size()});
  }
  if (request.add_generation_prompt) chat.text += "<assistant:";
  return chat;
}

}  // namespace kedge::testing
