#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "kedge/text/tokenizer/byte_level.h"

namespace kedge {

TokenizerFiles byte_tokenizer_files() {
  ByteLevelParts parts;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    std::string token;
    append_byte_level(token, {&c, 1});
    parts.vocab.append(std::move(token), byte);
  }
  parts.special = {"<pad>", "<bos>", "<eos>"};
  parts.split_words = false;
  return make_byte_level_files(std::move(parts), {});
}

std::unique_ptr<Tokenizer> make_byte_tokenizer() { return byte_tokenizer_files().load(); }

}  // namespace kedge
