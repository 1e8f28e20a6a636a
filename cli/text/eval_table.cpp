#include "cli/text/eval_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/metrics/progress.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

constexpr size_t kGap = 2;                        // columns between two
constexpr size_t kLeastBar = 5, kWidestBar = 24;  // columns
constexpr std::string_view kSources = "rewards/", kWatched = "watch/";

bool is_part(std::string_view name) { return name.starts_with(kSources) || name.starts_with(kWatched); }

// Of the single sources, in the order in which the policies first have them.
std::vector<std::string> part_names(const EvalRows& rows) {
  std::vector<std::string> names;
  for (const EvalRow& row : rows)
    for (const auto& [name, value] : row.answers)
      if (is_part(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_text()) return value.dump();
  std::string text = value.as_text("");
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, digits);
  return error == std::errc() ? std::string(text.data(), end) : format_number(value);
}

std::string percent(double share) { return std::to_string(std::llround(share * 100)); }

// Numbers are right-aligned, names left-aligned.
// A long path is shortened to its end.
std::string name_cell(const std::string& name) {
  constexpr size_t kWidest = 24;
  std::string cell = printable(name);
  if (columns_of(cell) <= kWidest) return cell;
  const std::string_view dots = "...";
  while (columns_of(cell) > kWidest - dots.size()) cell.erase(0, std::max<size_t>(1, utf8_length(cell)));
  return str(dots, cell);
}

struct Column {
  std::string heading;
  std::vector<std::string> cells;
  int rank = 0;  // those of the highest rank are left out first

  [[nodiscard]] size_t width() const {
    size_t widest = columns_of(heading);
    for (const std::string& cell : cells) widest = std::max(widest, columns_of(cell));
    return widest;
  }
};

// Numbers under each other with as many digits as the largest leaves room for.
std::vector<std::string> number_cells(const std::vector<std::optional<double>>& numbers) {
  double largest = 0;
  for (const auto& number : numbers)
    if (number && std::isfinite(*number)) largest = std::max(largest, std::abs(*number));
  const int digits = largest < 9.9995 ? 3 : largest < 99.995 ? 2 : largest < 9999.95 ? 1 : 0;
  std::vector<std::string> cells;
  for (const auto& number : numbers) cells.push_back(!number ? "-" : largest >= 1e7 ? format_number(*number) : fixed(*number, digits));
  return cells;
}

class Table {
 public:
  Table(const EvalRows& rows, const TableLook& look) : rows_(rows), look_(look) {}

  EvalTable take() {
    add_columns();
    leave_out();
    const size_t left = look_.page.width > width() + kGap ? look_.page.width - width() - kGap : 0;
    const size_t bar = left >= kLeastBar && shows_spread() ? std::min(left, kWidestBar) : 0;
    std::string text = line("", [](const Column& column) { return column.heading; }) + "\n";
    if (look_.page.colour) text = str("\x1b[1m", text.substr(0, text.size() - 1), "\x1b[0m\n");
    for (size_t i = 0; i < rows_.size(); ++i) {
      text += line(look_.marked == i ? "*" : "", [&](const Column& column) { return column.cells[i]; });
      if (bar > 0) text += bar_of(i, bar);
      text += "\n";
    }
    return {text, left_out_};
  }

 private:
  void add(std::string heading, int rank, std::vector<std::string> cells) {
    const bool empty = std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell == "-"; });
    if (!empty) columns_.push_back({std::move(heading), std::move(cells), rank});
  }
  void add_numbers(std::string heading, int rank, auto&& number_of) {
    std::vector<std::optional<double>> numbers;
    for (const EvalRow& row : rows_) numbers.push_back(number_of(row));
    add(std::move(heading), rank, number_cells(numbers));
  }
  void add_texts(std::string heading, int rank, auto&& text_of) {
    std::vector<std::string> cells;
    for (const EvalRow& row : rows_) cells.push_back(text_of(row));
    add(std::move(heading), rank, std::move(cells));
  }

  void add_columns() {
    add_texts(look_.names, 0, [](const EvalRow& row) { return name_cell(row.name); });
    add_numbers("reward", 0, [](const EvalRow& row) { return row.mean_reward(); });
    add_numbers("+-", 3, [](const EvalRow& row) { return row.reward ? row.reward->error : std::nullopt; });
    add_texts("win %", 0, [](const EvalRow& row) { return row.against ? percent(row.against->wins.mean) : "-"; });
    add_texts("95 %", 2, [](const EvalRow& row) {
      return row.against ? str(percent(row.against->interval.low), "-", percent(row.against->interval.high)) : "-";
    });
    for (size_t i = 0; i < rows_.front().passes.size(); ++i)
      add_numbers(str("pass@", rows_.front().passes[i].first), 1,
                  [&](const EvalRow& row) { return i < row.passes.size() ? std::optional(row.passes[i].second) : std::nullopt; });
    add_numbers("KL", 2, [](const EvalRow& row) { return row.kl; });
    add_numbers("length", 5, [](const EvalRow& row) { return row.answers.find("generation_length"); });
    add_texts("ended", 6, [](const EvalRow& row) {
      const auto ended = row.answers.find("fraction_of_samples_properly_ended");
      return ended ? percent(*ended) + " %" : "-";
    });
    add_numbers("dist-2", 7, [](const EvalRow& row) { return row.answers.find("distinct_2"); });
    add_texts("failed", 1, [](const EvalRow& row) {
      const auto failed = row.answers.find("failed_rewards");
      return failed ? std::to_string(std::llround(*failed)) : "-";
    });
    add_parts();
  }
  // With a single source it equals the reward.
  void add_parts() {
    const std::vector<std::string> names = part_names(rows_);
    const auto num_sources = std::count_if(names.begin(), names.end(), [](const std::string& name) { return name.starts_with(kSources); });
    for (const std::string& name : names) {
      const bool watched = name.starts_with(kWatched);
      if (!watched && num_sources == 1) continue;
      add_numbers(watched ? name : name.substr(kSources.size()), 4, [&](const EvalRow& row) { return row.answers.find(name); });
    }
  }

  [[nodiscard]] size_t width() const {
    size_t sum = kGap;  // the mark
    for (const Column& column : columns_) sum += column.width() + kGap;
    return sum - kGap;
  }
  void leave_out() {
    while (width() > look_.page.width) {
      const auto last =
          std::max_element(columns_.rbegin(), columns_.rend(), [](const Column& a, const Column& b) { return a.rank < b.rank; });
      if (last->rank == 0) return;
      left_out_.insert(left_out_.begin(), last->heading);
      columns_.erase(std::next(last).base());
    }
  }

  std::string line(std::string_view mark, auto&& cell_of) const {
    std::string text = str(mark, std::string(kGap - mark.size(), ' '));
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) text += std::string(kGap, ' ');
      const bool is_name = i == 0 && look_.names != kStep;
      text += (is_name ? pad_right : pad_left)(cell_of(columns_[i]), columns_[i].width());
    }
    return text;
  }

  [[nodiscard]] std::pair<double, double> range() const {
    std::optional<double> low, high;
    for (const EvalRow& row : rows_)
      if (const auto reward = row.mean_reward(); reward && std::isfinite(*reward)) {
        low = std::min(low.value_or(*reward), *reward);
        high = std::max(high.value_or(*reward), *reward);
      }
    return {low.value_or(0), high.value_or(0)};
  }
  [[nodiscard]] bool shows_spread() const { return range().second > range().first; }
  // From the lowest reward, which has none, to the highest, which has all of it.
  [[nodiscard]] std::string bar_of(size_t row, size_t width) const {
    const std::optional<double> reward = rows_[row].mean_reward();
    if (!reward || !std::isfinite(*reward)) return "";
    const auto [low, high] = range();
    const double share = (*reward - low) / (high - low);
    std::string bar;
    if (look_.utf8) {
      static constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
      const auto eighths = static_cast<size_t>(std::llround(share * static_cast<double>(width) * 8));
      for (size_t i = 0; i < eighths / 8; ++i) bar += "█";
      bar += kEighths.at(eighths % 8);
    } else {
      bar = std::string(static_cast<size_t>(std::llround(share * static_cast<double>(width))), '=');
    }
    return bar.empty() ? "" : std::string(kGap, ' ') + bar;
  }

  const EvalRows& rows_;
  const TableLook& look_;
  std::vector<Column> columns_;
  std::vector<std::string> left_out_;
};

}  // namespace

Json eval_json(const EvalRow& row) {
  const auto count = [&](const char* name) {
    const std::optional<double> value = row.answers.find(name);
    return Json(value ? int64_t{std::llround(*value)} : int64_t{0});
  };
  Json json(Json::Object{{"policy", row.name}, {"step", row.step ? Json(*row.step) : Json()}});
  json.append("reward", number_or_null(row.mean_reward()));
  json.append("reward_se", number_or_null(row.reward ? row.reward->error : std::nullopt));
  json.append("reward_std", number_or_null(row.answers.find("rewards_std")));
  for (const auto& [name, value] : row.answers)
    if (is_part(name)) json.append(name, Json(value));
  const auto compared = [&](auto&& of) { return row.against ? number_or_null(of(*row.against)) : Json(); };
  json.append("win_rate", compared([](const Comparison& one) { return std::optional(one.wins.mean); }));
  json.append("win_low", compared([](const Comparison& one) { return std::optional(one.interval.low); }));
  json.append("win_high", compared([](const Comparison& one) { return std::optional(one.interval.high); }));
  json.append("gain", compared([](const Comparison& one) { return std::optional(one.gain.mean); }));
  json.append("gain_se", compared([](const Comparison& one) { return one.gain.error; }));
  for (const auto& [k, rate] : row.passes) json.append(str("pass@", k), Json(rate));
  json.append("kl", number_or_null(row.kl));
  json.append("kl_sum", number_or_null(row.kl_sum));
  json.append("length", number_or_null(row.answers.find("generation_length")));
  json.append("finished", number_or_null(row.answers.find("fraction_of_samples_properly_ended")));
  json.append("distinct_2", number_or_null(row.answers.find("distinct_2")));
  json.append("logged_reward", number_or_null(row.logged));
  json.append("prompts", Json(row.reward ? row.reward->num_prompts : 0));
  json.append("answers", count("rollout_size"));
  json.append("failed", count("failed_rewards"));
  return json;
}

std::string eval_csv(const EvalRows& rows) {
  std::vector<Json> lines;
  std::vector<std::string> names;
  for (const EvalRow& row : rows) {
    lines.push_back(eval_json(row));
    // A source that only some policies have is placed after the same name as there.
    size_t place = 0;
    for (const auto& [name, value] : lines.back().as_object("")) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) names.insert(names.begin() + static_cast<int64_t>(place), name);
      place = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin()) + 1;
    }
  }
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ",", csv_field(Json(name)));
  text += "\n";
  for (const Json& line : lines) {
    for (size_t i = 0; i < names.size(); ++i) {
      const Json* value = line.find(names[i]);
      text += str(i == 0 ? "" : ",", value == nullptr ? "" : csv_field(*value));
    }
    text += "\n";
  }
  return text;
}

EvalTable eval_table(const EvalRows& rows, const TableLook& look) { return rows.empty() ? EvalTable() : Table(rows, look).take(); }

std::optional<size_t> best_of(const EvalRows& rows) {
  std::optional<size_t> best;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<double> reward = rows[i].mean_reward();
    if (reward && (!best || *reward > *rows[*best].mean_reward())) best = i;
  }
  return best;
}

std::string wins_text(const Comparison& against) {
  return str("wins ", percent(against.wins.mean), " % (", percent(against.interval.low), "-", percent(against.interval.high), " %)");
}

}  // namespace kedge::cli
