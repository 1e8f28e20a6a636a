#pragma once
// The flags that every command with a model takes: device and number type.
#include <array>
#include <cstdint>
#include <string>

#include "kedge/config/config.h"
#include "kedge/model/parameters.h"

namespace kedge::cli {

enum class Precision { fp32, bf16 };
constexpr auto enum_names(Precision) { return std::array<EnumName<Precision>, 2>{{{"fp32", Precision::fp32}, {"bf16", Precision::bf16}}}; }
[[nodiscard]] inline at::ScalarType dtype_of(Precision precision) { return precision == Precision::bf16 ? at::kBFloat16 : at::kFloat; }

struct DeviceFlags {
  std::string device = "auto";
  Precision dtype = Precision::fp32;
  int64_t threads = 0;
  int64_t seed = 1234;

  void fields(auto&& field) {
    field("device", device, "auto (a GPU if there is one), cpu, cuda or cuda:N");
    field("dtype", dtype, "type of weights and computation");
    field("threads", threads, "CPU threads; 0: OMP_NUM_THREADS, or one per core", at_least(0), at_most(4096));
    field("seed", seed, "random seed", at_least(0));
  }

  // Sets the number of threads too. A missing device is a UsageError.
  [[nodiscard]] StorageOptions storage() const;
};

}  // namespace kedge::cli
