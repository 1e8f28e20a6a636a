#pragma once
// The simplest tokenizer: a byte is its own id, and <pad>, <bos>, <eos> follow as 256, 257, 258. For toys and tests;
// needs no library and no file.
#include "kedge/text/tokenizer/tokenizer_files.h"

namespace kedge {

[[nodiscard]] TokenizerFiles byte_tokenizer_files();
[[nodiscard]] std::unique_ptr<Tokenizer> make_byte_tokenizer();

}  // namespace kedge
