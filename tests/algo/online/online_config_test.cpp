#include "kedge/algo/online/online_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/config/config.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(OnlineConfig, WithoutSourcesRewardsComeFromAServer) {
  RewardedConfig config;
  const RewardConfig nearby = reward_of(config);
  ASSERT_EQ(nearby.sources.size(), 1U);
  EXPECT_EQ(nearby.sources.begin()->second.kind, RewardKind::server);
  EXPECT_EQ(nearby.sources.begin()->second.url, "http://localhost:5555");
  EXPECT_EQ(nearby.sources.begin()->second.model_name, "reward_model");
  config.remote_rm.emplace();
  config.remote_rm->reward_model = {.name = "judge", .ip = "there", .port = 9};
  config.remote_rm->pad_to_length = 64;
  const RewardSourceConfig remote = reward_of(config).sources.begin()->second;
  EXPECT_EQ(remote.url, "http://there:9");
  EXPECT_EQ(remote.model_name, "judge");
  EXPECT_EQ(remote.pad_to_length, 64);
}

TEST(OnlineConfig, HostsAndPortsMayBeListsOfServers) {
  const auto urls = [](const Json& ip, const Json& port) {
    RewardedConfig config;
    config.remote_rm.emplace().reward_model = {.ip = ip, .port = port};
    return reward_of(config).sources.at("remote_rm").url.dump_compact();
  };
  const Json two = Json::Array{"a", "b"}, ports = Json::Array{1, 2};
  EXPECT_EQ(urls(two, 5), R"(["http://a:5","http://b:5"])");
  EXPECT_EQ(urls("a", ports), R"(["http://a:1","http://a:2"])");
  EXPECT_EQ(urls(two, ports), R"(["http://a:1","http://b:2"])");
  EXPECT_EQ(urls(Json::Array{"a"}, 5), R"("http://a:5")");
  EXPECT_EQ(error_of([&] {
              return urls(two, Json::Array{1, 2, 3});
            }),
            "remote_rm.reward_model.port: 3 ports for 2 hosts (remote_rm.reward_model.ip); expected one for each, or one for all");
  EXPECT_THAT(error_of([&] { return urls(Json::Array{}, 5); }), HasSubstr("remote_rm.reward_model.ip: an empty list"));
  EXPECT_THAT(error_of([&] { return urls("a", 0); }), HasSubstr("remote_rm.reward_model.port: expected a port from 1 to 65535"));
  EXPECT_THAT(error_of([&] { return urls("a", "x"); }), HasSubstr("found \"x\""));
  EXPECT_THAT(error_of([&] { return urls(7, 5); }), HasSubstr("remote_rm.reward_model.ip: expected a host, or a list of hosts, found 7"));
}

TEST(OnlineConfig, AServerOfTheReferencesKindAndSourcesExcludeEachOther) {
  RewardedConfig config;
  config.reward.sources["short"].kind = RewardKind::length;
  config.reward.sources["short"].target = 5;
  EXPECT_EQ(reward_of(config).sources.size(), 1U);
  config.remote_rm.emplace();
  EXPECT_THAT(error_of([&] { return reward_of(config); }), HasSubstr("remote_rm: cannot be combined with reward.sources"));
}

TEST(OnlineConfig, RowsOfOneWidthHoldPromptAndAnswer) {
  RewardedConfig config;
  EXPECT_NO_THROW(check_widths(widths_of(config), 1000));
  config.remote_rm.emplace().pad_to_length = 64;
  EXPECT_NO_THROW(check_widths(widths_of(config), 64));
  const auto error = [&] {
    return error_of([&] {
      check_widths(widths_of(config), 65);
      return 0;
    });
  };
  EXPECT_THAT(error(), HasSubstr("remote_rm.pad_to_length: 64 is less than the maximum length of a prompt and its answer, 65"));
  config.remote_rm.reset();
  config.reward.watch["judge"].pad_to_length = 64;
  EXPECT_THAT(error(), HasSubstr("reward.watch.judge.pad_to_length: 64"));
  config.reward.sources["judge"].pad_to_length = 32;
  EXPECT_THAT(error(), HasSubstr("reward.sources.judge.pad_to_length: 32"));
}

TEST(OnlineConfig, WhatAnswersAndRewardsDependOnHasAName) {
  const auto identity = [](const auto& change) {
    RewardedConfig config;
    DataConfig data;
    RolloutConfig rollouts;
    change(config, data, rollouts);
    return rollout_identity(reward_of(config), data, rollouts);
  };
  const std::string before = identity([](auto&, auto&, auto&) {});
  EXPECT_EQ(identity([](auto&, auto&, auto&) {}), before);
  EXPECT_NE(identity([](auto&, auto&, auto& rollouts) { rollouts.sampling_params.temperature = 0.5; }), before);
  EXPECT_NE(identity([](auto&, auto&, auto& rollouts) { rollouts.length_params.min_length = 3; }), before);
  EXPECT_NE(identity([](auto&, auto& data, auto&) { data.add_bos = true; }), before);
  EXPECT_NE(identity([](auto& config, auto&, auto&) { config.reward.scale = 2; }), before);
  EXPECT_NE(identity([](auto& config, auto&, auto&) { config.remote_rm.emplace().reward_model.port = 9; }), before) << "another server";
  EXPECT_EQ(identity([](auto&, auto&, auto& rollouts) { rollouts.tokens_per_pass = 7; }), before);
}

TEST(OnlineConfig, WhatValidationDoesNotSetIsAsInTraining) {
  const auto load = [](const std::string& validation) {
    RolloutConfig rollouts;
    const std::string yaml = "sampling_params: {temperature: 0.7, end_strings: [stop]}\nlength_params: {max_length: 12}\n" + validation;
    static_cast<void>(load_section(describe(rollouts), {"x.yaml", yaml}, {}));
    return rollouts;
  };
  const RolloutConfig rollouts = load("val_sampling_params: {top_p: 0.9}\nval_length_params: {min_length: 0}\n");
  EXPECT_EQ(rollouts.val_sampling_params->top_p, 0.9);
  EXPECT_EQ(rollouts.val_sampling_params->temperature, 0.7);
  EXPECT_THAT(rollouts.val_sampling_params->end_strings, ElementsAre("stop"));
  EXPECT_EQ(rollouts.val_length_params->min_length, 0);
  EXPECT_EQ(rollouts.val_length_params->max_length, 12);
  EXPECT_FALSE(load("").val_sampling_params.has_value());
  EXPECT_FALSE(load("val_length_params: null\n").val_length_params.has_value());
}

}  // namespace
}  // namespace kedge
