#pragma once
// Which lines of a metrics.jsonl a tracker has, and which it needs next. Every value is sent exactly once, even if the run, the tracker or
// the machine fails, and if a resumed run removes lines and writes them again. Independent of any particular tracker.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

// What is sent for one line. The same lines always give the same rows, bit for bit.
struct TrackerRow {
  int64_t number = 0;  // from 0; never used twice
  int64_t step = 0;
  int64_t time_ms = 0;  // since 1970, later than that of the previous row, for trackers that identify points by their time
  std::vector<Metrics::Entry> numbers;
};

// A value that the tracker has from a line that a resume removed. The resumed run writes it again, with the same value unless it is a
// duration, and then it is not sent again.
struct NumberAhead {
  int64_t step = 0;
  std::string name;
  double value = 0;
};

// A position in the file, and what is needed to continue from there.
struct TrackerCursor {
  int64_t position = 0;  // bytes
  int64_t next_row = 0;
  int64_t last_ms = 0;
  std::vector<NumberAhead> ahead;
};

struct RowLimits {
  int64_t end = std::numeric_limits<int64_t>::max();  // no line that starts there or later
  int64_t max_lines = std::numeric_limits<int64_t>::max();
  int64_t max_numbers = std::numeric_limits<int64_t>::max();  // no further line once there are this many; a line is never split
};
// The complete lines after the cursor, which is moved past them. A line all of whose values are in `ahead` gives no row. One that is not
// JSON is skipped with a warning. A missing file has no lines.
[[nodiscard]] std::vector<TrackerRow> read_rows(const Path& file, TrackerCursor& cursor, const RowLimits& limits = {});

struct TrackerState {
  TrackerCursor held;   // the tracker has confirmed everything before it
  int64_t sent_to = 0;  // lines before this byte may have reached the tracker; at least held.position
  // Rows of removed lines that may have reached it too. They follow the lines before `from`.
  struct Unsure {
    int64_t from = 0;
    std::vector<TrackerRow> rows;
  };
  std::optional<Unsure> unsure;
  Json link;  // what the link stores: the id of the tracker's run, ...

  // The file is about to be truncated to this size.
  void take_back(const Path& file, int64_t cut);
  // The tracker has the rows up to this number and no others; none is unsure any more.
  void settle(const Path& file, int64_t last_kept);
  // The tracker has all unsure rows.
  void settle_unsure();

  [[nodiscard]] Json to_json() const;
  [[nodiscard]] static TrackerState from_json(const Json& json, const std::string& where);
};

// The number of complete lines from that byte on.
[[nodiscard]] int64_t count_lines(const Path& file, int64_t position);

}  // namespace kedge
