#include "kedge/config/key_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/config_toys.h"
#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::ToyConfig;

std::vector<std::string> classes(const std::string& yaml) {
  ToyConfig config;
  std::vector<std::string> lines;
  for (const ClassedKey& key : classify_keys(describe(config), {"x.yaml", yaml}))
    lines.push_back(
        str(key.key, "=", key.value, " ", name_of(key.kind), key.note.empty() ? "" : " (", key.note, key.note.empty() ? "" : ")"));
  return lines;
}

TEST(KeyClasses, EveryValueOfTheFileHasOne) {
  EXPECT_THAT(
      classes("max_steps: 3\noptim:\n  lr: ${max_steps}\n  betas: [0.1, 0.2]\n  bucket_cap_mb: 200\n  fused: true\nnobody: {a: 1, b: {c: "
              "2}}\n"),
      ElementsAre("max_steps=3 honoured", "optim.lr=${max_steps} honoured", "optim.betas=[0.1, 0.2] honoured",
                  "optim.bucket_cap_mb=200 ignored (there are no buckets here)",
                  "optim.fused=true refused (unless true: only the fused form exists)", "nobody.a=1 unknown", "nobody.b.c=2 unknown"));
}

TEST(KeyClasses, ADefaultsListIsNoKey) {
  EXPECT_THAT(classes("defaults: [_self_]\nshuffle: false\n"), ElementsAre("shuffle=false honoured"));
}

TEST(KeyClasses, AFileWithoutKeysIsRefused) {
  EXPECT_THAT(error_of([] { return classes("[1, 2]"); }), ::testing::HasSubstr("x.yaml:1: needs keys and values at the top"));
}

struct Renamed {
  int64_t port = 1;
  void fields(auto&& field) {
    field("port", port, "the port");
    field.alias("old.port", "port");
  }
};

TEST(KeyClasses, AnotherNameIsConverted) {
  Renamed config;
  const auto keys = classify_keys(describe(config), {"x.yaml", "old: {port: 3}\n"});
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].key, "old.port");
  EXPECT_EQ(keys[0].kind, KeyClass::converted);
  EXPECT_EQ(keys[0].note, "read as port");
}

}  // namespace
}  // namespace kedge
