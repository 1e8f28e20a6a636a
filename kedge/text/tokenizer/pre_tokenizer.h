#pragma once
// The `pre_tokenizer` section of a tokenizer.json: normalised text to words. Independent of ids.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/text/tokenizer/bpe.h"
#include "kedge/text/tokenizer/normalizer.h"
#include "kedge/text/tokenizer/split_scanner.h"

namespace kedge {

// Words are ranges of `text`, in order; what is between them is dropped.
struct PreTokenized {
  std::string text;
  std::vector<WordSpan> words;
  bool first_is_start = false;  // does the first word start at the start of the input?
};

// What becomes of the part of a text that matched.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

class PreTokenizer {
 public:
  PreTokenizer() = default;  // one word
  // `json` may be null. What is not supported is a UsageError that opens with `where`: "tokenizer.json: pre_tokenizer".
  PreTokenizer(const Json* json, const std::string& where);

  // Splits one word (all of `pieces.text`).
  void apply(PreTokenized& pieces) const;

  // Is the last step one that spells bytes as byte_level.h does, and no step before it?
  [[nodiscard]] bool ends_in_byte_level() const;
  // From now on that last step leaves bytes as they are, for a model that expects that.
  void leave_bytes();

 private:
  struct ByteLevel {
    bool add_prefix_space = true;
    bool use_regex = true;
    bool spell_bytes = true;
  };
  struct Metaspace {
    enum class Prepend { always, first, never };
    std::string replacement;
    Prepend prepend = Prepend::always;
    bool split = true;
  };
  struct PatternSplit {
    TextPattern pattern;
    SplitBehavior behavior;
    bool invert;
    SplitScanner scanner;  // null: by the pattern
  };
  struct CharSplit {
    bool (*matches)(char32_t code, char32_t delimiter);
    SplitBehavior behavior;
    char32_t delimiter = 0;
  };
  struct WordSplit {};  // the Whitespace pre-tokenizer: runs of word characters, runs of other characters but white space
  using Step = std::variant<ByteLevel, Metaspace, PatternSplit, CharSplit, WordSplit>;

  void add(const Json& json, const std::string& where);
  void add_byte_level(const Json& json, const std::string& where);
  void add_metaspace(const Json& json, const std::string& where);
  void add_split(const Json& json, const std::string& where);
  static void run(const ByteLevel& step, PreTokenized& pieces);
  static void run(const Metaspace& step, PreTokenized& pieces);
  static void run(const PatternSplit& step, PreTokenized& pieces);
  static void run(const CharSplit& step, PreTokenized& pieces);
  static void run(const WordSplit& step, PreTokenized& pieces);

  std::vector<Step> steps_;
};

}  // namespace kedge
