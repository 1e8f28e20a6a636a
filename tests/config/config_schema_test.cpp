#include "kedge/config/config_schema.h"

#include <gtest/gtest.h>

#include "tests/support/config_toys.h"
#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(ConfigSchema, ByteSizesHaveUnits) {
  const auto bytes = [](const char* text) {
    ByteSize size{-1};
    return read_scalar(ConfigNode::scalar(text), size) ? size.bytes : -1;
  };
  EXPECT_EQ(bytes("4096"), 4096);
  EXPECT_EQ(bytes("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(bytes("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(bytes("2 GB"), 2000000000);
  EXPECT_EQ(bytes("7B"), 7);
  for (const char* bad : {"-1", "MiB", "1XB", "", "1e30GiB"}) EXPECT_EQ(bytes(bad), -1) << bad;
}

TEST(ConfigSchema, BoundsAreSaidInWords) {
  FieldRules rules;
  EXPECT_EQ(bounds_text(rules), "");
  at_least(0.5)(rules);
  EXPECT_EQ(bounds_text(rules), "at least 0.5");
  above(0)(rules);
  at_most(10)(rules);
  EXPECT_EQ(bounds_text(rules), "above 0 and at most 10");
  FieldRules unbounded;
  finite()(unbounded);
  EXPECT_EQ(bounds_text(unbounded), "finite");
}

TEST(ConfigSchema, TypesHaveNamesForPeople) {
  testing::ToyConfig config;
  const Section section = describe(config);
  const auto type = [&](const char* path) { return find_field(section, path)->type; };
  EXPECT_EQ(type("mode"), "min | max");
  EXPECT_EQ(type("optim.betas"), "list of number");
  EXPECT_EQ(type("optim.clip"), "number or null");
  EXPECT_EQ(type("limits"), "map of integer");
  EXPECT_EQ(type("data_prefix.train"), "any");  // inside a free-form field
  EXPECT_FALSE(find_field(section, "optim.nothing").has_value());
}

TEST(ConfigSchema, BindingTheOwnValuesChangesNothing) {
  testing::ToyConfig config;
  config.max_steps = 7;
  const Section section = describe(config);
  BindReport report;
  bind_section(section, section_node(section), "", report);
  EXPECT_TRUE(report.errors.empty());
  EXPECT_EQ(config.max_steps, 7);
}

TEST(ConfigSchema, AnUnknownKeyInAListOfSectionsHasItsNearest) {
  EXPECT_EQ(testing::error_of([] { return testing::load_toy("sources: [{name: a, wieght: 2}]"); }),
            "x.yaml:1: unknown key \"sources.0.wieght\"; nearest: sources.0.weight");
}

}  // namespace
}  // namespace kedge
