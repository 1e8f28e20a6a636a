#include "kedge/data/files/jsonl_index.h"

#include <algorithm>
#include <cstring>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr size_t kProgressBytes = size_t{8} << 20U;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

// A walk over the text that knows its line and reports how far it came.
struct JsonlIndex::Scan {
  std::string_view text;
  std::string_view origin;
  const Progress& progress;
  size_t line = 1;
  size_t row_start = 0, row_line = 1;  // of the row that is open
  size_t reported = 0;

  void reached(size_t at) {
    check(at - row_start <= kMaxRowBytes, origin, ":", row_line, ": a row of more than ", kMaxRowBytes, " bytes");
    if (at - reported < kProgressBytes) return;
    if (progress) progress(at);
    reported = at;
  }

  size_t skip_blanks(size_t at) {
    for (; at < text.size() && kBlanks.find(text[at]) != std::string_view::npos; ++at)
      if (text[at] == '\n') ++line;
    return at;
  }

  // From the first character of an element to the comma or bracket after it. Brackets and strings are followed only as far
  // as needed; the element is validated when it is parsed.
  size_t skip_element(size_t at) {
    int64_t depth = 0;
    bool in_string = false;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '\n') ++line, reached(at);
      if (in_string) {
        if (c == '\\' && at + 1 < text.size() && text[at + 1] != '\n') ++at;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        break;
      } else if ((c == '}' || c == ']') && depth > 0) {
        --depth;
      }
    }
    reached(at);
    return at;
  }
};

JsonlIndex JsonlIndex::build(std::string_view text, std::string_view origin, const Progress& progress) {
  JsonlIndex index;
  Scan scan{text, origin, progress};
  const size_t first = text.find_first_not_of(kBlanks);
  if (first != std::string_view::npos && text[first] == '[') {
    index.layout_ = Layout::list;
    index.scan_list(scan);
  } else {
    index.scan_lines(scan);
  }
  index.offsets_.shrink_to_fit();
  return index;
}

void JsonlIndex::add_row(Scan& scan, size_t start) {
  scan.reached(start);
  scan.row_start = start;
  scan.row_line = scan.line;
  if (offsets_.size() % kBlockRows == 0) blocks_.push_back({start, scan.line});
  offsets_.push_back(static_cast<uint32_t>(start - blocks_.back().start));
}

void JsonlIndex::scan_lines(Scan& scan) {
  end_ = scan.text.size();
  for (size_t at = 0; at < end_; ++scan.line) {
    add_row(scan, at);
    const void* found = std::memchr(scan.text.data() + at, '\n', end_ - at);
    at = found == nullptr ? end_ : static_cast<size_t>(static_cast<const char*>(found) - scan.text.data()) + 1;
    scan.reached(at);
  }
}

void JsonlIndex::scan_list(Scan& scan) {
  const std::string_view text = scan.text;
  size_t at = scan.skip_blanks(0) + 1;
  while (true) {
    at = scan.skip_blanks(at);
    if (at < text.size() && text[at] == ']' && size() == 0) break;
    if (at < text.size()) add_row(scan, at);  // an empty row where an element is missing
    at = scan.skip_element(at);
    check(at < text.size(), scan.origin, ":", scan.line, ": the list is not closed; the file may be cut off");
    if (text[at] == ']') break;
    ++at;
  }
  end_ = at;
  check(scan.skip_blanks(at + 1) >= text.size(), scan.origin, ":", scan.line, ": text after the end of the list");
}

TextSpan JsonlIndex::span(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  return {start_of(at), at + 1 == offsets_.size() ? end_ : start_of(at + 1)};
}

std::string_view JsonlIndex::trim(std::string_view bytes, int64_t row) const {
  std::string_view found = trimmed(bytes);
  if (layout_ == Layout::list && row + 1 < size() && found.ends_with(',')) found = trimmed(found.substr(0, found.size() - 1));
  return found;
}

int64_t JsonlIndex::line(std::string_view text, int64_t row) const {
  if (layout_ == Layout::lines) return row + 1;
  const Block& block = blocks_[static_cast<size_t>(row) / kBlockRows];
  const std::string_view before = text.substr(block.start, start_of(static_cast<size_t>(row)) - block.start);
  return static_cast<int64_t>(block.line) + std::count(before.begin(), before.end(), '\n');
}

}  // namespace kedge
