#include "kedge/dist/rank_places.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Machines of one cluster may all be called "localhost", but none was started at the same moment as another.
std::string machine_id() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return str(name.data(), "/", boot);
}

}  // namespace

std::vector<RankPlace> gather_places(const Group& group, const std::string& gpu) {
  std::vector<RankPlace> places;
  for (const std::string& text : group.all_gather(str(machine_id(), "\n", gpu))) {
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
