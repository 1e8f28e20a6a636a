#include "kedge/text/tokenizer/bpe_cuts.h"

namespace kedge {

BpeCuts::BpeCuts(const std::vector<char32_t>& known) : neighbours_(kNumBits / 64) {
  for (const char32_t code : known) {
    if (code < 0x80) cut_before_[code] = true;
    if (code == kMark) cut_before_mark_ = true;
  }
}

void BpeCuts::add_token(std::string_view token) {
  char32_t before = 0;
  for (bool first = true; !token.empty(); first = false, token.remove_prefix(utf8_length(token))) {
    const char32_t code = utf8_decode(token);
    const size_t bit = bit_of(before, code);
    if (!first) neighbours_[bit / 64] |= uint64_t{1} << (bit % 64);
    before = code;
  }
}

}  // namespace kedge
