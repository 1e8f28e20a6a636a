#include "kedge/reward/served_rows.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/version.h"
#include "kedge/net/request_error.h"

namespace kedge {

ServedRows::ServedRows(const Path& folder, const ModelConfig& network, const ServedRowsOptions& options)
    : tokenizer_(has_tokenizer(folder) ? load_tokenizer(folder) : nullptr),
      chat_(tokenizer_ ? ChatTemplate::find(folder) : std::nullopt),
      options_(options),
      vocab_size_(network.vocab_size),
      max_positions_(network.max_positions) {
  check(!options.add_bos || (tokenizer_ && tokenizer_->special().bos), "add_bos: the tokenizer of ", folder.string(), " has no bos");
  check(!options.add_eos || (tokenizer_ && tokenizer_->special().eos), "add_eos: the tokenizer of ", folder.string(), " has no eos");
}

std::vector<TensorSpec> ServedRows::inputs() const {
  std::vector<TensorSpec> inputs;
  if (tokenizer_) inputs.push_back({"sentences", WireType::bytes, {-1}, true});
  if (chat_) inputs.push_back({"messages", WireType::bytes, {-1}, true});
  inputs.push_back({"tokens", WireType::int64, {-1}, true});
  inputs.push_back({"sequence_lengths", WireType::int64, {-1}, true});
  return inputs;
}

std::vector<std::pair<std::string, std::string>> ServedRows::parameters() const {
  std::vector<std::pair<std::string, std::string>> parameters;
  if (tokenizer_) parameters.emplace_back("tokenizer_fingerprint", tokenizer_->fingerprint());
  if (chat_) parameters.emplace_back("chat_template_fingerprint", chat_->fingerprint());
  parameters.emplace_back("encoder_seq_length", std::to_string(options_.max_length));
  parameters.emplace_back("kedge_version", version());
  return parameters;
}

ReadRows ServedRows::read(std::span<const WireTensor> inputs) const {
  if (const WireTensor* sentences = find_tensor(inputs, "sentences")) return read_texts(*sentences, false);
  if (const WireTensor* messages = find_tensor(inputs, "messages")) return read_texts(*messages, true);
  const WireTensor* tokens = find_tensor(inputs, "tokens");
  const WireTensor* lengths = find_tensor(inputs, "sequence_lengths");
  check_request(tokens != nullptr && lengths != nullptr, "expected sentences, or tokens together with sequence_lengths");
  return read_ids(*tokens, *lengths);
}

ReadRows ServedRows::read_texts(const WireTensor& texts, bool are_messages) const {
  check_request(texts.shape[1] == 1, texts.name, ": expected one text per row, found ", texts.shape[1]);
  ReadRows read;
  read.width = options_.max_length;
  for (const std::string& text : text_values(texts)) {
    const std::string where = str(texts.name, ": row ", read.rows.size());
    try {
      read.rows.push_back(are_messages ? encode(chat_->render(Json::parse(text, "JSON")), true) : encode(text, false));
    } catch (const UsageError& error) {
      throw RequestError(400, str(where, ": ", error.what()));
    }
    check_request(!read.rows.back().empty(), where, ": no tokens");
    for (const TokenId id : read.rows.back())
      check_request(id < vocab_size_, where, ": the tokenizer's id ", id, " is outside the model's vocabulary of ", vocab_size_);
  }
  return read;
}

TokenIds ServedRows::encode(const std::string& text, bool is_rendered) const {
  TokenIds ids = tokenizer_->encode(text);
  const bool bos = options_.add_bos && !is_rendered, eos = options_.add_eos && !is_rendered;
  const int64_t room = std::min(options_.max_length, max_positions_) - int64_t{bos} - int64_t{eos};
  if (static_cast<int64_t>(ids.size()) > room) ids.resize(static_cast<size_t>(std::max<int64_t>(room, 0)));
  if (bos) ids.insert(ids.begin(), *tokenizer_->special().bos);
  if (eos) ids.push_back(*tokenizer_->special().eos);
  return ids;
}

ReadRows ServedRows::read_ids(const WireTensor& tokens, const WireTensor& lengths) const {
  check_request(lengths.shape[1] == 1, "sequence_lengths: expected one number per row, found ", lengths.shape[1]);
  ReadRows read;
  read.width = tokens.shape[1];
  check_request(read.width <= options_.max_length, "tokens: ", read.width, " columns, but encoder_seq_length is ", options_.max_length);
  const std::span<const int64_t> ids = int64_values(tokens), counts = int64_values(lengths);
  for (size_t row = 0; row < counts.size(); ++row) {
    const int64_t length = counts[row];
    check_request(length >= 1 && length <= read.width, "sequence_lengths: row ", row, ": ", length, " is not from 1 to ", read.width);
    check_request(length <= max_positions_, "sequence_lengths: row ", row, ": ", length, " tokens, but the model has only ", max_positions_,
                  " positions");
    TokenIds& out = read.rows.emplace_back();
    out.reserve(static_cast<size_t>(length));
    for (const int64_t id : ids.subspan(row * static_cast<size_t>(read.width), static_cast<size_t>(length))) {
      check_request(id >= 0 && id < vocab_size_, "tokens: row ", row, ": id ", id, " is outside the model's vocabulary of ", vocab_size_);
      out.push_back(static_cast<TokenId>(id));
    }
  }
  return read;
}

}  // namespace kedge
