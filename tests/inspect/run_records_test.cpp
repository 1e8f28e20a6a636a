#include "kedge/inspect/run_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/run_toy.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::RunToy;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RunRecords, OfARunOrOfTheFolderItself) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_record(3, {{"p", "r", 2}});
  toy.add_record(10, {{"p", "s", 2}});
  for (const Path& where : {toy.folder(), toy.folder() / "rollouts"}) {
    const RunRecords records(where.string());
    EXPECT_THAT(records.steps(), ElementsAre(3, 10));
    EXPECT_EQ(records.choose("last"), 10);
    EXPECT_EQ(records.rows(3).at(0).rollout->response, "r");
  }
}

TEST(RunRecords, WhatIsMissingOrAnotherStepIsNamed) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  EXPECT_THAT(error_of([&] { return RunRecords((folder / "none").string()); }), HasSubstr("no such folder"));
  EXPECT_THAT(error_of([&] { return RunRecords(toy.folder().string()); }), HasSubstr("no answers in it"));
  toy.add_record(3, {{"p", "r", 2}});
  std::filesystem::copy_file(toy.folder() / "rollouts" / "step-3.jsonl", toy.folder() / "rollouts" / "step-4.jsonl");
  const RunRecords records(toy.folder().string());
  EXPECT_THAT(error_of([&] { return records.rows(4); }), HasSubstr("step-4.jsonl:1: has the answers of step 3"));
}

}  // namespace
}  // namespace kedge
