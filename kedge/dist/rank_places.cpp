#include "kedge/dist/rank_places.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"

namespace kedge {

std::vector<RankPlace> gather_places(const Group& group, const std::string& gpu) {
  std::vector<RankPlace> places;
  for (const std::string& text : group.all_gather(str(host_name(), "/", boot_id(), "\n", gpu))) {
    const size_t end = text.find('\n');
    ensure(end != std::string::npos, "the place of a rank is two lines, found \"", text, "\"");
    places.push_back({.machine = text.substr(0, end), .gpu = text.substr(end + 1)});
  }
  return places;
}

bool on_one_machine(std::span<const RankPlace> places) {
  return std::ranges::all_of(places, [&](const RankPlace& place) { return place.machine == places.front().machine; });
}

bool shares_gpu(std::span<const RankPlace> places, int rank) {
  const RankPlace& own = places[static_cast<size_t>(rank)];
  return !own.gpu.empty() && std::ranges::count(places, own) > 1;
}

bool some_share_gpus(std::span<const RankPlace> places) {
  int rank = 0;
  return std::ranges::any_of(places, [&](const RankPlace&) { return shares_gpu(places, rank++); });
}

}  // namespace kedge
