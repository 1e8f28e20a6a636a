#include "kedge/metrics/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/utf8.h"
#include "kedge/metrics/tfevents.h"

namespace kedge {
namespace {

constexpr std::string_view kFilePrefix = "events.out.tfevents.";
constexpr const char* kPosition = "tensorboard";

// TensorBoard reads the files of a folder in the order of their names, so a new one takes a later time than every old one, also
// when two are made within a second or the clock went back.
int64_t time_for_name(const Path& folder, double now) {
  auto time = static_cast<int64_t>(now);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFilePrefix)) continue;
    int64_t used = 0;
    std::from_chars(name.data() + kFilePrefix.size(), name.data() + name.size(), used);
    time = std::max(time, used + 1);
  }
  return time;
}

Path new_event_file(const Path& folder, double now) {
  static std::atomic<uint64_t> counter = 0;
  const std::string host = host_name();
  std::string time = std::to_string(time_for_name(folder, now));
  time.insert(0, time.size() < 10 ? 10 - time.size() : 0, '0');
  return folder / str(kFilePrefix, time, ".", host.empty() ? "localhost" : host, ".", ::getpid(), ".", counter++);
}

// Characters that mean something in markdown or HTML become numeric entities; a control character becomes its picture.
std::string cell(std::string_view text) {
  static constexpr std::string_view kSpecial = "\\`*_[]<>&|";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "<br>";
    } else if (byte < 0x20 && c != '\t') {
      utf8_append(out, 0x2400 + char32_t{byte});
    } else if (kSpecial.find(c) != std::string_view::npos) {
      out += str("&#", int{byte}, ";");
    } else {
      out += c;
    }
  }
  return out;
}

std::string cell_of(const Json& value) { return cell(value.is_text() ? value.as_text("a cell") : value.dump()); }

std::string row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& text : cells) out += str(" ", text, " |");
  return out + "\n";
}

}  // namespace

TensorBoardSink::TensorBoardSink(const Path& folder, WallClock clock) : folder_(folder), clock_(std::move(clock)) { make_folder(folder); }

void TensorBoardSink::append(int64_t step, std::string_view event) {
  if (!file_) file_.emplace(new_event_file(folder_, clock_()));
  std::string bytes;  // the head goes with the first event, so that a failed write leaves no headless file
  if (file_->size() == 0) bytes = tf_record(version_event(clock_())) + tf_record(session_start_event(clock_(), start_step_.value_or(step)));
  file_->append(bytes + tf_record(event));
  last_step_ = std::max(step, last_step_.value_or(step));
}

void TensorBoardSink::write(int64_t step, const Metrics& metrics) {
  if (!metrics.empty()) append(step, scalars_event(clock_(), step, metrics));
}

void TensorBoardSink::write_samples(int64_t step, const SampleTable& table) {
  write_text(step, str("table/", table.name), samples_as_markdown(step, table));
}

void TensorBoardSink::write_text(int64_t step, std::string_view tag, std::string_view markdown) {
  append(step, text_event(clock_(), step, tag, markdown));
}

void TensorBoardSink::flush() {
  if (file_) file_->sync();
}

void TensorBoardSink::record(SinkPositions& positions) const {
  if (last_step_) positions[kPosition] = *last_step_;
}

void TensorBoardSink::resume(int64_t step, const SinkPositions& positions) {
  const auto found = positions.find(kPosition);
  last_step_ = found == positions.end() ? std::nullopt : std::optional(found->second);
  start_step_ = last_step_ ? std::max(step, *last_step_ + 1) : step;
  if (file_ && file_->size() > 0) file_->append(tf_record(session_start_event(clock_(), *start_step_)));
}

std::string samples_as_markdown(int64_t step, const SampleTable& table) {
  std::vector<std::string> columns;
  for (const Sample& sample : table.rows)
    for (const auto& [name, value] : sample.extra)
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);

  std::vector<std::string> head = {"step", "prompt", "response", "reward"};
  for (const std::string& name : columns) head.push_back(cell(name));
  std::string text = row(head) + row(std::vector<std::string>(head.size(), "---"));
  for (const Sample& sample : table.rows) {
    const Json extra(sample.extra);
    std::vector<std::string> cells = {std::to_string(step), cell(sample.prompt), cell(sample.response),
                                      sample.reward ? shortest(*sample.reward) : ""};
    for (const std::string& name : columns) {
      const Json* value = extra.find(name);
      cells.push_back(value == nullptr ? "" : cell_of(*value));
    }
    text += row(cells);
  }
  return text;
}

}  // namespace kedge
