#include "kedge/text/tokenizer/normalizer.h"

#include <array>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_level.h"
#include "kedge/text/unicode/normal_form.h"

namespace kedge {
namespace {

constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms = {
    {{"NFC", NormalForm::nfc}, {"NFD", NormalForm::nfd}, {"NFKC", NormalForm::nfkc}, {"NFKD", NormalForm::nfkd}}};

// Characters that machine-translation models drop or take for a space.
bool dropped_by_nmt(char32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
bool space_for_nmt(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

// Calls keep(code, length) for each character and puts the kept ones together.
template <typename Keep>
void filter(std::string_view text, std::string& out, bool& first_kept, Keep&& keep) {
  first_kept = true;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    if (keep(utf8_decode(text.substr(at)))) {
      out.append(text.substr(at, length));
    } else if (at == 0) {
      first_kept = false;
    }
    at += length;
  }
}

}  // namespace

std::string one_char(const Json& json, const std::string& where) {
  const std::string& text = json.as_text(where);
  check(!text.empty() && utf8_length(text) == text.size(), where, ": expected one character, found \"", text, "\"");
  return text;
}

TextPattern::TextPattern(const Json& pattern, const std::string& where) {
  if (const Json* text = pattern.find("String")) {
    literal_ = text->as_text(where + ".String");
    if (literal_.empty()) regex_ = std::make_unique<Regex>("", where);
    return;
  }
  const std::string at = where + ".Regex";
  regex_ = std::make_unique<Regex>(pattern.at("Regex", where).as_text(at), at);
}

void TextPattern::for_each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const {
  if (regex_ != nullptr) return regex_->for_each_match(text, found);
  if (literal_.empty()) return;
  for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size()))
    found(at, at + literal_.size());
}

std::string TextPattern::replace(std::string_view text, std::string_view content) const {
  std::string out;
  size_t done = 0;
  for_each_match(text, [&](size_t start, size_t end) {
    out.append(text.substr(done, start - done));
    out.append(content);
    done = end;
  });
  out.append(text.substr(done));
  return out;
}

Normalizer::Normalizer(const Json* json, const std::string& where) {
  if (json != nullptr && !json->is_null()) add(*json, where);
}

void Normalizer::add(const Json& json, const std::string& where) {
  const std::string& type = json.at("type", where).as_text(where + ".type");
  const auto flag = [&](const char* key) { return json.at(key, where).as_bool(where + "." + key); };
  const auto text = [&](const char* key) { return json.at(key, where).as_text(where + "." + key); };
  for (const auto& [name, form] : kForms)
    if (type == name) return static_cast<void>(steps_.emplace_back(Form{form}));
  if (type == "Sequence") {
    const Json::Array& parts = json.at("normalizers", where).as_array(where + ".normalizers");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], str(where, ".normalizers[", i, "]"));
  } else if (type == "Lowercase") {
    steps_.emplace_back(Lowercase{});
  } else if (type == "Strip") {
    steps_.emplace_back(Strip{flag("strip_left"), flag("strip_right")});
  } else if (type == "StripAccents") {
    steps_.emplace_back(StripAccents{});
  } else if (type == "Nmt") {
    steps_.emplace_back(Nmt{});
  } else if (type == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (type == "Prepend") {
    steps_.emplace_back(Prepend{text("prepend")});
  } else if (type == "Replace") {
    steps_.emplace_back(Replace{TextPattern(json.at("pattern", where), where + ".pattern"), text("content")});
  } else if (type == "Precompiled") {
    steps_.emplace_back(Precompiled{Charsmap::from_base64(text("precompiled_charsmap"), where + ".precompiled_charsmap")});
  } else {
    throw UsageError(str(where, ": the normalizer type \"", type, "\" is not supported"));
  }
}

Normalizer::Result Normalizer::apply(std::string_view text) const {
  Result result{std::string(text), true};
  for (const Step& step : steps_) {
    if (result.text.empty()) break;
    std::visit([&](const auto& known) { run(known, result); }, step);
    check(result.text.size() <= longest_rewriting(text.size()), "the tokenizer's normalizer makes ", result.text.size(), " bytes out of ",
          text.size());
  }
  return result;
}

void Normalizer::run(const Form& step, Result& result) { result.text = to_normal_form(result.text, step.form); }

void Normalizer::run(const Lowercase&, Result& result) { result.text = to_lower_case(result.text); }

void Normalizer::run(const Strip& step, Result& result) {
  const CharTable& table = char_table();
  std::string_view text = result.text;
  if (step.left) {
    const size_t before = text.size();
    while (!text.empty() && table.is_space(utf8_decode(text))) text.remove_prefix(utf8_length(text));
    if (text.size() != before) result.keeps_start = false;
  }
  if (step.right) {
    size_t end = text.size();  // after the last character that is not a space
    for (size_t at = 0, kept = 0; at <= text.size(); at += utf8_length(text.substr(at))) {
      if (at == text.size()) {
        end = kept;
        break;
      }
      if (!table.is_space(utf8_decode(text.substr(at)))) kept = at + utf8_length(text.substr(at));
    }
    text = text.substr(0, end);
  }
  result.text = std::string(text);
}

void Normalizer::run(const StripAccents&, Result& result) {
  const CharTable& table = char_table();
  std::string out;
  bool first_kept = true;
  filter(result.text, out, first_kept, [&](char32_t code) { return !table.is_accent(code); });
  result.keeps_start &= first_kept;
  result.text = std::move(out);
}

void Normalizer::run(const Nmt&, Result& result) {
  std::string kept;
  bool first_kept = true;
  filter(result.text, kept, first_kept, [](char32_t code) { return !dropped_by_nmt(code); });
  result.keeps_start &= first_kept;
  result.text.clear();
  for (std::string_view rest = kept; !rest.empty(); rest.remove_prefix(utf8_length(rest))) {
    const char32_t code = utf8_decode(rest);
    utf8_append(result.text, space_for_nmt(code) ? U' ' : code);
  }
}

void Normalizer::run(const ByteLevel&, Result& result) {
  std::string out;
  append_byte_level(out, result.text);
  result.text = std::move(out);
}

void Normalizer::run(const Prepend& step, Result& result) { result.text.insert(0, step.prefix); }

void Normalizer::run(const Replace& step, Result& result) {
  step.pattern.for_each_match(result.text, [&](size_t start, size_t end) {
    if (start > 0 || end == 0) return;
    // What takes the place of several characters counts as coming from the last of them.
    if (step.content.empty() || end != utf8_length(result.text)) result.keeps_start = false;
  });
  result.text = step.pattern.replace(result.text, step.content);
}

void Normalizer::run(const Precompiled& step, Result& result) { result.text = step.map.replace_graphemes(result.text); }

}  // namespace kedge
