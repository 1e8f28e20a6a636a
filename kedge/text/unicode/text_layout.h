#pragma once
// Texts from outside, laid out for a terminal: nothing in them moves the cursor, and no line is wider than requested. Independent of
// terminals.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

// Characters that would do something in a terminal, and bytes that are not UTF-8, become \x1b, \t or \u{202e}; line ends and all else stay.
[[nodiscard]] std::string printable(std::string_view text);

// Columns that one line of printable text takes: most characters one, those of Chinese, Japanese and Korean and most emoji two, marks on
// other characters none.
[[nodiscard]] size_t columns_of(std::string_view text);

// One line of printable text with blanks after it, or before it, to make it `width` columns wide. A wider one stays as it is.
[[nodiscard]] std::string pad_right(std::string_view text, size_t width);
[[nodiscard]] std::string pad_left(std::string_view text, size_t width);

// Lines of at most `width` columns (at least 2): broken at line ends, else at spaces, else between characters, never inside one or before a
// mark on it. Spaces at a break go, others stay. Printable text in; at least one line out.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, size_t width);

// The first of the lines, or the last ones, and in place of the others one line with their number. 0: all of them.
[[nodiscard]] std::vector<std::string> first_lines(std::vector<std::string> lines, size_t limit);
[[nodiscard]] std::vector<std::string> last_lines(std::vector<std::string> lines, size_t limit);

}  // namespace kedge
