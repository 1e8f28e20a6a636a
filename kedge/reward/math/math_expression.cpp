#include "kedge/reward/math/math_expression.h"

#include <utility>

#include "kedge/reward/math/math_parser.h"
#include "kedge/reward/math/math_words.h"

namespace kedge {

std::optional<MathNode> parse_math(std::string_view text) {
  auto tokens = math_tokens(text);
  if (!tokens || tokens->empty()) return std::nullopt;
  if (tokens->size() == 1 && tokens->front().kind == MathToken::Kind::text && tokens->front().text.size() < text.size())
    return parse_math(tokens->front().text);  // \text{...} around everything
  if (is_text_answer(*tokens)) {
    std::string words;
    for (const MathToken& token : *tokens) words.append(token.is_spaced && !words.empty() ? " " : "").append(token.text);
    if (words.size() > kLongestTextAnswer) return std::nullopt;
    return MathNode{.kind = MathNode::Kind::text, .name = comparable_text(words)};
  }
  try {
    return MathParser(std::move(*tokens)).answer();
  } catch (const UnreadableMath&) {
    return std::nullopt;
  }
}

}  // namespace kedge
