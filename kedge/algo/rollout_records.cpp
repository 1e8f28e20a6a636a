#include "kedge/algo/rollout_records.h"

#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <future>
#include <iterator>
#include <string_view>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

int64_t every_of(const RolloutsConfig& config) {
  if (config.keep == "all") return 1;
  if (config.keep == "none") return 0;
  constexpr std::string_view kEvery = "every:";
  const std::string_view keep = config.keep;
  int64_t every = 0;
  if (keep.starts_with(kEvery)) {
    const auto [end, error] = std::from_chars(keep.data() + kEvery.size(), keep.data() + keep.size(), every);
    if (error != std::errc() || end != keep.data() + keep.size()) every = 0;
  }
  check(every >= 1, "rollouts.keep: wants all, none or every:n with n from 1 on, found ", Json(config.keep).dump());
  return every;
}

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

void append_row(std::string& out, const AnswerRow& row) {
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

// Members of one line; errors name the line.
class LineReader {
 public:
  LineReader(std::string_view text, std::string where) : where_(std::move(where)), json_(Json::parse(text, where_)) {}

  [[nodiscard]] const Json& at(std::string_view key) const { return json_.at(key, where_); }
  [[nodiscard]] int64_t integer(std::string_view key) const { return at(key).as_integer(where_); }
  [[nodiscard]] const std::string& text(std::string_view key) const { return at(key).as_text(where_); }

  [[nodiscard]] TokenIds ids(std::string_view key) const {
    TokenIds ids;
    for (const Json& json : at(key).as_array(where_)) {
      const int64_t id = json.as_integer(where_);
      check(id >= 0 && id <= Vocab::kMaxId, where_, ": no token has the id ", id);
      ids.push_back(static_cast<TokenId>(id));
    }
    return ids;
  }
  [[nodiscard]] std::vector<float> floats(std::string_view key) const {
    std::vector<float> values;
    for (const Json& value : at(key).as_array(where_)) values.push_back(static_cast<float>(value.as_number(where_)));
    return values;
  }
  [[nodiscard]] RowReward reward() const {
    RowReward reward;
    if (at("error").is_null()) {
      reward.value = at("reward").as_number(where_);
    } else {
      reward.error = text("error");
    }
    for (const auto& [name, value] : at("parts").as_object(where_)) reward.parts.emplace_back(name, value.as_number(where_));
    return reward;
  }
  [[nodiscard]] AnswerRow row() const {
    Rollout rollout{.prompt_id = integer("prompt_id"),
                    .sample = integer("sample"),
                    .ids = ids("ids"),
                    .prompt_length = integer("prompt_length"),
                    .finished = at("finished").as_bool(where_),
                    .logprobs = floats("engine_logprobs"),
                    .prompt = text("prompt"),
                    .response = text("response")};
    check(rollout.prompt_length >= 0 && rollout.prompt_length <= rollout.length(), where_, ": a prompt of ", rollout.prompt_length,
          " tokens among ", rollout.length());
    check(rollout.logprobs.empty() || std::ssize(rollout.logprobs) == rollout.response_length(), where_, ": ", rollout.logprobs.size(),
          " log-probs of ", rollout.response_length(), " tokens");
    return {.rollout = std::make_shared<const Rollout>(std::move(rollout)), .slot = integer("slot"), .reward = reward()};
  }

 private:
  std::string where_;
  Json json_;
};

// Takes the first line off the text.
std::string_view next_line(std::string_view& text, const std::string& where) {
  const size_t end = text.find('\n');
  check(end != std::string_view::npos, where, ": the file ends before its last line does");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<AnswerRows> read_rows(const Path& path, int64_t step, const std::string& fingerprint) {
  const std::string name = path.string();
  const std::string content = read_text(path);
  std::string_view rest = content;
  const LineReader header(next_line(rest, name), name);
  if (header.integer("step") != step || header.text("fingerprint") != fingerprint) return std::nullopt;
  const int64_t num_rows = header.integer("rows");
  AnswerRows rows;
  for (int64_t i = 0; i < num_rows; ++i) rows.push_back(LineReader(next_line(rest, name), str(name, ": row ", i)).row());
  check(rest.empty(), name, ": has more than its ", num_rows, " rows");
  return rows;
}

// What a run left that was killed while it wrote.
void remove_unfinished(const Path& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".step-") && name.ends_with(".tmp")) std::filesystem::remove(entry.path(), none);
  }
}

}  // namespace

void check_records(const RolloutsConfig& config) { static_cast<void>(every_of(config)); }

RolloutRecords::RolloutRecords(Path folder, const RolloutsConfig& config) : folder_(std::move(folder)), every_(every_of(config)) {
  remove_unfinished(folder_);
}

Path RolloutRecords::path_of(int64_t step) const { return folder_ / str("step-", step, ".jsonl"); }

void RolloutRecords::write(int64_t step, std::string fingerprint, AnswerRows rows) {
  if (every_ == 0 || step % every_ != 0) return;
  worker_.post([this, step, fingerprint = std::move(fingerprint), rows = std::move(rows)] {
    try {
      write_file(step, fingerprint, rows);
    } catch (const std::runtime_error& error) {  // the world's
      if (!std::exchange(told_, true)) log_warn("the answers of step ", step, " are not kept: ", error.what(), " (the run goes on)");
    }
  });
}

void RolloutRecords::write_file(int64_t step, const std::string& fingerprint, const AnswerRows& rows) {
  make_folder(folder_);
  std::string text;
  LineWriter header(text);
  header.add("step", step);
  header.add("fingerprint", fingerprint);
  header.add("rows", static_cast<int64_t>(rows.size()));
  header.close();
  for (const AnswerRow& row : rows) append_row(text, row);
  write_atomic(path_of(step), text);
}

std::optional<AnswerRows> RolloutRecords::read(int64_t step, const std::string& fingerprint) {
  flush();
  if (!is_file(path_of(step))) return std::nullopt;
  try {
    return read_rows(path_of(step), step, fingerprint);
  } catch (const Error& error) {
    log_warn("the answers of step ", step, " cannot be used again: ", error.what());
    return std::nullopt;
  }
}

void RolloutRecords::flush() {
  const auto done = std::make_shared<std::promise<void>>();  // the worker may still be about to leave it when this returns
  worker_.post([done] { done->set_value(); });
  done->get_future().wait();
}

}  // namespace kedge
