// Only in builds without MPI.
#include <gtest/gtest.h>

#include "kedge/dist/group.h"
#include "kedge/dist/mpi.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(NoMpi, MoreThanOneRankIsRefusedWithThePackagesToInstall) {
  EXPECT_EQ(testing::error_of([] { return Group::over_mpi(); }),
            "this kedge was built without MPI and runs as one process only: install libopenmpi-dev and openmpi-bin and build it again "
            "with KEDGE_MPI=ON");
}

TEST(NoMpi, SaysThatItIsNotThere) {
  EXPECT_FALSE(mpi::is_built());
  EXPECT_EQ(mpi::library_version(), "");
}

TEST(NoMpi, ThereIsNoJobToAbort) { mpi::abort_job(1); }

}  // namespace
}  // namespace kedge
