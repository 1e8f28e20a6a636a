#include "kedge/inspect/metric_series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/inspect/metrics_line.h"
#include "kedge/metrics/jsonl.h"

namespace kedge {
namespace {

constexpr size_t kBehind = 256, kPiece = size_t{4} << 20U;
constexpr double kSmoothedPoints = 1000;

// As a sink writes it, and null, which other writers use for values that are not finite.
double number_of(const Json& value, std::string_view name) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : read_metric(value, name);
}

// The places that are kept, rising.
std::vector<size_t> kept_places(const std::vector<double>& values, size_t max_points) {
  const size_t size = values.size(), num_parts = std::max<size_t>(1, max_points / 2);
  std::vector<size_t> places;
  if (size <= max_points) {
    for (size_t i = 0; i < size; ++i) places.push_back(i);
    return places;
  }
  places.push_back(0);
  for (size_t part = 0; part < num_parts; ++part) {
    const size_t begin = part * size / num_parts, end = (part + 1) * size / num_parts;
    size_t low = size, high = size, wild = size;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(values[i])) {
        wild = std::min(wild, i);
        continue;
      }
      if (low == size || values[i] < values[low]) low = i;
      if (high == size || values[i] > values[high]) high = i;
    }
    for (const size_t place : {low, high, wild})
      if (place < size) places.push_back(place);
  }
  places.push_back(size - 1);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Doubles count so far, and sums of a few steps fit into 64 bits.
constexpr int64_t kMaxStep = int64_t{1} << 53U;

// The place of each number on the axis of steps.
std::vector<double> axis_of(const std::vector<int64_t>& steps) {
  std::vector<double> axis(steps.size());
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    while (end < steps.size() && steps[end] == steps[begin]) ++end;
    for (size_t i = begin; i < end; ++i)
      axis[i] = static_cast<double>(steps[i]) + static_cast<double>(i - begin) / static_cast<double>(end - begin);
    begin = end;
  }
  return axis;
}

// A mean whose weights fall by the same factor from number to number, backwards; the first numbers count in full. Values that are not
// finite are skipped.
std::vector<double> smoothed(const std::vector<double>& values, double smoothing) {
  const double factor = std::pow(smoothing, std::min(1.0, kSmoothedPoints / static_cast<double>(std::max<size_t>(1, values.size()))));
  std::vector<double> means(values.size(), std::numeric_limits<double>::quiet_NaN());
  double sum = 0, weight = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      sum = sum * factor + values[i];
      weight = weight * factor + 1;
    }
    if (weight > 0) means[i] = sum / weight;
  }
  return means;
}

}  // namespace

void MetricsFeed::forget() {
  offset_ = 0;
  behind_.clear();
  num_lines_ = num_bad_ = 0;
  first_time_ = last_time_ = 0;
  first_bad_.clear();
  series_.clear();
  places_.clear();
  ++version_;
}

bool MetricsFeed::goes_on(const MappedFile& file) const {
  return file.size() >= offset_ && file.read(offset_ - behind_.size(), offset_) == behind_;
}

// Reads copies, not mapped bytes: the run may truncate the file at any time.
bool MetricsFeed::update() {
  const int64_t version = version_;
  try {
    if (is_file(file_)) {
      const MappedFile file(file_);
      if (!goes_on(file)) forget();
      while (offset_ < file.size() && add_piece(file)) continue;
    } else if (offset_ > 0) {
      forget();
    }
  } catch (const Error&) {
    return version != version_;  // removed or truncated just now: the next call handles it
  }
  return version != version_;
}

// The complete lines of the next piece of the file. False if there is none.
bool MetricsFeed::add_piece(const MappedFile& file) {
  size_t end = offset_, size = kPiece;
  std::string piece;
  while (end < file.size() && piece.find('\n') == std::string::npos) {  // a line longer than a piece
    piece = file.read(offset_, std::min(file.size(), offset_ + size));
    end = offset_ + piece.size();
    size *= 2;
  }
  piece.resize(piece.rfind('\n') + 1);  // npos + 1 is 0
  if (piece.empty()) return false;
  std::string_view text = piece;
  while (!text.empty()) {
    const size_t length = text.find('\n');
    add_line(text.substr(0, length));
    text.remove_prefix(length + 1);
  }
  offset_ += piece.size();
  behind_ = piece.substr(piece.size() - std::min(piece.size(), kBehind));
  ++version_;
  return true;
}

void MetricsFeed::add_line(std::string_view line) {
  ++num_lines_;
  thread_local FlatLine flat;
  if (flat.read(line)) {
    const auto& members = flat.members();
    for (size_t i = 2; i < members.size(); ++i) add(flat.step(), members[i].first, members[i].second);
    note_time(flat.time());
    return;
  }
  const std::string where = str(file_.filename().string(), ":", num_lines_);
  try {
    const Json read = Json::parse(line, file_.filename().string(), num_lines_);
    const int64_t step = read.at("step", where).as_integer(where);
    check(step >= 0 && step <= kMaxStep, where, ": step: expected an integer from 0 to ", kMaxStep, ", found ", step);
    const double time = read_metric(read.at("time", where), where);
    for (const auto& [name, value] : read.as_object(where))
      if (name != "step" && name != "time") add(step, name, number_of(value, where));
    note_time(time);
  } catch (const UsageError& error) {
    if (num_bad_++ == 0) first_bad_ = error.what();
  }
}

void MetricsFeed::add(int64_t step, std::string_view name, double value) {
  auto place = places_.find(name);
  if (place == places_.end()) {
    place = places_.emplace(name, series_.size()).first;
    series_.push_back({.name = std::string(name)});
  }
  series_[place->second].add(step, value);
}

void MetricsFeed::note_time(double time) {
  first_time_ = first_time_ == 0 ? time : first_time_;
  last_time_ = time;
}

const Series* MetricsFeed::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &series_[found->second];
}

ReducedSeries reduced(const Series& series, const ReduceOptions& options) {
  ReducedSeries result{.num_points = series.values.size()};
  const std::vector<double> axis = axis_of(series.steps);
  const std::vector<double> means = options.smoothing > 0 ? smoothed(series.values, options.smoothing) : std::vector<double>();
  for (const size_t place : kept_places(series.values, options.max_points)) {
    result.x.push_back(axis[place]);
    result.y.push_back(series.values[place]);
    if (!means.empty()) result.smooth.push_back(means[place]);
  }
  return result;
}

double mean_between(const Series& series, int64_t begin, int64_t end) {
  const auto from = std::lower_bound(series.steps.begin(), series.steps.end(), begin);
  const auto to = std::lower_bound(from, series.steps.end(), end);
  double sum = 0, count = 0;
  for (auto step = from; step != to; ++step) {
    const double value = series.values[static_cast<size_t>(step - series.steps.begin())];
    if (!std::isfinite(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kedge
