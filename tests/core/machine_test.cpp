#include "kedge/core/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "kedge/core/files.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(Machine, ReadsAnX86ProcessorAndItsMemory) {
  const Machine machine = parse_machine(
      "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Some Xeon\nflags\t\t: fpu avx2 avx512f amx_bf16 ht\n\nprocessor\t: 1\nmodel name\t: "
      "Other\n",
      "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    8192 kB\n");
  EXPECT_EQ(machine.cpu, "Some Xeon");
  EXPECT_THAT(machine.features, ElementsAre("avx2", "avx512f", "amx_bf16"));
  EXPECT_EQ(machine.memory_bytes, 16 << 20);
  EXPECT_EQ(machine.available_bytes, 8 << 20);
}

TEST(Machine, ReadsAnArmProcessor) {
  const Machine machine = parse_machine("processor\t: 0\nFeatures\t: fp asimd bf16\nCPU part\t: 0xd40\n", "");
  EXPECT_EQ(machine.cpu, "Neoverse-V1");
  EXPECT_THAT(machine.features, ElementsAre("asimd", "bf16"));
  EXPECT_EQ(parse_machine("CPU part\t: 0x123\n", "").cpu, "Arm part 0x123");
}

TEST(Machine, ThisOneHasCoresAndMemory) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.num_cores, 1);
  EXPECT_GT(machine.memory_bytes, 0);
  EXPECT_GT(free_disk_bytes("/"), 0);
}

TEST(Machine, BytesAreWrittenForPeople) {
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(int64_t{512} << 20), "512 MiB");
  EXPECT_EQ(format_bytes(int64_t{139} << 30), "139 GiB");
}

TEST(Machine, MemoryInUseGrowsWithWhatIsTouched) {
  const int64_t before = resident_bytes();
  EXPECT_GT(before, 1 << 20);
  const std::vector<char> touched(64 << 20, 'x');
  EXPECT_GE(resident_bytes(), before + (60 << 20));
  EXPECT_EQ(touched.back(), 'x');
}

TEST(Machine, AProcessThatEndsHasWrittenWhatItPrinted) {
  const testing::TempFolder folder;
  const Path printed = folder / "printed.txt";
  EXPECT_EXIT(
      {
        std::FILE* file = std::fopen(printed.c_str(), "w");
        std::fputs("the last words", file);  // still in the buffer
        end_process(3);
      },
      ::testing::ExitedWithCode(3), "");
  EXPECT_EQ(read_text(printed), "the last words");
}

}  // namespace
}  // namespace kedge
