#include "kedge/reward/lexicon.h"

#include <gtest/gtest.h>

#include <sstream>

#include "kedge/core/utf8.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

TEST(Lexicon, SumsTheValuesOfItsWords) {
  const testing::TempFolder folder;
  const Lexicon lexicon(folder.file("words.txt", "good\t2\t0.5\t[1, 2]\nbad\t-1.5\r\n\ndon't\t-0.25\nGood\t100\nk\t8\n:)\t3\n"));
  EXPECT_EQ(lexicon.size(), 6U);
  EXPECT_EQ(lexicon.sum("A GOOD dog, a good-bad day."), 2.5);
  EXPECT_EQ(lexicon.sum("goods, rock'good, good'"), 2);  // the first two are other words
  EXPECT_EQ(lexicon.sum("Don't! don''t don' t"), -0.25);
  EXPECT_EQ(lexicon.sum("\u212A"), 8);  // the Kelvin sign's lower case is the letter k
  EXPECT_EQ(lexicon.sum(":) 1good2"), 2);
  EXPECT_EQ(lexicon.sum(""), 0);
}

TEST(Lexicon, TheLastOfRepeatedEntriesCounts) {
  const testing::TempFolder folder;
  EXPECT_EQ(Lexicon(folder.file("words.txt", "a\t1\nb\t2\na\t+4")).sum("a"), 4);
}

TEST(Lexicon, NamesTheLineThatIsWrong) {
  const testing::TempFolder folder;
  const auto error = [&](const char* content) {
    const auto file = folder.file("words.txt", content);
    const std::string text = testing::error_of([&] { return Lexicon(file); });
    EXPECT_EQ(text.substr(0, file.string().size()), file.string());
    return text.substr(file.string().size());
  };
  EXPECT_EQ(error("a\t1\nb\n"), ":2: expected a word, a tab and a number, found b");
  EXPECT_EQ(error("a\t1x\n"), ":1: expected a word, a tab and a number, found a\t1x");
  EXPECT_EQ(error(""), ": no words in it");
}

// What lexicon_sums.py works out with Python's own lower() and expressions. The sums over a text are exact: both add from left to right.
TEST(Lexicon, ScoresRealTextsAsPythonDoes) {
  KEDGE_NEEDS_ASSET("reward/vader/vader_lexicon.txt");
  const Lexicon lexicon(testing::asset("reward/vader/vader_lexicon.txt"));
  EXPECT_EQ(lexicon.size(), 7506U);
  const auto scores = [&](const char* name) {
    std::istringstream lines(read_text(testing::asset(name)));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);) {
      const size_t second_tab = line.find('\t', line.find('\t') + 1);
      found.push_back(lexicon.sum(utf8_replace_invalid(line.substr(second_tab + 1))));
    }
    return found;
  };
  const auto sum = [](const std::vector<double>& values) {
    double total = 0;
    for (const double value : values) total += value;
    return total;
  };
  const std::vector<double> reviews = scores("reward/vader/movieReviewSnippets_GroundTruth.txt");
  EXPECT_EQ(reviews.size(), 10605U);
  EXPECT_EQ(sum(reviews), 12681.399999999967);
  EXPECT_EQ(std::vector<double>(reviews.begin(), reviews.begin() + 3), (std::vector<double>{1.5, 4.6, 2.1}));
  EXPECT_EQ(sum(scores("reward/vader/tweets_GroundTruth.txt")), 5725.199999999994);
}

}  // namespace
}  // namespace kedge
