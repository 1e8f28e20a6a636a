#include "kedge/text/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

struct Part {
  size_t start = 0;
  size_t end = 0;
  bool matched = false;
};

using Parts = std::vector<Part>;

constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {
    {{"Removed", SplitBehavior::removed},
     {"Isolated", SplitBehavior::isolated},
     {"MergedWithPrevious", SplitBehavior::merged_with_previous},
     {"MergedWithNext", SplitBehavior::merged_with_next},
     {"Contiguous", SplitBehavior::contiguous}}};

SplitBehavior parse_behavior(const std::string& name, const std::string& where) {
  for (const auto& [known, behavior] : kBehaviors)
    if (name == known) return behavior;
  throw UsageError(
      str(where, ": \"", name, "\" is not supported; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous"));
}

// Appends the match and the unmatched text before it.
void add_match(Parts& parts, size_t& done, size_t start, size_t end) {
  if (done != start) parts.push_back({done, start, false});
  parts.push_back({start, end, true});
  done = end;
}

// Parts in reverse, each matched one joined to the part that was seen before it.
void merge_backwards(Parts& parts) {
  Parts merged;
  bool previous_matched = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->matched && !previous_matched && !merged.empty()) {
      merged.back().start = part->start;
    } else {
      merged.push_back(*part);
    }
    previous_matched = part->matched;
  }
  std::reverse(merged.begin(), merged.end());
  parts = std::move(merged);
}

void apply_behavior(Parts& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::removed) std::erase_if(parts, [](const Part& part) { return part.matched; });
  if (behavior == SplitBehavior::merged_with_next) merge_backwards(parts);
  if (behavior != SplitBehavior::merged_with_previous && behavior != SplitBehavior::contiguous) return;
  Parts merged;
  bool previous_matched = false;
  for (const Part& part : parts) {
    const bool joins = behavior == SplitBehavior::contiguous ? part.matched == previous_matched : part.matched && !previous_matched;
    if (joins && !merged.empty()) {
      merged.back().end = part.end;
    } else {
      merged.push_back(part);
    }
    previous_matched = part.matched;
  }
  parts = std::move(merged);
}

// Splits every word by cut(text of the word, parts): parts that cover the word, in order.
template <typename Cut>
void split_words(PreTokenized& pieces, SplitBehavior behavior, Cut&& cut) {
  thread_local Parts parts;
  std::vector<WordSpan> words;
  for (const WordSpan& word : pieces.words) {
    parts.clear();
    cut(std::string_view(pieces.text).substr(word.start, word.end - word.start), parts);
    apply_behavior(parts, behavior);
    for (const Part& part : parts)
      if (part.end > part.start) words.push_back({word.start + part.start, word.start + part.end});
  }
  if (words.empty() || (!pieces.words.empty() && words.front().start != pieces.words.front().start)) pieces.first_is_start = false;
  pieces.words = std::move(words);
}

void scan_words(PreTokenized& pieces, SplitScanner scan) {
  std::vector<WordSpan> words;
  words.reserve(pieces.text.size() / 4 + 1);
  for (const WordSpan& word : pieces.words)
    scan(std::string_view(pieces.text).substr(word.start, word.end - word.start), word.start, words);
  pieces.words = std::move(words);
}

// Rewrites every word by spell(index, text of the word, out).
template <typename Spell>
void rewrite_words(PreTokenized& pieces, Spell&& spell) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 4);
  for (size_t i = 0; i < pieces.words.size(); ++i) {
    WordSpan& word = pieces.words[i];
    const size_t start = text.size();
    spell(i, std::string_view(pieces.text).substr(word.start, word.end - word.start), text);
    word = {start, text.size()};
  }
  pieces.text = std::move(text);
}

template <typename Matches>
void cut_at_chars(std::string_view text, Parts& parts, Matches&& matches) {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (matches(utf8_decode(text.substr(at)))) add_match(parts, done, at, at + length);
    at += length;
  }
  if (done < text.size()) parts.push_back({done, text.size(), false});
}

bool is_number(char32_t code, char32_t) {
  return char_table().is_number(code) || (code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6);  // Unicode 17
}
bool is_space(char32_t code, char32_t) { return char_table().is_space(code); }
bool is_punctuation(char32_t code, char32_t) { return char_table().is_punctuation(code); }
bool is_delimiter(char32_t code, char32_t delimiter) { return code == delimiter; }

}  // namespace

PreTokenizer::PreTokenizer(const Json* json, const std::string& where) {
  if (json != nullptr && !json->is_null()) add(*json, where);
}

void PreTokenizer::add(const Json& json, const std::string& where) {
  const std::string& type = json.at("type", where).as_text(where + ".type");
  if (type == "Sequence") {
    const Json::Array& parts = json.at("pretokenizers", where).as_array(where + ".pretokenizers");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], str(where, ".pretokenizers[", i, "]"));
  } else if (type == "ByteLevel") {
    add_byte_level(json, where);
  } else if (type == "Metaspace") {
    add_metaspace(json, where);
  } else if (type == "Split") {
    add_split(json, where);
  } else if (type == "Digits") {
    const bool alone = json.at("individual_digits", where).as_bool(where + ".individual_digits");
    steps_.emplace_back(CharSplit{is_number, alone ? SplitBehavior::isolated : SplitBehavior::contiguous});
  } else if (type == "Punctuation") {
    const Json* behavior = json.find("behavior");
    steps_.emplace_back(CharSplit{is_punctuation, behavior == nullptr
                                                      ? SplitBehavior::isolated
                                                      : parse_behavior(behavior->as_text(where + ".behavior"), where + ".behavior")});
  } else if (type == "Whitespace") {
    steps_.emplace_back(WordSplit{});
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(CharSplit{is_space, SplitBehavior::removed});
  } else if (type == "BertPreTokenizer") {
    steps_.emplace_back(CharSplit{is_space, SplitBehavior::removed});
    steps_.emplace_back(CharSplit{is_punctuation, SplitBehavior::isolated});
  } else if (type == "CharDelimiterSplit") {
    steps_.emplace_back(
        CharSplit{is_delimiter, SplitBehavior::removed, utf8_decode(one_char(json.at("delimiter", where), where + ".delimiter"))});
  } else {
    throw UsageError(str(where, ": the pre-tokenizer type \"", type, "\" is not supported"));
  }
}

void PreTokenizer::add_byte_level(const Json& json, const std::string& where) {
  ByteLevel step;
  step.add_prefix_space = json.at("add_prefix_space", where).as_bool(where + ".add_prefix_space");
  if (const Json* use = json.find("use_regex")) step.use_regex = use->as_bool(where + ".use_regex");
  steps_.emplace_back(step);
}

void PreTokenizer::add_metaspace(const Json& json, const std::string& where) {
  using Prepend = Metaspace::Prepend;
  Metaspace step;
  step.replacement = one_char(json.at("replacement", where), where + ".replacement");
  const Json* scheme = json.find("prepend_scheme");
  if (scheme != nullptr) {
    const std::string& name = scheme->as_text(where + ".prepend_scheme");
    check(name == "always" || name == "first" || name == "never", where, ".prepend_scheme: \"", name, "\" is not supported");
    step.prepend = name == "always" ? Prepend::always : name == "first" ? Prepend::first : Prepend::never;
  }
  // Files from before prepend_scheme say yes or no.
  if (const Json* prefix = json.find("add_prefix_space");
      prefix != nullptr && !prefix->is_null() && !prefix->as_bool(where + ".add_prefix_space")) {
    check(scheme == nullptr || step.prepend == Prepend::never, where, ": add_prefix_space is false, but prepend_scheme is \"",
          scheme == nullptr ? "" : scheme->as_text(where), "\"");
    step.prepend = Prepend::never;
  }
  if (const Json* split = json.find("split"); split != nullptr && !split->is_null()) step.split = split->as_bool(where + ".split");
  steps_.emplace_back(std::move(step));
}

void PreTokenizer::add_split(const Json& json, const std::string& where) {
  const SplitBehavior behavior = parse_behavior(json.at("behavior", where).as_text(where + ".behavior"), where + ".behavior");
  const bool invert = json.at("invert", where).as_bool(where + ".invert");
  const Json& pattern = json.at("pattern", where);
  // A scanner's matches cover the text, so there is nothing between them.
  const Json* expression = pattern.find("Regex");
  SplitScanner scanner = nullptr;
  if (expression != nullptr && expression->is_text() && behavior == SplitBehavior::isolated)
    scanner = find_split_scanner(expression->as_text(where));
  steps_.emplace_back(
      PatternSplit{scanner == nullptr ? TextPattern(pattern, where + ".pattern") : TextPattern(), behavior, invert, scanner});
}

bool PreTokenizer::ends_in_byte_level() const {
  const auto spells = [](const Step& step) { return std::holds_alternative<ByteLevel>(step); };
  return !steps_.empty() && spells(steps_.back()) && std::count_if(steps_.begin(), steps_.end(), spells) == 1;
}

void PreTokenizer::leave_bytes() { std::get<ByteLevel>(steps_.back()).spell_bytes = false; }

void PreTokenizer::apply(PreTokenized& pieces) const {
  pieces.words.clear();
  if (!pieces.text.empty()) pieces.words.push_back({0, pieces.text.size()});
  const size_t num_bytes = pieces.text.size();
  for (const Step& step : steps_) {
    std::visit([&](const auto& known) { run(known, pieces); }, step);
    check(pieces.text.size() <= longest_rewriting(num_bytes), "the tokenizer's pre-tokenizer makes ", pieces.text.size(), " bytes out of ",
          num_bytes);
  }
}

void PreTokenizer::run(const ByteLevel& step, PreTokenized& pieces) {
  const auto lacks_space = [&](const WordSpan& word) { return pieces.text[word.start] != ' '; };
  if (step.add_prefix_space && std::any_of(pieces.words.begin(), pieces.words.end(), lacks_space)) {
    rewrite_words(pieces, [](size_t, std::string_view word, std::string& out) {
      if (!word.starts_with(' ')) out += ' ';
      out.append(word);
    });
  }
  if (step.use_regex) {
    static const SplitScanner kScan = find_split_scanner(kGpt2Expression);
    scan_words(pieces, kScan);
  }
  if (step.spell_bytes) rewrite_words(pieces, [](size_t, std::string_view word, std::string& out) { append_byte_level(out, word); });
}

void PreTokenizer::run(const Metaspace& step, PreTokenized& pieces) {
  rewrite_words(pieces, [&](size_t index, std::string_view word, std::string& out) {
    const bool wanted =
        step.prepend == Metaspace::Prepend::always || (step.prepend == Metaspace::Prepend::first && index == 0 && pieces.first_is_start);
    if (wanted && !word.starts_with(' ') && !word.starts_with(step.replacement)) out.append(step.replacement);
    for (const char c : word) c == ' ' ? static_cast<void>(out.append(step.replacement)) : out.push_back(c);
  });
  if (!step.split) return;
  split_words(pieces, SplitBehavior::merged_with_next, [&](std::string_view text, Parts& parts) {
    size_t done = 0;
    for (size_t at = text.find(step.replacement); at != std::string_view::npos;
         at = text.find(step.replacement, at + step.replacement.size()))
      add_match(parts, done, at, at + step.replacement.size());
    if (done < text.size()) parts.push_back({done, text.size(), false});
  });
}

void PreTokenizer::run(const PatternSplit& step, PreTokenized& pieces) {
  if (step.scanner != nullptr) return scan_words(pieces, step.scanner);
  split_words(pieces, step.behavior, [&](std::string_view text, Parts& parts) {
    size_t done = 0;
    step.pattern.for_each_match(text, [&](size_t start, size_t end) { add_match(parts, done, start, end); });
    if (done < text.size()) parts.push_back({done, text.size(), false});
    for (Part& part : parts) part.matched ^= step.invert;
  });
}

void PreTokenizer::run(const CharSplit& step, PreTokenized& pieces) {
  split_words(pieces, step.behavior, [&](std::string_view text, Parts& parts) {
    cut_at_chars(text, parts, [&](char32_t code) { return step.matches(code, step.delimiter); });
  });
}

void PreTokenizer::run(const WordSplit&, PreTokenized& pieces) {
  const CharTable& table = char_table();
  enum class Kind { space, word, other };
  const auto kind_of = [&](std::string_view text) {
    const char32_t code = utf8_decode(text);
    return table.is_word(code) ? Kind::word : table.is_space(code) ? Kind::space : Kind::other;
  };
  split_words(pieces, SplitBehavior::removed, [&](std::string_view text, Parts& parts) {
    for (size_t start = 0; start < text.size();) {
      const Kind kind = kind_of(text.substr(start));
      size_t end = start;
      while (end < text.size() && kind_of(text.substr(end)) == kind) end += utf8_length(text.substr(end));
      parts.push_back({start, end, kind == Kind::space});
      start = end;
    }
  });
}

}  // namespace kedge
