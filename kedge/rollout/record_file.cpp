#include "kedge/rollout/record_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

// One object, member by member; faster than a Json of half a million numbers.
class LineWriter {
 public:
  explicit LineWriter(std::string& out) : out_(out) { out_ += '{'; }

  void add(std::string_view key, const Json& value) {
    open(key);
    out_ += value.dump_compact();
  }
  void add(std::string_view key, const std::vector<float>& values) {
    add_list(key, values, [&](float value) { append(value); });
  }
  void add(std::string_view key, const TokenIds& ids) {
    add_list(key, ids, [&](TokenId id) { append_digits(id); });
  }
  void close() { out_ += "}\n"; }

 private:
  void open(std::string_view key) {
    if (out_.back() != '{') out_ += ',';
    out_.append("\"").append(key).append("\":");
  }
  void add_list(std::string_view key, const auto& values, auto&& append_one) {
    open(key);
    out_ += '[';
    bool is_first = true;
    for (const auto value : values) {
      if (!std::exchange(is_first, false)) out_ += ',';
      append_one(value);
    }
    out_ += ']';
  }
  void append_digits(auto... arguments) {
    std::array<char, 32> digits{};
    out_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), arguments...).ptr);
  }
  // Nine digits are so near to the number that it comes back by way of a double, too; the shortest text that is nearest to it need not.
  // With a point, or -0 would come back as the integer 0.
  void append(float value) {
    if (!std::isfinite(value)) {
      out_ += "null";
      return;
    }
    const size_t begin = out_.size();
    append_digits(value, std::chars_format::general, 9);
    if (out_.find_first_of(".e", begin) == std::string::npos) out_ += ".0";
  }

  std::string& out_;
};

Json parts_of(const RowReward& reward) {
  Json::Object parts;
  for (const auto& [name, value] : reward.parts) parts.emplace_back(name, value);
  return parts;
}

Json lists_of(const std::vector<Metrics>& updates) {
  Json::Array lists;
  for (const Metrics& update : updates) {
    Json::Object numbers;
    for (const auto& [name, value] : update) numbers.emplace_back(name, value);
    lists.emplace_back(std::move(numbers));
  }
  return lists;
}

void append_row(std::string& out, const RolloutRow& row) {
  const Rollout& rollout = *row.rollout;
  LineWriter line(out);
  line.add("prompt_id", rollout.prompt_id);
  line.add("slot", row.slot);
  line.add("sample", rollout.sample);
  line.add("prompt", rollout.prompt);
  line.add("response", rollout.response);
  line.add("ids", rollout.ids);
  line.add("prompt_length", rollout.prompt_length);
  line.add("finished", rollout.finished);
  line.add("engine_logprobs", rollout.logprobs);
  line.add("logprobs", row.logprobs);
  line.add("reference", row.reference);
  line.add("reward", row.reward.failed() ? Json() : Json(row.reward.value));
  line.add("parts", parts_of(row.reward));
  line.add("error", row.reward.failed() ? Json(row.reward.error) : Json());
  line.add("kl", row.kl_mean);
  line.add("kl_sum", row.kl_sum);
  line.add("entropy", row.entropy ? Json(*row.entropy) : Json());
  line.add("reward_with_kl", row.reward_with_kl);
  line.add("baseline", row.baseline);
  line.add("advantage", row.advantage);
  line.add("trains", row.trains);
  if (!row.values.empty()) line.add("values", row.values);
  if (!row.returns.empty()) line.add("returns", row.returns);
  if (!row.advantages.empty()) line.add("advantages", row.advantages);
  line.close();
}

// Members of one line; errors name file and line.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& name, int64_t line, RecordParts parts = RecordParts::answers)
      : where_(str(name, ":", line)), parts_(parts), json_(Json::parse(text, name, line)) {}

  [[nodiscard]] const Json& at(std::string_view key) const { return json_.at(key, where_); }
  [[nodiscard]] const Json* find(std::string_view key) const { return json_.find(key); }
  [[nodiscard]] int64_t integer(std::string_view key) const { return at(key).as_integer(where_); }
  [[nodiscard]] const std::string& text(std::string_view key) const { return at(key).as_text(where_); }
  [[nodiscard]] double number(std::string_view key) const { return number_of(at(key)); }
  [[nodiscard]] std::string text_or_none(std::string_view key) const { return find(key) == nullptr ? "" : text(key); }
  // A list of numbers with names.
  [[nodiscard]] std::vector<Metrics> lists_of_numbers(std::string_view key) const {
    std::vector<Metrics> lists;
    if (find(key) == nullptr) return lists;
    for (const Json& json : at(key).as_array(where_)) {
      Metrics& metrics = lists.emplace_back();
      for (const auto& [name, value] : json.as_object(where_)) metrics.set(name, number_of(value));
    }
    return lists;
  }

  [[nodiscard]] RolloutRow row() const {
    RolloutRow row{.rollout = rollout(), .slot = integer("slot"), .reward = reward()};
    if (parts_ == RecordParts::answers) return row;
    const int64_t length = row.rollout->response_length();
    row.logprobs = floats("logprobs", length);
    row.reference = floats("reference", length);
    if (!at("entropy").is_null()) row.entropy = number("entropy");
    row.kl_mean = number("kl");
    row.kl_sum = number("kl_sum");
    row.reward_with_kl = number("reward_with_kl");
    row.baseline = number("baseline");
    row.advantage = number("advantage");
    row.trains = at("trains").as_bool(where_);
    if (json_.find("values") != nullptr) row.values = floats("values", length);
    if (json_.find("returns") != nullptr) row.returns = floats("returns", length);
    if (json_.find("advantages") != nullptr) row.advantages = floats("advantages", length);
    return row;
  }

 private:
  [[nodiscard]] double number_of(const Json& json) const {
    if (json.is_null() && parts_ == RecordParts::all) return std::numeric_limits<double>::quiet_NaN();
    return json.as_number(where_);
  }
  [[nodiscard]] TokenIds ids(std::string_view key) const {
    TokenIds ids;
    for (const Json& json : at(key).as_array(where_)) {
      const int64_t id = json.as_integer(where_);
      check(id >= 0 && id <= Vocab::kMaxId, where_, ": no token has the id ", id);
      ids.push_back(static_cast<TokenId>(id));
    }
    return ids;
  }
  // One for each of the answer's tokens, or none at all.
  [[nodiscard]] std::vector<float> floats(std::string_view key, int64_t length) const {
    std::vector<float> values;
    for (const Json& value : at(key).as_array(where_)) values.push_back(static_cast<float>(number_of(value)));
    check(values.empty() || std::ssize(values) == length, where_, ": \"", key, "\" has ", values.size(), " numbers for ", length,
          " tokens");
    return values;
  }
  [[nodiscard]] std::shared_ptr<const Rollout> rollout() const {
    Rollout rollout{.prompt_id = integer("prompt_id"),
                    .sample = integer("sample"),
                    .ids = ids("ids"),
                    .prompt_length = integer("prompt_length"),
                    .finished = at("finished").as_bool(where_),
                    .prompt = text("prompt"),
                    .response = text("response")};
    check(rollout.prompt_length >= 0 && rollout.prompt_length <= rollout.length(), where_, ": a prompt of ", rollout.prompt_length,
          " tokens among ", rollout.length());
    rollout.logprobs = floats("engine_logprobs", rollout.response_length());
    return std::make_shared<const Rollout>(std::move(rollout));
  }
  [[nodiscard]] RowReward reward() const {
    RowReward reward;
    if (at("error").is_null()) {
      reward.value = number("reward");
    } else {
      reward.error = text("error");
      check(!reward.error.empty(), where_, ": \"error\" is empty; without one it is null");
    }
    for (const auto& [name, value] : at("parts").as_object(where_)) reward.parts.emplace_back(name, number_of(value));
    return reward;
  }

  std::string where_;
  RecordParts parts_;
  Json json_;
};

// The lines of a file, each with its end: a line without one was being written.
class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  std::string_view next() {
    number_ += 1;
    const size_t end = rest_.find('\n');
    check(end != std::string_view::npos, name_, ":", number_, ": the file ends before this line does");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  [[nodiscard]] int64_t number() const { return number_; }  // of the line that came last; from 1 on
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const std::string& name_;
  int64_t number_ = 0;
};

RecordHeader read_header(Lines& lines, const std::string& name) {
  const std::string_view text = lines.next();
  const LineReader line(text, name, lines.number(), RecordParts::all);
  return {.step = line.integer("step"),
          .fingerprint = line.text("fingerprint"),
          .num_rows = line.integer("rows"),
          .weights_before = line.text_or_none("weights_before"),
          .weights_after = line.text_or_none("weights_after"),
          .updates = line.lists_of_numbers("updates")};
}

// The step a file is named after.
std::optional<int64_t> step_of(std::string_view name) {
  constexpr std::string_view kBegin = "step-", kEnd = ".jsonl";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(kEnd.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  // Only as it is written, so that a step has one file.
  if (error != std::errc() || step < 0 || std::to_string(step) != name) return std::nullopt;
  return step;
}

}  // namespace

std::string format_record(const RecordHeader& header, const RolloutRows& rows) {
  std::string text;
  LineWriter line(text);
  line.add("step", header.step);
  line.add("fingerprint", header.fingerprint);
  line.add("rows", static_cast<int64_t>(rows.size()));
  if (!header.weights_before.empty()) line.add("weights_before", header.weights_before);
  if (!header.weights_after.empty()) line.add("weights_after", header.weights_after);
  if (!header.updates.empty()) line.add("updates", lists_of(header.updates));
  line.close();
  for (const RolloutRow& row : rows) append_row(text, row);
  return text;
}

RecordHeader parse_record_header(std::string_view text, const std::string& name) {
  Lines lines(text, name);
  return read_header(lines, name);
}

RolloutRows parse_record_rows(std::string_view text, const std::string& name, RecordParts parts) {
  Lines lines(text, name);
  const int64_t num_rows = read_header(lines, name).num_rows;
  RolloutRows rows;
  for (int64_t i = 0; i < num_rows; ++i) {
    const std::string_view line = lines.next();
    rows.push_back(LineReader(line, name, lines.number(), parts).row());
  }
  check(lines.empty(), name, ":", lines.number() + 1, ": has more than its ", num_rows, " rows");
  return rows;
}

Path record_path(const Path& folder, int64_t step) { return folder / str("step-", step, ".jsonl"); }

std::vector<int64_t> recorded_steps(const Path& folder) {
  std::vector<int64_t> steps;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

int64_t remove_records(const Path& folder, int64_t begin, int64_t end) {
  std::vector<int64_t> steps = recorded_steps(folder);
  std::erase_if(steps, [&](int64_t step) { return step < begin || step >= end; });
  std::for_each(steps.rbegin(), steps.rend(), [&](int64_t step) { remove_tree(record_path(folder, step)); });
  return std::ssize(steps);
}

}  // namespace kedge
