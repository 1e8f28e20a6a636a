#include "kedge/inspect/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::HasSubstr;

TEST(NetworkFacts, NumbersForPeople) {
  EXPECT_EQ(with_commas(7), "7");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(123), "123");
}

TEST(NetworkFacts, AsALine) {
  NetworkFacts facts{.family = "llama", .num_parameters = 656000, .num_layers = 2, .hidden_size = 128};
  EXPECT_EQ(network_text(facts), "llama, 656,000 parameters in 2 layers of 128");
  facts.num_labels = 1;
  facts.rank = 8;
  facts.num_adapter_parameters = 4096;
  EXPECT_EQ(network_text(facts), "llama, 656,000 parameters in 2 layers of 128, score head of 1 label; LoRA of rank 8, 4,096 parameters");
}

TEST(NetworkFacts, TheBaseOfAnAdapterIsFoundFromWhereItsRunBegan) {
  const TempFolder folder;
  make_folder(folder / "there/base");
  make_folder(folder / "adapter");
  folder.file("there/base/config.json", "{}");
  folder.file("adapter/adapter_config.json", R"({"base_model_name_or_path": "base"})");
  EXPECT_TRUE(is_adapter_folder(folder / "adapter"));
  EXPECT_FALSE(is_adapter_folder(folder / "there/base"));
  EXPECT_EQ(find_adapter_base(folder / "adapter", folder / "there", "FROM"), folder / "there/base");
  folder.file("adapter/adapter_config.json", R"({"base_model_name_or_path": ")" + (folder / "there/base").string() + R"("})");
  EXPECT_EQ(find_adapter_base(folder / "adapter", "/elsewhere", "FROM"), folder / "there/base");
  folder.file("adapter/adapter_config.json", R"({"base_model_name_or_path": null})");
  EXPECT_THAT(error_of([&] { return find_adapter_base(folder / "adapter", folder / "there", "FROM"); }),
              HasSubstr("does not name the adapter's base model"));
}

}  // namespace
}  // namespace kedge
