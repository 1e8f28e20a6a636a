#pragma once
// The `decoder` section of a tokenizer.json: token strings back to bytes, one token at a time. What comes out is exact: bytes
// that are not UTF-8 stay as they are. Independent of ids.
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/normalizer.h"

namespace kedge {

// Takes tokens one by one and emits what is certain; finish() emits the rest.
class DecodeState {
 public:
  virtual ~DecodeState() = default;
  virtual void push(std::string_view token, std::string& out) = 0;
  virtual void finish(std::string& out) = 0;
};

class TokenDecoder {
 public:
  TokenDecoder() = default;  // tokens with a space between them
  // `json` may be null. What is not supported is a UsageError that opens with `where`: "tokenizer.json: decoder".
  TokenDecoder(const Json* json, const std::string& where);

  // Must not outlive the decoder.
  [[nodiscard]] std::unique_ptr<DecodeState> start() const;

  struct ByteLevel {};
  struct ByteFallback {};
  struct Fuse {};
  struct Metaspace {
    std::string replacement;
    bool drops_first = true;  // the first token loses its marks
  };
  struct Strip {
    std::string content;
    size_t start = 0;  // how many to take off at most
    size_t stop = 0;
  };
  struct Replace {
    TextPattern pattern;
    std::string content;
  };
  struct BpeSuffix {
    std::string suffix;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Fuse, Metaspace, Strip, Replace, BpeSuffix>;

 private:
  void add(const Json& json, const std::string& where);

  std::vector<Step> steps_;
  bool present_ = false;
};

}  // namespace kedge
