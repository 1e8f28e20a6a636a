// Bytes as a SentencePiece tokenizer.model: they load or are refused, and what loads encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/text/tokenizer/sentencepiece.h"
#include "kedge/text/tokenizer/streaming_decoder.h"

namespace {

using namespace kedge;

constexpr std::string_view kTexts[] = {"", "a", " ab  abc \n", "It's 12345 \u00E9\u0301\u4E00\U0001F600 \u2581\u2581",
                                       "aaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"};

void try_text(const Tokenizer& tokenizer, std::string_view text) {
  const TokenIds ids = tokenizer.encode(text);
  StreamingDecoder stream(tokenizer, SpecialTokens::keep);
  std::string streamed;
  for (const TokenId id : ids) streamed += stream.feed(id);
  streamed += stream.flush();
  ensure(streamed == tokenizer.decode(ids), "streamed text differs from decoded text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const SentencePieceTokenizer tokenizer({reinterpret_cast<const char*>(data), size}, "fuzz");
    static_cast<void>(tokenizer.fingerprint());
    for (const std::string_view text : kTexts) try_text(tokenizer, text);
  } catch (const UsageError&) {
  }
  return 0;
}
