#pragma once
// Where the rows of a JSON text are: its lines, or the elements of the one list it is. About four bytes per row. Knows
// no files and parses nothing; a row may still be broken.
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kedge/core/text_span.h"

namespace kedge {

class JsonlIndex {
 public:
  enum class Layout { lines, list };
  static constexpr size_t kMaxRowBytes = size_t{64} << 20U;

  // Called regularly with the number of bytes scanned so far, so that their pages can be released.
  using Progress = std::function<void(size_t)>;

  JsonlIndex() = default;
  // A text whose first character is [ is a list. A list that is not closed or has text after its end, and a row above
  // kMaxRowBytes, are UsageErrors that open with `origin` and the line.
  static JsonlIndex build(std::string_view text, std::string_view origin, const Progress& progress = {});

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  [[nodiscard]] Layout layout() const { return layout_; }
  // Where the row is, with what follows it up to the next: blanks, line end, comma.
  [[nodiscard]] TextSpan span(int64_t row) const;
  // The row itself, of the bytes of its span.
  [[nodiscard]] std::string_view trim(std::string_view bytes, int64_t row) const;
  // The line the row begins on, from 1. `text` is what the index was built of.
  [[nodiscard]] int64_t line(std::string_view text, int64_t row) const;

 private:
  static constexpr size_t kBlockRows = 64;  // this many rows of the largest size stay below 4 GiB
  struct Block {
    uint64_t start;
    uint64_t line;  // of `start`
  };
  struct Scan;

  void add_row(Scan& scan, size_t start);
  void scan_lines(Scan& scan);
  void scan_list(Scan& scan);
  [[nodiscard]] size_t start_of(size_t row) const { return blocks_[row / kBlockRows].start + offsets_[row]; }

  Layout layout_ = Layout::lines;
  std::vector<Block> blocks_;      // one for each kBlockRows rows
  std::vector<uint32_t> offsets_;  // from the block's start, one per row
  size_t end_ = 0;                 // of the last row
};

}  // namespace kedge
