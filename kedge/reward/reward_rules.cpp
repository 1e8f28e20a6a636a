#include "kedge/reward/reward_rules.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/reward/lexicon.h"
#include "kedge/reward/math/math_answer.h"
#include "kedge/reward/row_answer.h"
#include "kedge/text/unicode/python_unicode.h"
#include "kedge/text/unicode/regex.h"

namespace kedge {
namespace {

// An error of this row only; becomes its RowReward's error.
struct RowProblem {
  std::string text;
};

template <typename Number>
RewardRule rule_of(Number number) {
  return [number = std::move(number)](const Rollout& rollout) {
    try {
      return RowReward{.value = number(rollout)};
    } catch (const RowProblem& problem) {
      return RowReward{.error = str("prompt ", rollout.prompt_id, ": ", problem.text)};
    } catch (const UsageError& error) {  // an expression that gives up on a text
      return RowReward{.error = str("prompt ", rollout.prompt_id, ": ", error.what())};
    }
  };
}

std::string text_of(const Rollout& rollout) { return utf8_replace_invalid(rollout.response); }

std::string field_name(const Rollout& rollout, const std::string& field) {
  static const Json kNoRow;
  return std::string(answer_field(rollout.row == nullptr ? kNoRow : *rollout.row, field));
}

const Json& field_of(const Rollout& rollout, const std::string& field) {
  const std::string name = field_name(rollout, field);
  if (rollout.row == nullptr || !rollout.row->is_object()) throw RowProblem{str("its row has no field \"", name, "\": there is no row")};
  if (const Json* found = find_answer(*rollout.row, field)) {
    if (found->is_null()) throw RowProblem{str("the field \"", name, "\" of its row is null")};
    return *found;
  }
  std::string others;
  for (const auto& [other, value] : rollout.row->as_object("row")) others += (others.empty() ? "" : ", ") + other;
  throw RowProblem{str("its row has no field \"", name, "\"; it has ", others.empty() ? "none" : others)};
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (py_is_space(utf8_decode(text.substr(at)))) {
      if (at > start) words.push_back(text.substr(start, at - start));
      start = at + length;
    }
    at += length;
  }
  if (at > start) words.push_back(text.substr(start));
  return words;
}

double right_number(const Rollout& rollout, const std::string& field) {
  const Json& value = field_of(rollout, field);
  if (value.is_number()) return value.as_number(field);
  const auto number = value.is_text() ? answer_number(value.as_text(field)) : std::nullopt;
  if (!number) throw RowProblem{str("the field \"", field_name(rollout, field), "\" of its row holds no number: ", value.dump())};
  return *number;
}

// As two texts are compared.
std::string comparable(std::string_view text, const RightText& rule) {
  std::string result(py_strip(text));
  if (rule.ignore_case) result = py_lower(result);
  if (!rule.collapse_spaces) return result;
  std::string joined;
  for (const std::string_view word : words_of(result)) joined.append(joined.empty() ? "" : " ").append(word);
  return joined;
}

std::vector<std::string> right_texts(const Rollout& rollout, const std::string& field) {
  const Json& value = field_of(rollout, field);
  std::vector<std::string> texts;
  const auto add = [&](const Json& one) {
    if (one.is_text()) {
      texts.push_back(one.as_text(field));
    } else if (one.is_number()) {
      texts.push_back(one.dump());
    } else {
      throw RowProblem{
          str("the field \"", field_name(rollout, field), "\" of its row must be text or a list of texts, found ", value.dump())};
    }
  };
  if (value.is_array()) {
    for (const Json& one : value.as_array(field)) add(one);
    if (texts.empty()) throw RowProblem{str("the field \"", field_name(rollout, field), "\" of its row is an empty list")};
  } else {
    add(value);
  }
  return texts;
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (size_t at = 0; at < text.size(); at += utf8_length(text.substr(at))) characters.push_back(utf8_decode(text.substr(at)));
  return characters;
}

// The fraction of places at which the two have the same character; two empty texts are equal.
double overlap(std::u32string_view left, std::u32string_view right) {
  const auto [shorter, longer] = std::minmax({left.size(), right.size()});
  if (longer == 0) return 1;
  double same = 0;
  for (size_t i = 0; i < shorter; ++i) same += left[i] == right[i] ? 1 : 0;
  return same / static_cast<double>(longer);
}

int64_t length_of(const Rollout& rollout, LengthUnit unit) {
  if (unit == LengthUnit::tokens) return rollout.response_length();
  const std::string text = text_of(rollout);
  if (unit == LengthUnit::words) return static_cast<int64_t>(words_of(text).size());
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return std::count_if(text.begin(), text.end(), begins);
}

}  // namespace

RewardRule regex_rule(std::string_view pattern, RegexUse use, std::string_view where) {
  auto regex = std::make_shared<const Regex>(Regex::perl(pattern, where));
  if (use == RegexUse::match) return rule_of([regex](const Rollout& rollout) { return regex->matches(text_of(rollout)) ? 1.0 : 0.0; });
  return rule_of([regex](const Rollout& rollout) {
    double count = 0;
    regex->for_each_match(text_of(rollout), [&](size_t, size_t) { ++count; });
    return count;
  });
}

RewardRule format_rule(std::string_view pattern, const Marks& marks, std::string_view where) {
  auto regex = std::make_shared<const Regex>(Regex::perl(pattern, where, Regex::Extent::whole_text));
  return rule_of([regex, marks](const Rollout& rollout) { return regex->matches(text_of(rollout)) ? marks.correct : marks.wrong; });
}

RewardRule lexicon_rule(const Path& file) {
  auto lexicon = std::make_shared<const Lexicon>(file);
  return rule_of([lexicon](const Rollout& rollout) { return lexicon->sum(text_of(rollout)); });
}

RewardRule number_rule(AnswerRule rule) {
  return rule_of([rule = std::move(rule)](const Rollout& rollout) {
    const double wanted = right_number(rollout, rule.field);
    const auto found = answer_number(rollout.response, rule.place);
    const double allowed = rule.tolerance * std::max(1.0, std::abs(wanted));
    return found && std::abs(*found - wanted) <= allowed ? rule.marks.correct : rule.marks.wrong;
  });
}

RewardRule math_rule(AnswerRule rule) {
  return rule_of([rule = std::move(rule)](const Rollout& rollout) {
    const auto found = math_answer(rollout.response, rule.place);
    bool is_right = false;
    for (const std::string& text : right_texts(rollout, rule.field)) {
      const auto wanted = RightMathAnswer::of(text);
      if (!wanted)
        throw RowProblem{str("the field \"", field_name(rollout, rule.field),
                             "\" of its row holds no answer that can be compared: ", Json(text).dump())};
      is_right = is_right || (found && wanted->is(*found, rule.tolerance));
    }
    return is_right ? rule.marks.correct : rule.marks.wrong;
  });
}

RewardRule exact_rule(RightText right, const Marks& marks) {
  return rule_of([right = std::move(right), marks](const Rollout& rollout) {
    const std::string found = comparable(text_of(rollout), right);
    const std::vector<std::string> wanted = right_texts(rollout, right.field);
    const bool same = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& text) { return comparable(text, right) == found; });
    return same ? marks.correct : marks.wrong;
  });
}

RewardRule contains_rule(RightText right, const Marks& marks) {
  return rule_of([right = std::move(right), marks](const Rollout& rollout) {
    const std::string found = comparable(text_of(rollout), right);
    const std::vector<std::string> wanted = right_texts(rollout, right.field);
    const bool has = std::any_of(wanted.begin(), wanted.end(),
                                 [&](const std::string& text) { return found.find(comparable(text, right)) != std::string::npos; });
    return has ? marks.correct : marks.wrong;
  });
}

RewardRule overlap_rule(RightText right) {
  return rule_of([right = std::move(right)](const Rollout& rollout) {
    const std::u32string found = characters_of(comparable(text_of(rollout), right));
    double best = 0;
    for (const std::string& text : right_texts(rollout, right.field))
      best = std::max(best, overlap(found, characters_of(comparable(text, right))));
    return best;
  });
}

RewardRule length_rule(LengthRule rule) {
  return rule_of([rule](const Rollout& rollout) {
    const auto length = static_cast<double>(length_of(rollout, rule.unit));
    if (rule.target) return 0.0 - std::abs(length - static_cast<double>(*rule.target)) / static_cast<double>(*rule.target);
    if (rule.max_length) {
      const auto window = static_cast<double>(rule.window.value());
      return std::clamp((static_cast<double>(*rule.max_length) - window - length) / window, -1.0, 0.0);
    }
    if (!rule.limit) return length;
    const auto limit = static_cast<double>(*rule.limit);
    return std::min(0.0, limit - length) / static_cast<double>(rule.window.value_or(*rule.limit));
  });
}

}  // namespace kedge
