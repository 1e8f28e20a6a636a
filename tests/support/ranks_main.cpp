#include <gtest/gtest.h>

#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "kedge/core/error.h"

#include "tests/support/ranks.h"

namespace kedge::testing {
namespace {

std::optional<Mesh> the_mesh;
std::map<int, Mesh> by_tensor_ranks;

// Rank 0 prints as usual; the others speak only of what failed.
class FailuresOfARank : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (result.failed())
      std::cerr << str("[rank ", world().rank(), "] ", result.file_name(), ":", result.line_number(), ": ", result.summary(), "\n");
  }
};

int run_on_this_rank() {
  the_mesh = Mesh::from_environment();
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (world().rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOfARank);
  }
  const int failed = RUN_ALL_TESTS();
  by_tensor_ranks.clear();
  the_mesh.reset();
  return failed;
}

}  // namespace

const Mesh& mesh() { return *the_mesh; }

const Mesh& mesh_of(int tensor_ranks) {
  const auto found = by_tensor_ranks.find(tensor_ranks);
  return found != by_tensor_ranks.end() ? found->second
                                        : by_tensor_ranks.emplace(tensor_ranks, mesh().with_tensor_ranks(tensor_ranks)).first->second;
}

}  // namespace kedge::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // An exception nobody expected must end all ranks: the others would wait for this one.
  GTEST_FLAG_SET(catch_exceptions, false);
  try {
    return kedge::testing::run_on_this_rank();
  } catch (const std::exception& error) {
    kedge::end_job(error.what(), kedge::kExitWorld);
  }
}
