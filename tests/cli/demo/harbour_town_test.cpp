#include "cli/demo/harbour_town.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace kedge::cli {
namespace {

// Facts may begin a sentence.
bool mentions(const std::string& answer, const std::string& fact) {
  const std::string large = static_cast<char>(fact[0] - 'a' + 'A') + fact.substr(1);
  return answer.find(fact) != std::string::npos || answer.find(large) != std::string::npos;
}

TEST(HarbourTown, TheSameVisitorAsksTheSame) {
  HarbourTown one(1, 7), same(1, 7), other(1, 8);
  std::set<std::string> texts;
  for (int i = 0; i < 20; ++i) {
    const TownQuestion question = one.ask();
    EXPECT_EQ(question.text, same.ask().text);
    texts.insert(question.text);
    texts.insert(other.ask().text);
  }
  EXPECT_GT(texts.size(), 30U);
}

TEST(HarbourTown, EveryBlankIsFilledAndEveryAnswerIsRight) {
  std::map<Manner, double> lengths;
  for (uint64_t visitor = 0; visitor < 2000; ++visitor) {
    HarbourTown town(3, visitor);
    const TownQuestion question = town.ask();
    EXPECT_EQ(question.text.find_first_of("{}"), std::string::npos) << question.text;
    for (const Manner manner : {Manner::gruff, Manner::plain, Manner::kind}) {
      const std::string answer = town.answer(question, manner);
      lengths[manner] += static_cast<double>(answer.size());
      EXPECT_EQ(answer.find_first_of("{}"), std::string::npos) << answer;
      EXPECT_EQ(answer.find("  "), std::string::npos) << answer;
      EXPECT_TRUE(answer[0] >= 'A' && answer[0] <= 'Z') << answer;
      EXPECT_TRUE(mentions(answer, question.answer)) << question.text << " " << answer;
    }
  }
  EXPECT_GT(lengths[Manner::kind], 1.5 * lengths[Manner::gruff]);
}

TEST(HarbourTown, FaultyAnswersAreFaulty) {
  int64_t num_right = 0;
  for (uint64_t visitor = 0; visitor < 500; ++visitor) {
    HarbourTown town(5, visitor);
    const TownQuestion question = town.ask();
    EXPECT_FALSE(mentions(town.faulty_answer(question, Manner::plain, Fault::wrong_fact), question.answer)) << question.text;
    num_right += mentions(town.faulty_answer(question, Manner::plain, Fault::off_topic), question.answer) ? 1 : 0;
    const std::string repeated = town.faulty_answer(question, Manner::plain, Fault::repeated);
    const std::string first = repeated.substr(0, repeated.find_first_of(".!?") + 1);
    EXPECT_EQ(repeated.substr(first.size() + 1, first.size()), first);
  }
  EXPECT_EQ(num_right, 0);
}

}  // namespace
}  // namespace kedge::cli
