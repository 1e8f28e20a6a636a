#pragma once
// What of a metrics.jsonl a tracker holds, and what it has to get next. Every number goes there once, whenever the run, the tracker or the
// machine dies, and also where a resumed run takes lines back and writes them again. Knows no tracker.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

// What a tracker gets of one line. Made again from the same lines, it is equal to the bit.
struct TrackerRow {
  int64_t number = 0;  // from 0; never used twice
  int64_t step = 0;
  int64_t time_ms = 0;  // since 1970, later than that of the row before: a tracker that tells points apart by their time keeps them all
  std::vector<Metrics::Entry> numbers;
};

// A number that the tracker holds of a line that a resume took back. The resumed run writes it again, with the same value unless it is a
// time, and then it is not sent again.
struct NumberAhead {
  int64_t step = 0;
  std::string name;
  double value = 0;
};

// A place in the file, with what is needed to go on from it.
struct TrackerCursor {
  int64_t position = 0;  // bytes
  int64_t next_row = 0;
  int64_t last_ms = 0;
  std::vector<NumberAhead> ahead;
};

struct RowLimits {
  int64_t end = std::numeric_limits<int64_t>::max();  // no line that begins there or later
  int64_t max_lines = std::numeric_limits<int64_t>::max();
  int64_t max_numbers = std::numeric_limits<int64_t>::max();  // no further line once there are as many; a line is never split
};
// The complete lines behind the cursor, which moves behind them. A line all of whose numbers are ahead gives no row. One that is no JSON is
// warned of and passed over. A file that is not there has no lines.
[[nodiscard]] std::vector<TrackerRow> read_rows(const Path& file, TrackerCursor& cursor, const RowLimits& limits = {});

struct TrackerState {
  TrackerCursor held;   // the tracker has confirmed what stands before it
  int64_t sent_to = 0;  // up to here lines may have reached it without our knowing; at least held.position
  // Rows of lines that were taken back, of which that is not known either. They come behind the lines before `from`.
  struct Unsure {
    int64_t from = 0;
    std::vector<TrackerRow> rows;
  };
  std::optional<Unsure> unsure;
  Json link;  // the tracker's own: its run's id, ...

  // The file, not yet cut, will go on at this byte.
  void take_back(const Path& file, int64_t cut);
  // The rows up to this number, and no others, are with the tracker. What is unsure is settled.
  void settle(const Path& file, int64_t last_kept);
  // All unsure rows are with the tracker.
  void settle_unsure();

  [[nodiscard]] Json to_json() const;
  [[nodiscard]] static TrackerState from_json(const Json& json, const std::string& where);
};

// Complete lines from that byte on.
[[nodiscard]] int64_t count_lines(const Path& file, int64_t position);

}  // namespace kedge
