#include "kedge/text/tokenizer/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

ByteLevelParts small_parts() {
  ByteLevelParts parts;
  parts.vocab = Json::Object{{"<eos>", 0}, {"a", 1}, {"b", 2}, {"ab", 3}};
  parts.merges.push_back(Json::Array{"a", "b"});  // in braces alone, clang would make one array of the two
  parts.special = {"<eos>", "<extra>"};
  return parts;
}

TEST(TokenizerFiles, LoadBackAsTheyWereMade) {
  const testing::TempFolder folder;
  const TokenizerFiles files = make_byte_level_files(small_parts(), {.bos = "", .eos = "<eos>", .pad = "<extra>"});
  files.write(folder / "new/model");
  const auto made = files.load();
  const auto loaded = load_tokenizer(folder / "new/model");
  EXPECT_EQ(made->fingerprint(), loaded->fingerprint());
  for (const auto* tokenizer : {made.get(), loaded.get()}) {
    EXPECT_THAT(tokenizer->encode("abba<eos>"), ElementsAre(3, 2, 1, 0));
    EXPECT_EQ(tokenizer->special().eos, 0);
    EXPECT_EQ(tokenizer->special().pad, 4);
    EXPECT_EQ(tokenizer->special().bos, std::nullopt);
    EXPECT_THAT(tokenizer->special().stop, ElementsAre(0));
  }
}

}  // namespace
}  // namespace kedge
