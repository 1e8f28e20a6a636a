#include "kedge/data/sets/chat_dataset.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

std::string optional_text(const Row& row, std::string_view key, const char* missing) {
  const Json* value = row.find(key);
  return value == nullptr || value->is_null() ? missing : row.text(key);
}

Conversation::Type read_type(const Row& row) {
  const std::string type = optional_text(row, "type", "");
  if (type.empty()) return Conversation::Type::plain;
  if (type == "VALUE_TO_TEXT") return Conversation::Type::value_to_text;
  if (type == "TEXT_TO_VALUE") return Conversation::Type::text_to_value;
  row.fail(RowFault::bad_value, str("\"type\": \"", type, "\"; expected null, VALUE_TO_TEXT or TEXT_TO_VALUE"));
}

Conversation::Turn read_turn(const Row& row, const Json& value, size_t number) {
  const std::string what = str("\"conversations\"[", number, "]");
  if (!value.is_object()) row.fail_type(what, "an object", value);
  const auto text = [&](std::string_view key) {
    const Json* member = value.find(key);
    if (member == nullptr) row.fail(RowFault::missing_field, str(what, ": no \"", key, "\" field"));
    if (!member->is_text()) row.fail_type(str(what, ".", key), "a string", *member);
    return member->as_text("");
  };
  Conversation::Turn turn{text("from"), text("value"), std::nullopt};
  const Json* label = value.find("label");
  if (label != nullptr && !label->is_null()) turn.label = text("label");
  return turn;
}

}  // namespace

Conversation read_conversation(const Row& row) {
  Conversation chat;
  chat.system = optional_text(row, "system", "");
  chat.type = read_type(row);
  const Json& turns = row.at("conversations");
  if (!turns.is_array()) row.fail_type("\"conversations\"", "a list of turns", turns);
  for (const Json& turn : turns.as_array("")) chat.turns.push_back(read_turn(row, turn, chat.turns.size()));
  if (chat.turns.empty()) row.fail(RowFault::bad_value, "\"conversations\": a list without turns");

  const std::string& mask = row.text("mask");
  for (size_t begin = 0; begin <= mask.size();) {
    const size_t end = std::min(mask.find(',', begin), mask.size());
    std::string role = mask.substr(begin, end - begin);
    const auto speaks = [&](const Conversation::Turn& turn) { return turn.from == role; };
    if (std::none_of(chat.turns.begin(), chat.turns.end(), speaks))
      row.fail(RowFault::bad_value, str("\"mask\": \"", role, "\" has no turn in the conversation"));
    chat.masked_roles.push_back(std::move(role));
    begin = end + 1;
  }
  return chat;
}

std::vector<TextPiece> span_pieces(const RenderedChat& chat) {
  std::vector<TextPiece> pieces;
  size_t at = 0;
  for (const TextSpan& span : chat.loss_spans) {
    ensure(at <= span.begin && span.begin <= span.end && span.end <= chat.text.size(), "loss span ", span.begin, "-", span.end, " after ",
           at);
    pieces.push_back({chat.text.substr(at, span.begin - at), false});
    pieces.push_back({chat.text.substr(span.begin, span.end - span.begin), true});
    at = span.end;
  }
  pieces.push_back({chat.text.substr(at), false});
  return pieces;
}

ChatReader::ChatReader(const SftDataConfig& config, ChatRenderer chat)
    : tokens_(config.chat_prompt_tokens), roles_(config.roles), chat_(std::move(chat)) {}

std::vector<TextPiece> ChatReader::pieces(const Row& row) const {
  std::vector<TextPiece> pieces;
  if (row.find("mask") != nullptr) {
    pieces = chat_pieces(read_conversation(row), tokens_);
  } else {
    const std::string_view key = row.find("messages") == nullptr && row.find("conversations") != nullptr ? "conversations" : "messages";
    if (row.find(key) == nullptr) row.fail_missing("\"messages\"", "rows of prompts and answers need model.data.chat=false");
    const Json messages = read_messages(row, row.at(key), str("\"", key, "\""), roles_);
    pieces = span_pieces(render(chat_, {messages, row.json(), false, true}, row));
  }
  if (std::none_of(pieces.begin(), pieces.end(), [](const TextPiece& piece) { return piece.trained && !piece.text.empty(); }))
    row.fail(RowFault::bad_value, "nothing to train on: no turn of a trained role follows the first");
  return pieces;
}

ChatDataset::ChatDataset(Rows rows, TextEncoder encoder, const SftDataConfig& config, int64_t max_seq_length, ChatRenderer chat)
    : rows_(std::move(rows)), encoder_(std::move(encoder)), reader_(config, std::move(chat)), max_seq_length_(max_seq_length) {
  for_each_example(size(), [&](int64_t row) { static_cast<void>(encode(row)); });
}

MaskedTokens ChatDataset::encode(int64_t row) const {
  MaskedTokens tokens = encoder_.encode(reader_.pieces(rows_.row(row)));
  encoder_.encoder().check_ids(tokens.ids, [&] { return rows_.where(row); });
  return tokens;
}

MaskedTokens ChatDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": row ", index, " of ", size());
  MaskedTokens tokens = encode(index);
  if (static_cast<int64_t>(tokens.ids.size()) <= max_seq_length_) return tokens;
  tokens.cut(static_cast<size_t>(max_seq_length_));
  if (tokens.trains_nothing()) {
    truncations_.answers_lost.note(rows_.where(index), " has a prompt of more than ", max_seq_length_,
                                   " tokens: nothing is left to train on");
  } else {
    truncations_.truncated.note(rows_.where(index), " has more than ", max_seq_length_, " tokens and was cut");
  }
  return tokens;
}

}  // namespace kedge
