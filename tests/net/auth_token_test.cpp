#include "kedge/net/auth_token.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

TEST(Token, IsTheFilesTextWithoutItsEnd) {
  const testing::TempFolder folder;
  EXPECT_EQ(read_token_file(folder.file("a", "secret word \r\n\n"), "token_file"), "secret word");
  const std::string empty = folder.file("b", " \n");
  EXPECT_EQ(testing::error_of<UsageError>([&] { (void)read_token_file(empty, "token_file"); }), "token_file: " + empty + " is empty");
}

TEST(Token, IsOneLineOfPrintableAscii) {
  const testing::TempFolder folder;
  for (const std::string& wrong : {std::string("two\nlines\n"), std::string("tab\there"), std::string("\x01"), std::string("caf\xc3\xa9"),
                                   std::string(513, 'a'), std::string(100000, ' ') + "x"}) {
    const std::string file = folder.file("wrong", wrong);
    EXPECT_THROW((void)read_token_file(file, "token_file"), UsageError) << wrong.substr(0, 20);
  }
  EXPECT_EQ(read_token_file(folder.file("long", std::string(512, 'a') + "\n"), "token_file").size(), 512U);
}

TEST(Token, RandomOnesDiffer) {
  EXPECT_EQ(random_token().size(), 64U);
  EXPECT_NE(random_token(), random_token());
}

TEST(Token, IsShownWholeOrNotAtAll) {
  EXPECT_TRUE(shows_token(authorization_of("secret"), "secret"));
  for (const char* wrong : {"", "Bearer ", "Bearer secre", "Bearer secret2", "bearer secret", "Basic secret", "secret"})
    EXPECT_FALSE(shows_token(wrong, "secret")) << wrong;
}

}  // namespace
}  // namespace kedge
