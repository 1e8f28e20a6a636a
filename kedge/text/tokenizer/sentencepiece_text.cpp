#include "kedge/text/tokenizer/sentencepiece_text.h"

#include "kedge/core/utf8.h"

namespace kedge {

SentencePieceText::SentencePieceText(const SentencePieceModel& model, const std::string& origin)
    : charsmap_(model.charsmap, origin + ": normalizer_spec.precompiled_charsmap"),
      space_(model.escape_whitespaces ? "\xE2\x96\x81" : " "),
      dummy_prefix_(model.add_dummy_prefix),
      remove_extra_(model.remove_extra_whitespaces),
      space_behind_(model.whitespace_as_suffix) {
  std::vector<std::pair<std::string_view, int32_t>> symbols;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (model.pieces[id].type == SentencePieceModel::PieceType::user_defined)
      symbols.emplace_back(model.pieces[id].text, static_cast<int32_t>(id));
  symbols_ = ByteTrie(std::move(symbols));
}

SentencePieceText::Step SentencePieceText::next(std::string_view text) const {
  if (const auto symbol = symbols_.longest(text); symbol.length > 0) return {text.substr(0, symbol.length), symbol.length};
  if (!charsmap_.empty())
    if (const auto found = charsmap_.longest(text); found.length > 0) return {found.replacement, found.length};
  const size_t length = utf8_length(text);
  if (length == 0) return {"\xEF\xBF\xBD", 1};  // a replacement ended inside a character
  return {text.substr(0, length), length};
}

std::string SentencePieceText::normalize(std::string_view text, bool dummy_prefix) const {
  if (remove_extra_) {
    for (Step step; !text.empty(); text.remove_prefix(step.length)) {
      step = next(text);
      if (step.text != " ") break;
    }
  }
  if (text.empty()) return {};
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  const bool dummy = dummy_prefix && dummy_prefix_;
  if (dummy && !space_behind_) out += space_;
  bool after_space = remove_extra_;
  while (!text.empty()) {
    Step step = next(text);
    text.remove_prefix(step.length);
    while (after_space && step.text.starts_with(' ')) step.text.remove_prefix(1);
    for (const char c : step.text) c == ' ' ? static_cast<void>(out.append(space_)) : out.push_back(c);
    if (!step.text.empty()) after_space = remove_extra_ && step.text.ends_with(' ');
  }
  if (remove_extra_)
    while (out.ends_with(space_)) out.resize(out.size() - space_.size());
  if (dummy && space_behind_) out += space_;
  return out;
}

}  // namespace kedge
