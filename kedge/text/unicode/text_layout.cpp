#include "kedge/text/unicode/text_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/utf8.h"
#include "kedge/text/unicode/unicode.h"

namespace kedge {
namespace {

// Blocks whose characters take two columns. Terminals differ at the edges; what matters is that none of these is counted as one.
constexpr std::array<std::pair<char32_t, char32_t>, 17> kWide = {{{0x1100, 0x115F},
                                                                  {0x231A, 0x231B},
                                                                  {0x23E9, 0x23F3},
                                                                  {0x25FD, 0x25FE},
                                                                  {0x2614, 0x2615},
                                                                  {0x2648, 0x2653},
                                                                  {0x26A1, 0x26FF},
                                                                  {0x2705, 0x27BF},
                                                                  {0x2B1B, 0x2B55},
                                                                  {0x2E80, 0x303E},
                                                                  {0x3041, 0xA4CF},
                                                                  {0xA960, 0xA97F},
                                                                  {0xAC00, 0xD7A3},
                                                                  {0xF900, 0xFAFF},
                                                                  {0xFE30, 0xFF60},
                                                                  {0xFFE0, 0xFFE6},
                                                                  {0x1F000, 0x3FFFD}}};

bool is_wide(char32_t code) {
  return std::any_of(kWide.begin(), kWide.end(), [&](const auto& range) { return code >= range.first && code <= range.second; });
}

size_t columns_of(char32_t code) {
  if (code < 0x300) return 1;
  const Category category = char_table().category(code);
  if (category == Category::Mn || category == Category::Me || category == Category::Cf) return 0;
  return is_wide(code) ? 2 : 1;
}

// Codes that end or turn lines, or are not characters. Joiners, which emoji and some scripts are written with, are not among them.
bool acts(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;
  return code == 0x2028 || code == 0x2029 || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string escape_of(char32_t code) {
  if (code == '\t') return "\\t";
  if (code == '\r') return "\\r";
  std::array<char, 16> text{};
  const int length = std::snprintf(text.data(), text.size(), code < 0x80 ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(code));
  return {text.data(), static_cast<size_t>(length)};
}

// A character and the marks on it; of text that is not UTF-8, a byte.
size_t cluster_length(std::string_view text) {
  size_t end = std::max<size_t>(utf8_length(text), 1);
  while (end < text.size() && utf8_length(text.substr(end)) > 1 && columns_of(utf8_decode(text.substr(end))) == 0)
    end += utf8_length(text.substr(end));
  return end;
}

// How much of one line fits, in bytes: all of it, or up to a space, or up to a character.
size_t fitting(std::string_view line, size_t width) {
  size_t columns = 0, at = 0, behind_space = 0;
  while (at < line.size()) {
    const size_t length = cluster_length(line.substr(at));
    const size_t more = kedge::columns_of(line.substr(at, length));
    const bool is_space = line[at] == ' ';
    if (columns + more > width && !is_space)
      return behind_space > 0 ? behind_space : std::max(at, length);  // at least one, or it would not end
    columns += more;                                                  // a space at the edge hangs over, and is cut
    at += length;
    if (is_space && line.find_first_not_of(' ') < at) behind_space = at;
  }
  return at;
}

void wrap_line(std::string_view line, size_t width, std::vector<std::string>& lines) {
  do {
    const size_t length = fitting(line, width);
    std::string_view piece = line.substr(0, length);
    line.remove_prefix(length);
    if (!line.empty() || kedge::columns_of(piece) > width) piece = piece.substr(0, piece.find_last_not_of(' ') + 1);
    lines.emplace_back(piece);
  } while (!line.empty());
}

std::string left_out(size_t count, const char* which) { return str("[", count, which, count == 1 ? " line" : " lines", "; --full]"); }

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      std::array<char, 8> byte{};
      std::snprintf(byte.data(), byte.size(), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
      out += byte.data();
      text.remove_prefix(1);
      continue;
    }
    const char32_t code = utf8_decode(text);
    if (code != '\n' && acts(code)) {
      out += escape_of(code);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    columns += columns_of(utf8_decode(text));
    text.remove_prefix(std::max<size_t>(utf8_length(text), 1));
  }
  return columns;
}

std::string pad_right(std::string_view text, size_t width) {
  return std::string(text) + std::string(width - std::min(width, columns_of(text)), ' ');
}

std::string pad_left(std::string_view text, size_t width) {
  return std::string(width - std::min(width, columns_of(text)), ' ') + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (true) {
    const size_t end = text.find('\n');
    wrap_line(text.substr(0, end), std::max<size_t>(width, 2), lines);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> first_lines(std::vector<std::string> lines, size_t limit) {
  if (limit == 0 || lines.size() <= limit + 1) return lines;  // the mark would take the line's own place
  const size_t num_hidden = lines.size() - limit;
  lines.resize(limit);
  lines.push_back(left_out(num_hidden, " more"));
  return lines;
}

std::vector<std::string> last_lines(std::vector<std::string> lines, size_t limit) {
  if (limit == 0 || lines.size() <= limit + 1) return lines;
  const size_t num_hidden = lines.size() - limit;
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(limit));
  lines.insert(lines.begin(), left_out(num_hidden, " earlier"));
  return lines;
}

}  // namespace kedge
