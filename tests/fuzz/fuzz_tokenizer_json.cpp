// Bytes as a tokenizer.json: they load or are refused, and what loads encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/core/log.h"
#include "kedge/text/tokenizer/json_tokenizer.h"
#include "kedge/text/tokenizer/streaming_decoder.h"

namespace {

using namespace kedge;

constexpr std::string_view kTexts[] = {"", "a", "ab abc  \n x", "It's 12345 \u00E9\u0301\u4E00\U0001F600 \u2581\u2581", "<s>ab</s> <s>"};

void try_text(const Tokenizer& tokenizer, std::string_view text) {
  const TokenIds ids = tokenizer.encode(text, {.add_special = true});
  StreamingDecoder stream(tokenizer, SpecialTokens::keep);
  std::string streamed;
  for (const TokenId id : ids) streamed += stream.feed(id);
  streamed += stream.flush();
  ensure(streamed == tokenizer.decode(ids), "streamed text differs from decoded text");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  set_up_log({.level = LogLevel::error});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const JsonTokenizer tokenizer(Json::parse({reinterpret_cast<const char*>(data), size}, "fuzz"), "fuzz");
    static_cast<void>(tokenizer.fingerprint());
    for (const std::string_view text : kTexts) {
      try {
        try_text(tokenizer, text);
      } catch (const UsageError&) {  // an expression that gives up, an unk_token that is not there, an id outside the vocabulary
      }
    }
  } catch (const UsageError&) {
  }
  return 0;
}
