// Any bytes through UTF-8 handling: refused by name or brought back unchanged, whole and in a stream.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/bpe_trainer.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"
#include "kedge/text/tokenizer/streaming_decoder.h"
#include "kedge/text/unicode/normal_form.h"

namespace {

using namespace kedge;

std::unique_ptr<Tokenizer> small_bpe() {
  const std::vector<std::string> texts = {
      "the cat sat on the mat, and that's that; the cat's hat \u00E9t\u00E9 \u65E5\u672C\u8A9E \U0001F600\U0001F600"};
  return train_bpe(texts, {.vocab_size = 320, .min_count = 1}).load();
}

// No piece ends inside a character that a later piece goes on with, and together they are the whole.
void try_ids(const Tokenizer& tokenizer, const TokenIds& ids) {
  const std::string whole = tokenizer.decode(ids);
  StreamingDecoder stream(tokenizer, SpecialTokens::keep);
  std::string streamed;
  for (const TokenId id : ids) {
    streamed += stream.feed(id);
    const bool at_boundary = streamed.size() == whole.size() || utf8_valid_prefix(whole) < whole.size() ||
                             (static_cast<unsigned char>(whole[streamed.size()]) & 0xC0U) != 0x80U;
    ensure(at_boundary, "half a character");
  }
  ensure(streamed + stream.flush() == whole, "streamed text differs from decoded text");
  const std::string text = tokenizer.decode_text(ids);
  ensure(utf8_valid_prefix(text) == text.size(), "text that is not UTF-8");
}

void try_bytes(const Tokenizer& tokenizer, std::string_view bytes) {
  const bool valid = utf8_valid_prefix(bytes) == bytes.size();
  try {
    const TokenIds ids = tokenizer.encode(bytes, {.match_special = false});
    ensure(valid && tokenizer.decode(ids) == bytes, "the bytes did not come back");
    try_ids(tokenizer, ids);
  } catch (const UsageError&) {
    ensure(!valid, "valid text was refused");
  }
  TokenIds ids;
  for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte) % tokenizer.vocab_size());
  try_ids(tokenizer, ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kBytes = make_byte_tokenizer();
  static const auto kBpe = small_bpe();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try_bytes(*kBytes, bytes);
  try_bytes(*kBpe, bytes);
  if (utf8_valid_prefix(bytes) < bytes.size()) return 0;
  for (const NormalForm form : {NormalForm::nfc, NormalForm::nfd, NormalForm::nfkc, NormalForm::nfkd}) {
    const std::string once = to_normal_form(bytes, form);
    ensure(utf8_valid_prefix(once) == once.size(), "a normal form that is not UTF-8");
    ensure(!surely_in_form(bytes, form) || once == bytes, "surely in form, and yet changed");
  }
  const std::string lower = to_lower_case(bytes);
  ensure(utf8_valid_prefix(lower) == lower.size(), "lower case that is not UTF-8");
  return 0;
}
