#pragma once
// What this machine is: processor, memory, disk. Read from the system; independent of torch and GPUs.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"

namespace kedge {

struct Machine {
  std::string cpu;                    // "Neoverse-V1", "Intel(R) Xeon(R) ..."
  std::string architecture;           // "x86_64", "aarch64"
  std::vector<std::string> features;  // those that decide speed: avx2, avx512f, amx_bf16, asimd, sve, bf16, i8mm
  int num_cores = 0;                  // this process may run on
  int64_t memory_bytes = 0;           // of the machine, or of the control group if that is less
  int64_t available_bytes = 0;
};

[[nodiscard]] Machine this_machine();

// The same from the texts of /proc/cpuinfo and /proc/meminfo.
[[nodiscard]] Machine parse_machine(std::string_view cpuinfo, std::string_view meminfo);

[[nodiscard]] int64_t free_disk_bytes(const Path& folder);

// Resident memory of this process.
[[nodiscard]] int64_t resident_bytes();
[[nodiscard]] int64_t peak_resident_bytes();  // its peak

// "1.5 GiB", "512 MiB", "17 B".
[[nodiscard]] std::string format_bytes(int64_t bytes);

// Freed memory stays with the process for reuse: a training step allocates and frees the same large tensors again
// and again, and fresh pages from the system cost more than some of the work done in them.
void keep_freed_memory();

// Ends the process after flushing output, without destructors. LibTorch would tear down its table of operators, which
// takes longer than many commands.
[[noreturn]] void end_process(int exit_code);

}  // namespace kedge
