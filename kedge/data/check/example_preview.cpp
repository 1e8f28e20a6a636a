#include "kedge/data/check/example_preview.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kedge/data/sets/chat_dataset.h"
#include "kedge/data/sets/kto_dataset.h"
#include "kedge/data/sets/prompt_dataset.h"
#include "kedge/data/sets/regression_dataset.h"
#include "kedge/data/sets/sft_dataset.h"

namespace kedge {
namespace {

MaskedTokens masked_behind(TokenIds ids, int64_t num_prompt_tokens) {
  MaskedTokens tokens;
  const auto prompt = std::min(static_cast<size_t>(num_prompt_tokens), ids.size());
  tokens.append(std::span(ids).first(prompt), false);
  tokens.append(std::span(ids).subspan(prompt), true);
  return tokens;
}

// The length of the common prefix: where the answer starts, even if a token crosses the border.
int64_t num_common(const TokenIds& a, const TokenIds& b) { return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin(); }

MaskedTokens read_only(TokenIds ids) {
  MaskedTokens tokens;
  tokens.append(ids, false);
  return tokens;
}

RowViewer prompts_viewer(const DataCheckOptions& options) {
  const auto reader = std::make_shared<PromptReader>(options.data, options.chat);
  return [reader, options](const Rows& rows, int64_t example) {
    const Row row = rows.row(example);
    std::string text = reader->text(row);
    TokenIds ids = encode_text(options.encoder, ends_of(options.data), text);
    if (options.kind == DataKind::regression) static_cast<void>(read_labels(row, options.data.names, options.num_attributes));
    if (ids.empty()) row.fail(RowFault::empty_prompt, "a prompt without tokens");
    return RowView{{{"text", read_only(std::move(ids))}}, std::move(text)};
  };
}

RowViewer sft_viewer(const DataCheckOptions& options) {
  SftFilesConfig config = options.sft.train_ds;
  config.max_seq_length = std::numeric_limits<int64_t>::max();
  const auto reader = std::make_shared<SftReader>(config, options.encoder);
  return [reader](const Rows& rows, int64_t example) {
    const std::vector<std::string> pieces = reader->pieces(rows.row(example));
    RowView view{{{"text", reader->encode(pieces).tokens}}, ""};
    for (size_t i = 0; i + 1 < pieces.size(); ++i) view.prompt += pieces[i];
    return view;
  };
}

RowViewer chat_viewer(const DataCheckOptions& options) {
  const auto reader = std::make_shared<ChatReader>(options.sft, options.chat);
  const auto encoder = std::make_shared<PieceEncoder>(options.encoder);
  return [reader, encoder](const Rows& rows, int64_t example) {
    const std::vector<TextPiece> pieces = reader->pieces(rows.row(example));
    RowView view{{{"chat", encoder->encode(pieces)}}, ""};
    for (const TextPiece& piece : pieces) {
      if (piece.trained) break;
      view.prompt += piece.text;
    }
    return view;
  };
}

RowViewer preference_viewer(const DataCheckOptions& options) {
  const auto reader = std::make_shared<PreferenceReader>(options.data, options.chat);
  return [reader, options](const Rows& rows, int64_t example) {
    const bool two_lines = rows.rows_per_example() == 2;
    const PreferencePair pair =
        two_lines ? reader->read_lines(rows.row(example, 0), rows.row(example, 1)) : reader->read(rows.row(example));
    RowView view{{}, pair.prompt};
    const TextEnds ends = ends_of(options.data);
    const TokenIds prompt = encode_text(options.encoder, {.bos = ends.bos}, pair.prompt);
    TokenIds chosen = encode_text(options.encoder, ends, pair.prompt + pair.chosen);
    TokenIds rejected = encode_text(options.encoder, ends, pair.prompt + pair.rejected);
    const int64_t num_prompt_tokens = two_lines ? 0 : std::min(num_common(prompt, chosen), num_common(prompt, rejected));
    view.crosses = !two_lines && ends.boundary == PromptBoundary::exact && num_prompt_tokens < std::ssize(prompt);
    view.sides.emplace_back("chosen", masked_behind(std::move(chosen), num_prompt_tokens));
    view.sides.emplace_back("rejected", masked_behind(std::move(rejected), num_prompt_tokens));
    if (two_lines) {  // what both texts open with, a guess at the prompt
      const auto end = std::mismatch(pair.chosen.begin(), pair.chosen.end(), pair.rejected.begin(), pair.rejected.end()).first;
      view.prompt.assign(pair.chosen.begin(), end);
    }
    return view;
  };
}

RowViewer kto_viewer(const DataCheckOptions& options) {
  const auto reader = std::make_shared<KtoReader>(options.data, options.chat);
  return [reader, options](const Rows& rows, int64_t example) {
    const KtoRow row = reader->read(rows.row(example));
    JointTokens joint = encode_joint(options.encoder, ends_of(options.data), row.texts, [&] { return rows.where(example); });
    return RowView{{{row.chosen ? "chosen" : "rejected", masked_behind(std::move(joint.ids), joint.num_prompt_tokens)}}, row.texts.prompt};
  };
}

}  // namespace

int64_t RowView::num_tokens() const {
  size_t longest = 0;
  for (const auto& [name, tokens] : sides) longest = std::max(longest, tokens.ids.size());
  return static_cast<int64_t>(longest);
}

RowViewer make_viewer(const DataCheckOptions& options) {
  switch (options.kind) {
    case DataKind::sft:
      return sft_viewer(options);
    case DataKind::chat:
      return chat_viewer(options);
    case DataKind::preference:
      return preference_viewer(options);
    case DataKind::kto:
      return kto_viewer(options);
    default:  // prompts and regression are both one text
      return prompts_viewer(options);
  }
}

}  // namespace kedge
