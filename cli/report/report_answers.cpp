#include "cli/report/report_answers.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "kedge/core/error.h"
#include "kedge/metrics/progress.h"

#include "cli/report/svg_chart.h"
#include "cli/text/show_text.h"

namespace kedge::cli {
namespace {

using Rows = std::span<const RolloutRow>;

constexpr size_t kNumEach = 3, kNumRises = 2;
constexpr size_t kShownBytes = 1500;  // of a text; the rest is folded away

// A text as it is, its line ends kept. The rest of a long one is folded.
std::string text_html(std::string_view kind, std::string_view text) {
  const std::string opening = str("<div class=\"text ", kind, "\" dir=\"auto\">");
  if (text.empty()) return str(opening, "<em>(empty)</em></div>\n");
  if (text.size() <= kShownBytes + kShownBytes / 4) return str(opening, escaped(text), "</div>\n");
  size_t cut = kShownBytes;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;  // not inside a character
  return str(opening, escaped(text.substr(0, cut)), "<details><summary>and ", text.size() - cut, " bytes more</summary>",
             escaped(text.substr(cut)), "</details></div>\n");
}

std::string pieces_html(const std::vector<std::string>& pieces) {
  std::string html = "<p class=\"pieces\">";
  for (const std::string& piece : pieces) html += str("<span>", escaped(piece), "</span>");
  return html + "</p>\n";
}

std::string reward_text(const RolloutRow& row) {
  if (row.reward.failed()) return "no reward: " + row.reward.error;
  const std::optional<double> reward = number_of(row, AnswerKey::reward);
  return "reward " + (reward ? format_number(*reward) : std::string("not finite"));
}

std::vector<std::string> pieces_of(const RolloutRow& row) {
  std::vector<std::string> pieces = {reward_text(row)};
  if (row.reward.parts.size() > 1)
    for (const auto& [name, value] : row.reward.parts) pieces.push_back(str(name, " ", format_number(value)));
  if (const std::optional<double> kl = number_of(row, AnswerKey::kl)) pieces.push_back("KL " + format_number(*kl));
  pieces.push_back(str(row.rollout->response_length(), " tokens", row.rollout->finished ? "" : ", cut"));
  return pieces;
}

std::string answer_html(const RolloutRow& row) {
  return str("<div class=\"answer\">\n", pieces_html(pieces_of(row)), text_html("prompt", row.rollout->prompt),
             text_html("response", row.rollout->response), "</div>\n");
}

std::string answers_html(std::string_view title, Rows rows, const std::vector<size_t>& places) {
  if (places.empty()) return "";
  std::string html = str("<div class=\"column\"><h4>", title, "</h4>\n");
  for (const size_t place : places) html += answer_html(rows[place]);
  return html + "</div>\n";
}

// Rises of the reward, of pairs in which both have one.
std::optional<double> rise_of(const BeforeAfter& both, const AnswerPair& pair) {
  const std::optional<double> before = number_of(both.before.rows[pair.first], AnswerKey::reward);
  const std::optional<double> after = number_of(both.after.rows[pair.second], AnswerKey::reward);
  return before && after ? std::optional(*after - *before) : std::nullopt;
}

std::string pair_html(std::string_view title, const BeforeAfter& both, const AnswerPair& pair) {
  const RolloutRow &before = both.before.rows[pair.first], &after = both.after.rows[pair.second];
  const auto side = [](const RolloutRow& row, int64_t step) {
    std::vector<std::string> pieces = pieces_of(row);
    pieces.insert(pieces.begin(), str("step ", step));
    return str("<div>", pieces_html(pieces), text_html("response", row.rollout->response), "</div>\n");
  };
  return str("<div class=\"pair\"><h4>", title, "</h4>\n", text_html("prompt", before.rollout->prompt), "<div class=\"sides\">",
             side(before, both.before.steps[pair.first]), side(after, both.after.steps[pair.second]), "</div></div>\n");
}

}  // namespace

TypicalAnswers typical_answers(Rows rows, size_t num_each) {
  std::vector<size_t> order = choose_answers(rows, {.key = AnswerKey::reward});
  std::erase_if(order, [&](size_t place) { return !number_of(rows[place], AnswerKey::reward).has_value(); });
  const size_t size = order.size(), num = std::min(num_each, (size + 2) / 3);
  std::vector<size_t> ranks(size), outward(size);
  std::iota(ranks.begin(), ranks.end(), size_t{0});
  outward = ranks;
  const auto distance = [&](size_t rank) { return std::abs(static_cast<int64_t>(2 * rank + 1) - static_cast<int64_t>(size)); };
  std::stable_sort(outward.begin(), outward.end(), [&](size_t a, size_t b) { return distance(a) < distance(b); });
  std::vector<bool> is_used(size);
  // By preference, but to other prompts first; in the order of `preferred`.
  const auto pick = [&](const std::vector<size_t>& preferred) {
    std::vector<size_t> picked;
    std::set<std::string> prompts;
    for (const bool wants_new : {true, false})
      for (const size_t rank : preferred) {
        if (picked.size() == num || is_used[rank]) continue;
        if (!prompts.insert(rows[order[rank]].rollout->prompt).second && wants_new) continue;
        is_used[rank] = true;
        picked.push_back(rank);
      }
    return picked;
  };
  const auto places_of = [&](std::vector<size_t> picked) {
    std::transform(picked.begin(), picked.end(), picked.begin(), [&](size_t rank) { return order[rank]; });
    return picked;
  };
  TypicalAnswers result;
  result.best = places_of(pick(ranks));
  result.worst = places_of(pick({ranks.rbegin(), ranks.rend()}));
  std::vector<size_t> middle = pick(outward);
  std::sort(middle.begin(), middle.end());
  result.middle = places_of(middle);
  return result;
}

std::string step_html(int64_t step, Rows rows) {
  const TypicalAnswers typical = typical_answers(rows, kNumEach);
  return str("<h3>Answers of step ", step, "</h3>\n", pieces_html(step_pieces(numbers_of(rows))), "<div class=\"columns\">\n",
             answers_html("Best rewards", rows, typical.best), answers_html("In the middle", rows, typical.middle),
             answers_html("Worst rewards", rows, typical.worst), "</div>\n");
}

std::string before_after_html(const BeforeAfter& both) {
  std::vector<AnswerPair> pairs = both.pairs;
  std::erase_if(pairs, [&](const AnswerPair& pair) { return !rise_of(both, pair); });
  if (pairs.empty()) return "";
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const AnswerPair& a, const AnswerPair& b) { return *rise_of(both, a) > *rise_of(both, b); });
  const auto num_better = std::count_if(pairs.begin(), pairs.end(), [&](const AnswerPair& pair) { return *rise_of(both, pair) > 0; });
  const auto num_worse = std::count_if(pairs.begin(), pairs.end(), [&](const AnswerPair& pair) { return *rise_of(both, pair) < 0; });
  double before = 0, after = 0;
  for (const AnswerPair& pair : pairs) {
    before += *number_of(both.before.rows[pair.first], AnswerKey::reward) / static_cast<double>(pairs.size());
    after += *number_of(both.after.rows[pair.second], AnswerKey::reward) / static_cast<double>(pairs.size());
  }
  std::string html = str("<h3>The same prompts early and late</h3>\n<p>", pairs.size(), " answers to prompts that came again: reward ",
                         format_number(before), " before, ", format_number(after), " after; higher in ", num_better, ", lower in ",
                         num_worse, ", equal in ", std::ssize(pairs) - num_better - num_worse, ".</p>\n");
  const size_t size = pairs.size();
  for (size_t i = 0; i < std::min(kNumRises, size); ++i) html += pair_html(i == 0 ? "Rose most" : "Next", both, pairs[i]);
  if (size > kNumRises + 1) html += pair_html("In the middle", both, pairs[std::max(kNumRises, size / 2)]);
  if (size > kNumRises) html += pair_html(*rise_of(both, pairs.back()) < 0 ? "Fell most" : "Rose least", both, pairs.back());
  return html;
}

std::string samples_html(std::span<const Json> samples) {
  std::string html;
  for (const Json& sample : samples) {
    std::vector<std::string> pieces;
    std::string texts;
    for (const auto& [name, value] : sample.as_object("a sample")) {
      if (value.is_number() && name != "time") pieces.push_back(str(name, " ", format_number(value.as_number(name))));
      if (!value.is_text() || name == "table") continue;
      const bool is_usual = name == "prompt" || name == "response";
      texts +=
          (is_usual ? "" : str("<h4>", escaped(name), "</h4>\n")) + text_html(name == "prompt" ? name : "response", value.as_text(name));
    }
    html += str("<div class=\"answer\">\n", pieces_html(pieces), texts, "</div>\n");
  }
  return html.empty() ? "" : str("<h3>Samples</h3>\n<div class=\"columns\">\n", html, "</div>\n");
}

}  // namespace kedge::cli
