#include "kedge/dist/collective_signature.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using Shape = std::vector<int64_t>;

std::string disagreement(const std::vector<CollectiveCall>& calls, Freedom freedom) {
  return testing::error_of<Error>([&] { return check_agreement(calls, freedom), 0; });
}

TEST(CollectiveCall, EqualCallsAgree) {
  const CollectiveCall call = make_call("all_reduce sum", "fp32", Shape{3, 4});
  EXPECT_NO_THROW(check_agreement(std::vector{call, call, call}, Freedom::none));
  EXPECT_NO_THROW(check_agreement(std::vector{make_call("barrier"), make_call("barrier")}, Freedom::none));
}

TEST(CollectiveCall, TheErrorShowsTheFirstRankThatDiffersFromRank0) {
  const CollectiveCall call = make_call("all_reduce sum", "fp32", Shape{3, 4});
  EXPECT_EQ(disagreement({call, call, make_call("all_reduce sum", "fp32", Shape{3, 5})}, Freedom::none),
            "the ranks disagree: rank 0 calls all_reduce sum of fp32 [3, 4], rank 2 calls all_reduce sum of fp32 [3, 5]");
  EXPECT_EQ(disagreement({call, make_call("all_reduce sum", "bf16", Shape{3, 4}), call}, Freedom::none),
            "the ranks disagree: rank 0 calls all_reduce sum of fp32 [3, 4], rank 1 calls all_reduce sum of bf16 [3, 4]");
  EXPECT_EQ(disagreement({make_call("barrier"), call}, Freedom::none),
            "the ranks disagree: rank 0 calls barrier, rank 1 calls all_reduce sum of fp32 [3, 4]");
}

TEST(CollectiveCall, AScalarIsNotARowOfOne) {
  EXPECT_EQ(disagreement({make_call("broadcast from rank 0", "fp32", Shape{}), make_call("broadcast from rank 0", "fp32", Shape{1})},
                         Freedom::none),
            "the ranks disagree: rank 0 calls broadcast from rank 0 of fp32 [], rank 1 calls broadcast from rank 0 of fp32 [1]");
}

TEST(CollectiveCall, FreeRowsFreeOnlyTheFirstDimension) {
  const CollectiveCall two = make_call("all_gather_rows", "int64", Shape{2, 7});
  EXPECT_NO_THROW(check_agreement(std::vector{two, make_call("all_gather_rows", "int64", Shape{0, 7})}, Freedom::rows));
  EXPECT_EQ(disagreement({two, make_call("all_gather_rows", "int64", Shape{2, 8})}, Freedom::rows),
            "the ranks disagree: rank 0 calls all_gather_rows of int64 [2, 7], rank 1 calls all_gather_rows of int64 [2, 8]");
  EXPECT_EQ(disagreement({two, make_call("all_gather_rows", "int64", Shape{2})}, Freedom::rows),
            "the ranks disagree: rank 0 calls all_gather_rows of int64 [2, 7], rank 1 calls all_gather_rows of int64 [2]");
}

TEST(CollectiveCall, FullFreedomStillHoldsTheNameAndTheType) {
  const CollectiveCall text = make_call("all_gather", "bytes", Shape{5});
  EXPECT_NO_THROW(check_agreement(std::vector{text, make_call("all_gather", "bytes", Shape{9})}, Freedom::all));
  EXPECT_EQ(disagreement({text, make_call("all_gather", "uint8", Shape{5})}, Freedom::all),
            "the ranks disagree: rank 0 calls all_gather of bytes [5], rank 1 calls all_gather of uint8 [5]");
}

TEST(CollectiveCall, MoreThanEightDimensionsAreRefused) {
  EXPECT_EQ(testing::error_of<Bug>([] {
              return make_call("all_gather", "fp32", Shape{1, 1, 1, 1, 1, 1, 1, 1, 2});
            }),
            "all_gather: at most 8 dimensions, found [1, 1, 1, 1, 1, 1, 1, 1, 2]");
}

}  // namespace
}  // namespace kedge
