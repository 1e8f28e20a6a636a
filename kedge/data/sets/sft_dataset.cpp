#include "kedge/data/sets/sft_dataset.h"

#include <algorithm>
#include <numeric>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr TokenId kSepId = 0;

std::string without_blanks_around(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    if (std::string item = without_blanks_around(text.substr(0, end)); !item.empty()) items.push_back(std::move(item));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return items;
}

void take_away(TokenIds& ids, size_t count, TruncationSide side) {
  const auto step = static_cast<std::ptrdiff_t>(count);
  if (side == TruncationSide::left) {
    ids.erase(ids.begin(), ids.begin() + step);
  } else {
    ids.erase(ids.end() - step, ids.end());
  }
}

[[noreturn]] void fail_missing(const Row& row, const std::string& field, const SftFilesConfig& config) {
  const bool is_conversation = row.find("messages") != nullptr || row.find("conversations") != nullptr;
  row.fail_missing(Json(field).dump(), is_conversation
                                           ? "rows of conversations need model.data.chat=true"
                                           : str("prompt_template=\"", config.prompt_template, "\" and label_key=", config.label_key,
                                                 " of model.data.train_ds say which fields are used"));
}

}  // namespace

Rows open_sft_data(const SftFilesConfig& config, std::string_view key) {
  check(!config.file_path.is_null(), key, ".file_path: not set; expected a file");
  return Rows(parse_files(config.file_path, str(key, ".file_path")), 1);
}

void truncate_pieces(std::vector<TokenIds>& pieces, const std::vector<bool>& shortened, size_t excess, TruncationSide side) {
  const auto num_fields = static_cast<size_t>(std::count(shortened.begin(), shortened.end(), true));
  size_t left = excess, number = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!shortened[i]) continue;
    const size_t share = excess / num_fields + (number++ < excess % num_fields ? 1 : 0);
    const size_t count = std::min(share, pieces[i].size());
    take_away(pieces[i], count, side);
    left -= count;
  }
  for (size_t step = 0; step < pieces.size() && left > 0; ++step) {
    TokenIds& piece = pieces[side == TruncationSide::left ? step : pieces.size() - 1 - step];
    const size_t count = std::min(left, piece.size());
    take_away(piece, count, side);
    left -= count;
  }
}

SftReader::SftReader(const SftFilesConfig& config, TextEncoder encoder)
    : config_(config),
      encoder_(std::move(encoder)),
      template_(config.prompt_template, "prompt_template"),
      truncation_fields_(comma_list(config.truncation_field)),
      adds_blank_(adds_leading_blank(encoder_)) {
  const auto& last = template_.pieces().back();
  check(last.field == config_.label_key, "prompt_template: \"", config_.prompt_template, "\" does not end with {", config_.label_key,
        "} (label_key)");
  for (const std::string& field : truncation_fields_)
    check(template_.uses(field), "truncation_field: \"", field, "\" is not in prompt_template \"", config_.prompt_template, "\"");
}

std::vector<std::string> SftReader::pieces(const Row& row) const {
  std::vector<std::string> texts;
  for (const PromptTemplate::Piece& piece : template_.pieces()) {
    std::string text = piece.text;
    if (adds_blank_ && text.starts_with(' ')) text.erase(0, 1);  // the tokenizer puts it back
    if (!piece.field.empty()) {
      if (row.find(piece.field) == nullptr) fail_missing(row, piece.field, config_);
      text += without_blanks_around(row.text(piece.field));
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

TruncatedTokens SftReader::encode(std::span<const std::string> pieces) const {
  std::vector<TokenIds> ids;
  for (const std::string& piece : pieces) ids.push_back(encoder_.encode(piece));
  const bool had_answer = !ids.back().empty();
  TruncatedTokens result;
  result.truncated = shorten(ids);
  result.answer_lost = had_answer && ids.back().empty();

  MaskedTokens& tokens = result.tokens;
  if (config_.add_bos) tokens.append({{encoder_.bos_id()}}, false);
  for (size_t i = 0; i + 1 < ids.size(); ++i) tokens.append(ids[i], false);
  if (config_.add_sep) tokens.append({{kSepId}}, false);
  tokens.append(ids.back(), true);
  if (config_.add_eos) tokens.append({{encoder_.eos_id()}}, true);
  return result;
}

bool SftReader::shorten(std::vector<TokenIds>& pieces) const {
  size_t total = (config_.add_bos ? 1 : 0) + (config_.add_sep ? 1 : 0) + (config_.add_eos ? 1 : 0);
  for (const TokenIds& piece : pieces) total += piece.size();
  const auto limit = static_cast<size_t>(config_.max_seq_length);
  if (total <= limit) return false;
  std::vector<bool> shortened;
  for (const PromptTemplate::Piece& piece : template_.pieces())
    shortened.push_back(std::find(truncation_fields_.begin(), truncation_fields_.end(), piece.field) != truncation_fields_.end());
  truncate_pieces(pieces, shortened, total - limit, config_.truncation_method);
  return true;
}

SftDataset::SftDataset(Rows rows, TextEncoder encoder, const SftFilesConfig& config)
    : rows_(std::move(rows)), reader_(config, std::move(encoder)) {
  for_each_example(size(), [&](int64_t row) { static_cast<void>(encode(row)); });
}

TruncatedTokens SftDataset::encode(int64_t row) const {
  TruncatedTokens result = reader_.encode(reader_.pieces(rows_.row(row)));
  reader_.encoder().check_ids(result.tokens.ids, [&] { return rows_.where(row); });
  return result;
}

MaskedTokens SftDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": row ", index, " of ", size());
  TruncatedTokens result = encode(index);
  if (result.answer_lost) {
    truncations_.answers_lost.note(rows_.where(index), " is so long that none of its answer is left");
  } else if (result.truncated) {
    truncations_.truncated.note(rows_.where(index), " is too long and was shortened");
  }
  return std::move(result.tokens);
}

}  // namespace kedge
