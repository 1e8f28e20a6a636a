// What needs no GPU; transport_cuda_test.cpp has the rest.
#include "kedge/dist/nccl_transport.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<NcclSetting>& settings) {
  Names names;
  for (const NcclSetting& setting : settings) names.push_back(setting.name);
  return names;
}

TEST(NcclSettings, SumsAreTheSameEveryTime) {
  const std::vector<NcclSetting> settings = nccl_settings(std::vector<RankPlace>{{"a", "1"}, {"a", "2"}, {"b", "1"}}, 1);
  ASSERT_EQ(names_of(settings), Names{"NCCL_NVLS_ENABLE"});
  EXPECT_EQ(settings[0].value, "0");
}

TEST(NcclSettings, OnlyRanksThatShareAGpuClaimToBeMachinesOfTheirOwn) {
  const std::vector<RankPlace> places{{"a", "1"}, {"a", "2"}, {"a", "1"}};
  const Names alone{"NCCL_NVLS_ENABLE", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE"};
  const Names sharing{"NCCL_NVLS_ENABLE", "NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE"};
  EXPECT_EQ(names_of(nccl_settings(places, 0)), sharing);
  EXPECT_EQ(names_of(nccl_settings(places, 1)), alone);
  EXPECT_EQ(names_of(nccl_settings(places, 2)), sharing);
}

TEST(NcclSettings, TheNetworkIsLeftAloneWhereThereAreOtherMachines) {
  const std::vector<RankPlace> places{{"a", "1"}, {"a", "1"}, {"b", "1"}};
  EXPECT_EQ(names_of(nccl_settings(places, 0)), (Names{"NCCL_NVLS_ENABLE", "NCCL_HOSTID"}));
}

TEST(NcclTransport, ConnectsGpusOnly) {
  EXPECT_EQ(testing::error_of([] { return make_nccl_transport(Group::single(), at::kCPU); }), "NCCL connects GPUs, found the device cpu");
}

}  // namespace
}  // namespace kedge
