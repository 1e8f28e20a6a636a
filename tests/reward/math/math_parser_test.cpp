#include "kedge/reward/math/math_parser.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

MathNode tree_of(std::string_view text) { return MathParser(math_tokens(text).value()).answer(); }

TEST(MathParser, OperatorsBindAsUsual) {
  const MathNode sum = tree_of("1 + 2x^2");
  ASSERT_EQ(sum.kind, MathNode::Kind::add);
  ASSERT_EQ(sum.parts[1].kind, MathNode::Kind::multiply);
  EXPECT_EQ(sum.parts[1].parts[1].kind, MathNode::Kind::power);
  EXPECT_EQ(tree_of("x = 1, y = 2").kind, MathNode::Kind::list);
  EXPECT_EQ(tree_of("-x^2").kind, MathNode::Kind::negate);
}

TEST(MathParser, ThrowsWhatIsNoAnswer) {
  for (const char* const text : {"1 +", "(1, 2", "\\frac{1}", "x = ", "1 2 )"}) EXPECT_THROW(tree_of(text), UnreadableMath) << text;
  EXPECT_THROW(tree_of(std::string(400, '(') + "1" + std::string(400, ')')), UnreadableMath);
}

}  // namespace
}  // namespace kedge
