#include "kedge/metrics/trackers/tracker_state.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/jsonl.h"

namespace kedge {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

// Not mapped: the file may be truncated meanwhile.
std::string read_piece(const Path& file, int64_t position, size_t max_bytes) {
  std::ifstream in(file, std::ios::binary);
  std::string bytes(max_bytes, '\0');
  in.seekg(position);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(in.gcount() > 0 ? static_cast<size_t>(in.gcount()) : 0);
  return bytes;
}

// Calls `take` with each complete line and its offset until it returns false.
template <typename Take>
void for_each_line(const Path& file, int64_t position, Take&& take) {
  size_t size = kPieceBytes;
  while (true) {
    const std::string piece = read_piece(file, position, size);
    size_t start = 0;
    for (size_t end = 0; (end = piece.find('\n', start)) != std::string::npos; start = end + 1)
      if (!take(std::string_view(piece).substr(start, end - start), position + static_cast<int64_t>(start))) return;
    if (piece.size() < size) return;
    position += static_cast<int64_t>(start);
    if (start == 0) size *= 2;  // a line longer than a piece
  }
}

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b)); }

// True, and removed from `ahead`, if the tracker has this value.
bool take_ahead(std::vector<NumberAhead>& ahead, int64_t step, const Metrics::Entry& entry) {
  const auto found = std::find_if(ahead.begin(), ahead.end(), [&](const NumberAhead& number) {
    return number.step == step && number.name == entry.first && same_bits(number.value, entry.second);
  });
  if (found == ahead.end()) return false;
  ahead.erase(found);
  return true;
}

std::optional<MetricsLine> parse_tracked_line(std::string_view line, const Path& file, int64_t position) {
  const std::string where = str(file.string(), ", byte ", position);
  try {
    const Json json = Json::parse(line, where);
    MetricsLine read{json.at("step", where).as_integer(where), read_metric(json.at("time", where), where), {}};
    for (const auto& [name, value] : json.as_object(where))
      if (name != "step" && name != "time") read.metrics.set(name, read_metric(value, where));
    return read;
  } catch (const UsageError& error) {
    log_warn(error.what(), "; trackers do not get this line");
    return std::nullopt;
  }
}

Json numbers_json(const std::vector<Metrics::Entry>& numbers) {
  Json json{Json::Object{}};
  for (const auto& [name, value] : numbers) json.append(name, metric_json(value));
  return json;
}

Json row_json(const TrackerRow& row) {
  return Json::Object{{"row", row.number}, {"step", row.step}, {"time_ms", row.time_ms}, {"numbers", numbers_json(row.numbers)}};
}

TrackerRow read_row(const Json& json, const std::string& where) {
  TrackerRow row{
      json.at("row", where).as_integer(where), json.at("step", where).as_integer(where), json.at("time_ms", where).as_integer(where), {}};
  for (const auto& [name, value] : json.at("numbers", where).as_object(where)) row.numbers.emplace_back(name, read_metric(value, where));
  return row;
}

}  // namespace

std::vector<TrackerRow> read_rows(const Path& file, TrackerCursor& cursor, const RowLimits& limits) {
  std::vector<TrackerRow> rows;
  int64_t num_lines = 0, num_numbers = 0;
  for_each_line(file, cursor.position, [&](std::string_view text, int64_t position) {
    if (position >= limits.end || num_lines >= limits.max_lines || num_numbers >= limits.max_numbers) return false;
    cursor.position = position + static_cast<int64_t>(text.size()) + 1;
    ++num_lines;
    const std::optional<MetricsLine> line = parse_tracked_line(text, file, position);
    if (!line) return true;
    // Steps never decrease in a file, so values of earlier steps will not be written again.
    std::erase_if(cursor.ahead, [&](const NumberAhead& number) { return number.step < line->step; });
    TrackerRow row{.number = cursor.next_row, .step = line->step, .time_ms = 0, .numbers = {}};
    for (const Metrics::Entry& entry : line->metrics)
      if (!take_ahead(cursor.ahead, line->step, entry)) row.numbers.push_back(entry);
    if (row.numbers.empty()) return true;
    const double ms = std::floor(line->time * 1000);
    cursor.last_ms = row.time_ms = std::max(cursor.last_ms + 1, std::isfinite(ms) ? static_cast<int64_t>(ms) : 0);
    ++cursor.next_row;
    num_numbers += static_cast<int64_t>(row.numbers.size());
    rows.push_back(std::move(row));
    return true;
  });
  return rows;
}

void TrackerState::take_back(const Path& file, int64_t cut) {
  // Rows that may have been sent and are removed. Nothing after unsure rows was sent yet.
  std::vector<TrackerRow> lost;
  TrackerCursor walk = held;
  const int64_t end = unsure ? std::min(unsure->from, sent_to) : sent_to;
  while (walk.position < end) {
    const int64_t begin = walk.position;
    std::vector<TrackerRow> rows = read_rows(file, walk, {.end = end, .max_lines = 1});
    if (walk.position == begin) break;
    if (begin >= cut) std::move(rows.begin(), rows.end(), std::back_inserter(lost));
  }
  int64_t from = cut;
  if (unsure) {
    std::move(unsure->rows.begin(), unsure->rows.end(), std::back_inserter(lost));
    from = std::min(from, unsure->from);
  }
  if (cut < held.position) {
    for_each_line(file, cut, [&](std::string_view text, int64_t position) {
      if (position >= held.position) return false;
      if (const std::optional<MetricsLine> line = parse_tracked_line(text, file, position))
        for (const auto& [name, value] : line->metrics) held.ahead.push_back({line->step, name, value});
      return true;
    });
    held.position = cut;
  }
  unsure.reset();
  if (!lost.empty()) unsure = Unsure{from, std::move(lost)};
  sent_to = std::max(held.position, std::min(sent_to, cut));
}

void TrackerState::settle(const Path& file, int64_t last_kept) {
  const int64_t end = unsure ? unsure->from : std::numeric_limits<int64_t>::max();
  while (held.next_row <= last_kept && held.position < end) {
    TrackerCursor next = held;
    static_cast<void>(read_rows(file, next, {.end = end, .max_lines = 1}));
    if (next.position == held.position) break;
    held = std::move(next);
  }
  if (unsure && held.position >= unsure->from)
    for (const TrackerRow& row : unsure->rows)
      if (row.number <= last_kept)
        for (const auto& [name, value] : row.numbers) held.ahead.push_back({row.step, name, value});
  unsure.reset();
  held.next_row = std::max(held.next_row, last_kept + 1);
  sent_to = held.position;
}

void TrackerState::settle_unsure() {
  for (const TrackerRow& row : unsure->rows) {
    for (const auto& [name, value] : row.numbers) held.ahead.push_back({row.step, name, value});
    held.last_ms = std::max(held.last_ms, row.time_ms);
    held.next_row = std::max(held.next_row, row.number + 1);
  }
  unsure.reset();
}

Json TrackerState::to_json() const {
  Json json = Json::Object{
      {"position", held.position}, {"next_row", held.next_row}, {"last_ms", held.last_ms}, {"sent_to", sent_to}, {"link", link}};
  Json::Array ahead;
  for (const NumberAhead& number : held.ahead) ahead.push_back(Json::Array{number.step, number.name, metric_json(number.value)});
  if (!ahead.empty()) json.append("ahead", std::move(ahead));
  if (unsure) {
    Json::Array rows;
    for (const TrackerRow& row : unsure->rows) rows.push_back(row_json(row));
    json.append("unsure", Json::Object{{"from", unsure->from}, {"rows", std::move(rows)}});
  }
  return json;
}

TrackerState TrackerState::from_json(const Json& json, const std::string& where) {
  const auto count = [&](const Json& from, const char* key) { return from.at(key, where).as_integer(str(where, ": \"", key, "\"")); };
  TrackerState state;
  state.held = {count(json, "position"), count(json, "next_row"), count(json, "last_ms"), {}};
  state.sent_to = count(json, "sent_to");
  state.link = json.at("link", where);
  if (const Json* ahead = json.find("ahead"))
    for (const Json& number : ahead->as_array(where)) {
      const Json::Array& parts = number.as_array(where);
      check(parts.size() == 3, where, ": \"ahead\" must be [step, name, value]");
      state.held.ahead.push_back({parts[0].as_integer(where), parts[1].as_text(where), read_metric(parts[2], where)});
    }
  if (const Json* unsure = json.find("unsure")) {
    state.unsure = Unsure{count(*unsure, "from"), {}};
    for (const Json& row : unsure->at("rows", where).as_array(where)) state.unsure->rows.push_back(read_row(row, where));
  }
  return state;
}

int64_t count_lines(const Path& file, int64_t position) {
  int64_t count = 0;
  for_each_line(file, position, [&](std::string_view, int64_t) {
    ++count;
    return true;
  });
  return count;
}

}  // namespace kedge
