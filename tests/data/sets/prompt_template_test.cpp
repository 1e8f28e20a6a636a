#include "kedge/data/sets/prompt_template.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

// Pieces as text|text, fields in braces.
std::string pieces(std::string_view text) {
  const PromptTemplate parsed(text, "k");
  std::string out;
  for (const auto& piece : parsed.pieces()) out += "|" + piece.text + (piece.field.empty() ? "" : "{" + piece.field + "}");
  return out + "|";
}

TEST(PromptTemplate, IsCutAtPlaceholdersWithTheBlanksBeforeThem) {
  EXPECT_EQ(pieces("{input} {output}"), "|{input}| {output}|");
  EXPECT_EQ(pieces("Context:{context}  Passage: {passage}\n\nQuestion:{question} {label}"),
            "|Context:|{context}|  Passage:| {passage}|\n\nQuestion:|{question}| {label}|");
  EXPECT_EQ(pieces("{a}{b} end"), "|{a}|{b}| end|");
  EXPECT_EQ(pieces("   {a}"), "|   {a}|");
}

TEST(PromptTemplate, EscapesAreDecoded) {
  EXPECT_EQ(decode_escapes("a\\nb\\tc\\\\n\\x11\\u00e9\\U0001F600"), "a\nb\tc\\n\x11\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(decode_escapes("\\q \\x1 \\ud800 \\"), "\\q \\x1 \\ud800 \\");  // none of them is an escape
  EXPECT_EQ(decode_escapes("\xC3\xA9"), "\xC3\xA9");
  EXPECT_EQ(decode_escapes("\\0"), std::string("\0", 1));
  EXPECT_EQ(pieces("Q: {q}\\nA:{a}"), "|Q:| {q}|\nA:|{a}|");
}

TEST(PromptTemplate, FillsInARowAsItStands) {
  const TempFolder folder;
  const JsonlFile file(folder.file("f.jsonl", "{\"q\": \" two  \", \"a\": 4}"));
  EXPECT_EQ(PromptTemplate("Q: {q}.", "k").fill(file.row(0)), "Q:  two  .");
  EXPECT_EQ(error_of<RowError>([&] { return PromptTemplate("{x}", "k").fill(file.row(0)); }),
            file.path().string() + ":1: no \"x\" field; the row has \"q\", \"a\"");
  EXPECT_EQ(error_of<RowError>([&] { return PromptTemplate("{a}", "k").fill(file.row(0)); }),
            file.path().string() + ":1: \"a\": expected a string, found an integer");
}

TEST(PromptTemplate, WithoutPlaceholdersItIsRefused) {
  EXPECT_EQ(error_of([] { PromptTemplate("hello {", "k"); }), "k: \"hello {\" has no {field} in it");
  EXPECT_EQ(error_of([] { PromptTemplate("a {} b", "k"); }), "k: {} names no field");
}

}  // namespace
}  // namespace kedge
