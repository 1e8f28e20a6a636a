#include "kedge/data/files/jsonl_index.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

std::string row_of(const JsonlIndex& index, std::string_view text, int64_t row) {
  const TextSpan span = index.span(row);
  return std::string(index.trim(text.substr(span.begin, span.end - span.begin), row));
}

std::vector<std::string> rows_of(std::string_view text) {
  const JsonlIndex index = JsonlIndex::build(text, "f");
  std::vector<std::string> rows;
  for (int64_t i = 0; i < index.size(); ++i) rows.push_back(row_of(index, text, i));
  return rows;
}

using Strings = std::vector<std::string>;

TEST(JsonlIndex, ARowIsALineWithoutBlanksAroundIt) {
  EXPECT_EQ(rows_of("{\"a\":1}\n {\"b\":2}\t\r\n{\"c\":3}"), (Strings{"{\"a\":1}", "{\"b\":2}", "{\"c\":3}"}));
  EXPECT_EQ(rows_of("x\n"), Strings{"x"});
  EXPECT_EQ(rows_of(""), Strings{});
}

TEST(JsonlIndex, AnEmptyLineIsARowOfItsOwn) {
  EXPECT_EQ(rows_of("a\n\nb\n"), (Strings{"a", "", "b"}));
  EXPECT_EQ(rows_of("a\n\n"), (Strings{"a", ""}));
  EXPECT_EQ(rows_of("\n"), Strings{""});
}

TEST(JsonlIndex, TheElementsOfAListAreRows) {
  EXPECT_EQ(rows_of(" [ {\"a\": [1, 2]} ,\n {\"b\": \"],[}\\\"\"}, 3 ]\n"), (Strings{"{\"a\": [1, 2]}", "{\"b\": \"],[}\\\"\"}", "3"}));
  EXPECT_EQ(rows_of("[]"), Strings{});
  EXPECT_EQ(rows_of("[1]"), Strings{"1"});
}

TEST(JsonlIndex, AMissingElementIsAnEmptyRow) {
  EXPECT_EQ(rows_of("[1,,2]"), (Strings{"1", "", "2"}));
  EXPECT_EQ(rows_of("[1,]"), (Strings{"1", ""}));
  EXPECT_EQ(rows_of("[,]"), (Strings{"", ""}));
}

TEST(JsonlIndex, BrokenElementsStayTheirOwnMatter) {
  EXPECT_EQ(rows_of("[}, {]}, 4]"), (Strings{"}", "{]}", "4"}));  // brackets are counted, not matched
  EXPECT_EQ(rows_of("[a b, c]"), (Strings{"a b", "c"}));
}

TEST(JsonlIndex, AListThatIsNotClosedOrGoesOnIsRefusedWithItsLine) {
  EXPECT_EQ(error_of([] { rows_of("[1,\n2"); }), "f:2: the list is not closed; the file may be cut off");
  EXPECT_EQ(error_of([] { rows_of("["); }), "f:1: the list is not closed; the file may be cut off");
  EXPECT_EQ(error_of([] { rows_of("[\"a\\\"]"); }), "f:1: the list is not closed; the file may be cut off");
  EXPECT_EQ(error_of([] { rows_of("[1]\n\n{}"); }), "f:3: text after the end of the list");
}

TEST(JsonlIndex, LinesAreKnownInBothLayouts) {
  const std::string lines = "a\nb\nc\n";
  EXPECT_EQ(JsonlIndex::build(lines, "f").line(lines, 2), 3);
  std::string list = "[";
  for (int i = 0; i < 200; ++i) list += "\n{\n\"x\": " + std::to_string(i) + "\n},";  // more rows than a block holds
  list.back() = ']';
  const JsonlIndex index = JsonlIndex::build(list, "f");
  ASSERT_EQ(index.size(), 200);
  EXPECT_EQ(index.line(list, 0), 2);
  EXPECT_EQ(index.line(list, 63), 2 + 63 * 3);
  EXPECT_EQ(index.line(list, 64), 2 + 64 * 3);
  EXPECT_EQ(index.line(list, 199), 2 + 199 * 3);
  EXPECT_EQ(row_of(index, list, 150), "{\n\"x\": 150\n}");
}

TEST(JsonlIndex, ARowAboveTheLimitIsRefusedByItsLine) {
  const std::string fits(JsonlIndex::kMaxRowBytes - 1, 'x');
  EXPECT_EQ(JsonlIndex::build("a\n" + fits + "\nb", "f").size(), 3);
  const std::string wanted = "f:2: a row of more than 67108864 bytes";
  EXPECT_EQ(error_of([&] { JsonlIndex::build("a\n" + fits + "xx\nb", "f"); }), wanted);
  EXPECT_EQ(error_of([&] { JsonlIndex::build("[1,\n\"" + fits + "xx\"]", "f"); }), wanted);
}

TEST(JsonlIndex, ReportsHowFarItCame) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += std::string((1 << 20) - 1, 'x') + "\n";
  size_t last = 0, calls = 0;
  JsonlIndex::build(text, "f", [&](size_t scanned) {
    EXPECT_GT(scanned, last);
    last = scanned, ++calls;
  });
  EXPECT_EQ(calls, 2U);  // every 8 MiB
  EXPECT_LE(last, text.size());
}

}  // namespace
}  // namespace kedge
