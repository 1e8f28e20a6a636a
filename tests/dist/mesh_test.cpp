#include "kedge/dist/mesh.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch(const Variables& variables) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, AProcessStartedAloneIsOneRank) {
  EXPECT_EQ(launch({}).num_ranks, 1);
  EXPECT_EQ(launch({}).rank, 0);
  EXPECT_EQ(launch({}).local_rank, 0);
  // Inside sbatch or salloc, but not started by srun.
  EXPECT_EQ(launch({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}).num_ranks, 1);
}

TEST(Launch, ReadsMpirun) {
  const Launch found = launch({{"OMPI_COMM_WORLD_SIZE", "6"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}, {"PMIX_RANK", "5"}});
  EXPECT_EQ(found.num_ranks, 6);
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.local_rank, 2);
}

TEST(Launch, MpirunInsideSlurmIsMpirun) {
  const Launch found = launch({{"OMPI_COMM_WORLD_SIZE", "8"},
                               {"OMPI_COMM_WORLD_RANK", "7"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_PROCID", "1"},
                               {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(found.num_ranks, 8);
  EXPECT_EQ(found.rank, 7);
  EXPECT_EQ(found.local_rank, 3);
}

TEST(Launch, ReadsSrun) {
  const Launch pmix = launch({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}, {"PMIX_RANK", "3"}});
  EXPECT_EQ(pmix.num_ranks, 4);
  EXPECT_EQ(pmix.rank, 3);
  EXPECT_EQ(pmix.local_rank, 1);
  const Launch pmi2 = launch({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}, {"PMI_SIZE", "4"}, {"PMI_RANK", "3"}});
  EXPECT_EQ(pmi2.num_ranks, 4);
  EXPECT_EQ(pmi2.local_rank, 1);
}

TEST(Launch, ReadsMpich) {
  const Launch found = launch({{"PMI_SIZE", "3"}, {"PMI_RANK", "2"}, {"MPI_LOCALRANKID", "2"}});
  EXPECT_EQ(found.num_ranks, 3);
  EXPECT_EQ(found.local_rank, 2);
}

TEST(Launch, OneTaskNeedsNoMpi) {
  EXPECT_EQ(launch({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_LOCALID", "0"}}).num_ranks, 1);
  EXPECT_EQ(launch({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}).num_ranks, 1);
}

TEST(Launch, TasksThatCannotMeetAreRefused) {
  EXPECT_EQ(testing::error_of([] {
              return launch({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "1"}});
            }),
            "srun started 2 tasks that MPI cannot connect: start with srun --mpi=pmix");
}

TEST(Launch, AnUnknownLauncherIsRefused) {
  EXPECT_EQ(testing::error_of([] {
              return launch({{"PMIX_RANK", "0"}});
            }),
            "started by a launcher that does not say how many ranks there are (PMIX_RANK is set, OMPI_COMM_WORLD_SIZE, PMI_SIZE and "
            "SLURM_STEP_NUM_TASKS are not): start with mpirun or srun --mpi=pmix");
}

TEST(Launch, NumbersMustBeNumbers) {
  EXPECT_EQ(testing::error_of([] {
              return launch({{"OMPI_COMM_WORLD_SIZE", "0"}});
            }),
            "OMPI_COMM_WORLD_SIZE: expected a number of at least 1, found \"0\"");
  EXPECT_EQ(testing::error_of([] {
              return launch({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1x"}});
            }),
            "OMPI_COMM_WORLD_LOCAL_RANK: expected a number of at least 0, found \"1x\"");
  EXPECT_EQ(testing::error_of([] {
              return launch({{"SLURM_STEP_NUM_TASKS", ""}, {"PMIX_RANK", "0"}});
            }),
            "SLURM_STEP_NUM_TASKS: expected a number of at least 1, found \"\"");
}

TEST(Mesh, RanksTakeTheGpusInTurn) {
  EXPECT_EQ(name_of(device_of_rank({}, 0, 4)), "cuda:0");
  EXPECT_EQ(name_of(device_of_rank({}, 3, 4)), "cuda:3");
  EXPECT_EQ(name_of(device_of_rank({}, 5, 4)), "cuda:1");
  EXPECT_EQ(name_of(device_of_rank({.device = "cuda"}, 1, 2)), "cuda:1");
  EXPECT_EQ(name_of(device_of_rank({.device = "cpu"}, 1, 2)), "cpu");
}

TEST(Mesh, WithoutGpusTheDeviceIsTheCpuOrAnError) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(name_of(device_of_rank({}, 1, 0)), "cpu");
  EXPECT_EQ(testing::error_of([] { return device_of_rank({.device = "cuda", .device_key = "trainer.device"}, 1, 0); }),
            "trainer.device: cuda asked for, but no CUDA device is usable (kedge doctor says why)");
}

TEST(Mesh, OfOneProcessStartsNoMpi) {
  const Mesh mesh = Mesh::from_environment({.device = "cpu"});
  EXPECT_EQ(mesh.world.size(), 1);
  EXPECT_EQ(mesh.local_rank, 0);
  EXPECT_EQ(name_of(mesh.device), "cpu");
  // A second one would be refused, had the first started MPI.
  EXPECT_EQ(Mesh::from_environment({.device = "cpu"}).world.size(), 1);
}

TEST(EndJobDeathTest, LogsTheMessageAndExitsWithTheCode) {
  EXPECT_EXIT(end_job("no room left on the disk", 2), ::testing::ExitedWithCode(2), "error no room left on the disk");
}

}  // namespace
}  // namespace kedge
