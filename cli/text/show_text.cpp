#include "cli/text/show_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kedge/core/error.h"
#include "kedge/metrics/progress.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

constexpr size_t kPromptLines = 3, kAnswerLines = 8;
constexpr size_t kGutter = 5;  // columns before a text: "   > "
constexpr size_t kMinWidth = 20;
constexpr size_t kMaxWidth = 120;  // longer lines are hard to read
constexpr std::string_view kBold = "\x1b[1m", kDim = "\x1b[2m", kRed = "\x1b[31m", kGreen = "\x1b[32m", kYellow = "\x1b[33m";

std::string coloured(std::string_view colour, std::string_view text, const PageLook& look) {
  return look.colour && !colour.empty() && !text.empty() ? str(colour, text, "\x1b[0m") : std::string(text);
}

std::string_view colour_of(char mark) { return mark == '|' ? kDim : mark == '-' ? kRed : mark == '+' ? kGreen : std::string_view(); }

std::string number_or_dash(std::optional<double> value) { return value ? format_number(*value) : "-"; }

std::string with_sign(double value) { return str(value < 0 ? "" : "+", format_number(value)); }

std::string percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-" : str(std::llround(100.0 * static_cast<double>(part) / static_cast<double>(whole)), " %");
}

size_t environment_columns() {
  const char* text = std::getenv("COLUMNS");
  size_t columns = 0;
  if (text == nullptr) return 0;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), columns);
  return error == std::errc() && end == view.data() + view.size() ? columns : 0;
}

size_t output_columns() {
  if (const size_t columns = environment_columns(); columns > 0) return columns;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::string tokens_text(const RolloutRow& row) {
  const int64_t length = row.rollout->response_length();
  return str(length, length == 1 ? " token" : " tokens", row.rollout->finished ? "" : ", cut");
}

std::string place_text(const RolloutRow& row) { return str("prompt ", row.rollout->prompt_id, " answer ", row.rollout->sample); }

std::vector<std::string> answer_pieces(const RolloutRow& row) {
  std::vector<std::string> pieces;
  const RowReward& reward = row.reward;
  pieces.push_back(str("reward ", number_or_dash(number_of(row, AnswerKey::reward))));
  if (!reward.failed()) pieces.push_back(str("advantage ", with_sign(row.advantage)));
  if (const auto kl = number_of(row, AnswerKey::kl)) pieces.push_back(str("KL ", format_number(*kl)));
  pieces.push_back(tokens_text(row));
  if (!row.trains) pieces.emplace_back("not trained on");
  pieces.push_back(place_text(row));
  // A single part that equals the reward is left out.
  if (reward.parts.size() > 1 || (reward.parts.size() == 1 && reward.parts[0].second != reward.value))
    for (const auto& [name, value] : reward.parts) pieces.push_back(str(name, " ", format_number(value)));
  return pieces;
}

// "reward 1.2 -> 3.4 (+2.2)"
std::string change_text(std::string_view name, std::optional<double> before, std::optional<double> after) {
  std::string text = str(name, " ", number_or_dash(before), " -> ", number_or_dash(after));
  if (before && after && *before != *after) text += str(" (", with_sign(*after - *before), ")");
  return text;
}

std::string failure_text(const RolloutRow& row, const PageLook& look) {
  std::string text;
  if (!row.reward.failed()) return text;
  for (const std::string& line : wrap(printable("no reward: " + row.reward.error), look.width - kGutter))
    text += str(std::string(kGutter, ' '), coloured(kYellow, line, look), "\n");
  return text;
}

}  // namespace

PageLook look_of_output(bool full) {
  return {.width = std::clamp(output_columns(), kMinWidth, kMaxWidth), .colour = wants_colour(), .full = full};
}

std::string heading_text(std::string_view lead, const std::vector<std::string>& pieces, const PageLook& look) {
  constexpr size_t kGap = 2;
  const size_t indent = std::min(columns_of(lead), look.width / 2);
  std::string text = coloured(kBold, lead, look);
  size_t used = columns_of(lead);
  bool is_begin = lead.empty();
  for (const std::string& piece : pieces) {
    std::vector<std::string> lines = wrap(printable(piece), look.width - indent - kGap);
    if (!is_begin && used + kGap + columns_of(lines[0]) > look.width) {
      text += "\n" + std::string(indent, ' ');
      used = indent;
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) text += "\n" + std::string(indent, ' ');
      if (i > 0) used = indent;
      const size_t gap = is_begin ? 0 : kGap;
      text += std::string(gap, ' ') + lines[i];
      used += gap + columns_of(lines[i]);
      is_begin = false;
    }
  }
  return text + "\n";
}

std::string marked_text(char mark, std::string_view text, const PageLook& look) {
  std::vector<std::string> lines = wrap(printable(text), look.width - kGutter);
  while (lines.size() > 1 && lines.back().empty()) lines.pop_back();
  if (!look.full) lines = mark == '|' ? last_lines(std::move(lines), kPromptLines) : first_lines(std::move(lines), kAnswerLines);
  std::string out;
  for (const std::string& line : lines) {
    const std::string whole = str(std::string(kGutter - 2, ' '), mark, line.empty() ? "" : " ", line);
    out += coloured(colour_of(mark), whole, look) + "\n";
  }
  return out;
}

std::vector<std::string> step_pieces(const StepNumbers& numbers) {
  std::vector<std::string> pieces;
  pieces.push_back(str(numbers.num_answers, " answers to ", numbers.num_prompts, numbers.num_prompts == 1 ? " prompt" : " prompts"));
  if (numbers.reward)
    pieces.push_back(str("reward ", format_number(*numbers.reward), " (sd ", format_number(*numbers.reward_std), ", ",
                         format_number(*numbers.reward_min), " to ", format_number(*numbers.reward_max), ")"));
  if (numbers.kl) pieces.push_back(str("KL ", format_number(*numbers.kl)));
  pieces.push_back(str("length ", number_or_dash(numbers.length)));
  pieces.push_back(str("ended ", percent(numbers.num_ended, numbers.num_answers)));
  if (numbers.num_failed > 0) pieces.push_back(str(numbers.num_failed, " without a reward"));
  return pieces;
}

std::string answer_text(std::string_view lead, const RolloutRow& row, WithPrompt prompt, const PageLook& look) {
  std::string text = heading_text(lead, answer_pieces(row), look) + failure_text(row, look);
  if (prompt == WithPrompt::yes) text += marked_text('|', row.rollout->prompt, look);
  return text + marked_text('>', row.rollout->response, look);
}

std::string pair_text(std::string_view lead, const RolloutRow& first, const RolloutRow& second, const PageLook& look) {
  std::vector<std::string> pieces = {change_text("reward", number_of(first, AnswerKey::reward), number_of(second, AnswerKey::reward)),
                                     change_text("KL", number_of(first, AnswerKey::kl), number_of(second, AnswerKey::kl)),
                                     str(first.rollout->response_length(), " -> ", tokens_text(second)), place_text(first)};
  if (first.reference.empty() && second.reference.empty()) pieces.erase(pieces.begin() + 1);
  std::string text = heading_text(lead, pieces, look) + marked_text('|', first.rollout->prompt, look);
  if (first.rollout->response == second.rollout->response) return text + marked_text('=', first.rollout->response, look);
  return text + marked_text('-', first.rollout->response, look) + marked_text('+', second.rollout->response, look);
}

std::vector<std::string> pairs_pieces(std::span<const AnswerPair> pairs, std::span<const RolloutRow> first,
                                      std::span<const RolloutRow> second) {
  int64_t num_differ = 0, num_better = 0, num_worse = 0, num_judged = 0;
  double before = 0, after = 0;
  for (const AnswerPair& pair : pairs) {
    num_differ += pair.differs ? 1 : 0;
    const auto old = number_of(first[pair.first], AnswerKey::reward), now = number_of(second[pair.second], AnswerKey::reward);
    if (!old || !now) continue;
    num_judged += 1;
    before += *old;
    after += *now;
    num_better += *now > *old ? 1 : 0;
    num_worse += *now < *old ? 1 : 0;
  }
  std::vector<std::string> pieces = {str(pairs.size(), " pairs, ", num_differ, " differ")};
  if (num_judged > 0) {
    const auto count = static_cast<double>(num_judged);
    pieces.push_back(change_text("reward", before / count, after / count));
    pieces.push_back(str(num_better, " better, ", num_worse, " worse"));
  }
  return pieces;
}

std::string steps_heading(const PageLook& look) {
  return coloured(kBold, "  step answers    reward      sd     min     max         KL length ended failed", look) + "\n";
}

std::string steps_line(int64_t step, const StepNumbers& numbers) {
  return str(pad_left(str(step), 6), pad_left(str(numbers.num_answers), 8), pad_left(number_or_dash(numbers.reward), 10),
             pad_left(number_or_dash(numbers.reward_std), 8), pad_left(number_or_dash(numbers.reward_min), 8),
             pad_left(number_or_dash(numbers.reward_max), 8), pad_left(number_or_dash(numbers.kl), 11),
             pad_left(number_or_dash(numbers.length), 7), pad_left(percent(numbers.num_ended, numbers.num_answers), 6),
             pad_left(str(numbers.num_failed), 7), "\n");
}

std::string remark_text(std::string_view text, const PageLook& look) {
  std::string out;
  for (const std::string& line : wrap(printable(text), look.width)) out += coloured(kDim, line, look) + "\n";
  return out;
}

}  // namespace kedge::cli
