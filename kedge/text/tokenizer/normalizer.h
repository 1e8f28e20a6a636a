#pragma once
// The `normalizer` section of a tokenizer.json: text to text, before it is split. Valid UTF-8 in and out.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/charsmap.h"
#include "kedge/text/unicode/regex.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {

// More than any legitimate file makes out of a text: steps that double it, one after another, would fill the memory.
inline size_t longest_rewriting(size_t num_bytes) { return num_bytes * 64 + (size_t{1} << 20U); }

// A string of exactly one character; another is a UsageError that opens with `where`.
[[nodiscard]] std::string one_char(const Json& json, const std::string& where);

// A pattern of the Replace and Split steps: plain text, or an expression.
class TextPattern {
 public:
  TextPattern() = default;  // matches nothing
  // {"String": "..."} or {"Regex": "..."}.
  TextPattern(const Json& pattern, const std::string& where);

  void for_each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const;
  [[nodiscard]] std::string replace(std::string_view text, std::string_view content) const;

 private:
  std::string literal_;
  std::unique_ptr<Regex> regex_;
};

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // `json` may be null. What is not supported is a UsageError that opens with `where`: "tokenizer.json: normalizer".
  Normalizer(const Json* json, const std::string& where);

  [[nodiscard]] bool empty() const { return steps_.empty(); }

  struct Result {
    std::string text;
    bool keeps_start = true;  // does its first character come from the first one of the input?
  };
  [[nodiscard]] Result apply(std::string_view text) const;

 private:
  struct Form {
    NormalForm form;
  };
  struct Lowercase {};
  struct Strip {
    bool left, right;
  };
  struct StripAccents {};
  struct Nmt {};
  struct ByteLevel {};
  struct Prepend {
    std::string prefix;
  };
  struct Replace {
    TextPattern pattern;
    std::string content;
  };
  struct Precompiled {
    Charsmap map;
  };
  using Step = std::variant<Form, Lowercase, Strip, StripAccents, Nmt, ByteLevel, Prepend, Replace, Precompiled>;

  void add(const Json& json, const std::string& where);
  static void run(const Form& step, Result& result);
  static void run(const Lowercase& step, Result& result);
  static void run(const Strip& step, Result& result);
  static void run(const StripAccents& step, Result& result);
  static void run(const Nmt& step, Result& result);
  static void run(const ByteLevel& step, Result& result);
  static void run(const Prepend& step, Result& result);
  static void run(const Replace& step, Result& result);
  static void run(const Precompiled& step, Result& result);

  std::vector<Step> steps_;
};

}  // namespace kedge
