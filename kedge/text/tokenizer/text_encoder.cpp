#include "kedge/text/tokenizer/text_encoder.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Put before a piece while it is encoded, so that the tokenizer's own blank applies to it; removed afterwards.
constexpr std::string_view kPrefix("\0", 1);

}  // namespace

TokenId TextEncoder::bos_id() const {
  check(bos.has_value(), "a BOS token is requested, and the tokenizer has none");
  return *bos;
}

TokenId TextEncoder::eos_id() const {
  check(eos.has_value(), "an EOS token is needed, and the tokenizer has none");
  return *eos;
}

void TextEncoder::check_ids(std::span<const TokenId> ids, const std::function<std::string()>& where) const {
  const auto outside = std::find_if(ids.begin(), ids.end(), [&](TokenId id) { return id >= vocab_size; });
  if (outside == ids.end()) return;
  throw UsageError(str(where(), ": the tokenizer's id ", *outside, " is outside the model's vocabulary of ", vocab_size));
}

TextEncoder encoder_of(const Tokenizer& tokenizer, int64_t vocab_size) {
  return {.encode = [&tokenizer](std::string_view text) { return tokenizer.encode(text); },
          .decode = [&tokenizer](std::span<const TokenId> ids) { return tokenizer.decode(ids); },
          .bos = tokenizer.special().bos,
          .eos = tokenizer.special().eos,
          .vocab_size = vocab_size};
}

bool adds_leading_blank(const TextEncoder& encoder) {
  const TokenIds once = encoder.encode("x");
  TokenIds twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  return encoder.decode(twice).ends_with("x x");
}

void MaskedTokens::append(std::span<const TokenId> more, bool trained) {
  ids.insert(ids.end(), more.begin(), more.end());
  mask.insert(mask.end(), more.size(), trained ? 1 : 0);
}

void MaskedTokens::cut(size_t length) {
  if (ids.size() <= length) return;
  ids.resize(length);
  mask.resize(length);
}

bool MaskedTokens::trains_nothing() const { return std::find(mask.begin(), mask.end(), 1) == mask.end(); }

PieceEncoder::PieceEncoder(TextEncoder encoder)
    : encoder_(std::move(encoder)),
      adds_blank_(adds_leading_blank(encoder_)),
      prefix_ids_(encoder_.encode(kPrefix)),
      prefix_fuses_(prefix_ids_.size() > 1 && encoder_.encode(std::string(kPrefix).append(kPrefix)) == prefix_ids_) {}

TokenIds PieceEncoder::inside(std::string_view previous, std::string_view text) const {
  if (!adds_blank_) return encoder_.encode(text);
  // As in the whole text, if `previous` keeps its tokens there. Not behind an unknown character, whose token may hold more of them.
  const TokenIds before = encoder_.encode(previous);
  if (!before.empty() && !(prefix_fuses_ && before.back() == prefix_ids_.back())) {
    const TokenIds both = encoder_.encode(std::string(previous).append(text));
    const auto [border, rest] = std::mismatch(before.begin(), before.end(), both.begin(), both.end());
    if (border == before.end()) return {rest, both.end()};
  }
  TokenIds ids = encoder_.encode(std::string(kPrefix).append(text));
  const size_t prefix = prefix_ids_.size();
  if (ids.size() < prefix || !std::equal(prefix_ids_.begin(), prefix_ids_.end(), ids.begin())) return encoder_.encode(text);
  const bool fused = prefix_fuses_ && ids == encoder_.encode(text);  // the last of the prefix's tokens is also the first of the text's
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(fused ? prefix - 1 : prefix));
  return ids;
}

MaskedTokens PieceEncoder::encode(std::span<const TextPiece> pieces) const {
  MaskedTokens tokens;
  std::string previous, text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    text += pieces[i].text;
    if (text.empty() || (i + 1 < pieces.size() && pieces[i + 1].trained == pieces[i].trained)) continue;
    tokens.append(tokens.ids.empty() ? encoder_.encode(text) : inside(previous, text), pieces[i].trained);
    previous = std::exchange(text, {});
  }
  return tokens;
}

}  // namespace kedge
