#pragma once
// Where the ranks of a group run, as far as it decides how their GPUs are connected. Independent of torch.
#include <span>
#include <string>
#include <vector>

#include "kedge/dist/group.h"

namespace kedge {

struct RankPlace {
  std::string machine;  // differs between machines, also if they have the same name, and between containers with names of their own
  std::string gpu;      // its place on the bus (core/cuda_device.h); empty without one
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

// Every rank's, in rank order. A call of all ranks.
[[nodiscard]] std::vector<RankPlace> gather_places(const Group& group, const std::string& gpu);

[[nodiscard]] bool on_one_machine(std::span<const RankPlace> places);

// Does another rank use the GPU of this one?
[[nodiscard]] bool shares_gpu(std::span<const RankPlace> places, int rank);
[[nodiscard]] bool some_share_gpus(std::span<const RankPlace> places);

}  // namespace kedge
