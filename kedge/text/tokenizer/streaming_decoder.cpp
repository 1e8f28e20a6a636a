#include "kedge/text/tokenizer/streaming_decoder.h"

#include <algorithm>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"

namespace kedge {
namespace {

// Where a character starts that the text ends in the middle of; the end when there is none.
size_t start_of_open_character(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const size_t at = text.size() - back;
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
    if (back >= wanted) return text.size();
    // Could the bytes that are missing complete it? The lowest or the highest would, if any do.
    for (const char filler : {'\x80', '\xBF'})
      if (utf8_length(std::string(text.substr(at)).append(wanted - back, filler)) == wanted) return at;
    return text.size();
  }
  return text.size();
}

}  // namespace

StreamingDecoder::StreamingDecoder(const Tokenizer& tokenizer, SpecialTokens special)
    : tokenizer_(tokenizer), special_(special), decoder_(tokenizer.start_decoding()) {}

std::string StreamingDecoder::feed(TokenId id) {
  check(id >= 0 && id < tokenizer_.vocab_size(), "cannot decode: ", id, " is not an id of this vocabulary of ", tokenizer_.vocab_size());
  if (special_ == SpecialTokens::skip && tokenizer_.is_special(id)) return {};
  decoder_->push(id, held_);
  const size_t open = start_of_open_character(held_);
  std::string ready = held_.substr(0, open);
  held_.erase(0, open);
  return ready;
}

std::string StreamingDecoder::flush() {
  decoder_->finish(held_);
  decoder_ = tokenizer_.start_decoding();
  return std::exchange(held_, {});
}

}  // namespace kedge
