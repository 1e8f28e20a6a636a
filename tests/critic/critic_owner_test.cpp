// Whose critic it is, and which of its run's actors: Critic's part of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/critic/critic.h"
#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;
using testing::CriticToy;
using testing::error_of;
using ::testing::HasSubstr;
using testing::JudgeFolder;
using testing::TempFolder;
using testing::toy_critic_batch;

// The folder as a killed process leaves it.
struct FolderCopy : TempFolder {
  explicit FolderCopy(const Path& of) { fs::copy(of, path(), fs::copy_options::recursive); }
};

TEST(CriticOwner, BelongsToTheRunThatRestoredIt) {
  const JudgeFolder judge;
  const TempFolder temp;
  const CriticCaller mine{.run = "mine-1"}, other{.run = "other-2"};
  {
    CriticToy toy(judge, temp.path());
    toy->train(toy_critic_batch(6, 8, 1), "");  // nobody's yet: calls without a name are taken
    toy->restore(0, "", mine);
    toy->train(toy_critic_batch(6, 8, 1), "", 0, mine);
    toy->save(5, "", mine);
  }
  CriticToy toy(judge, temp.path());
  EXPECT_EQ(toy->owner(), "mine-1");
  const Tensor before = testing::weights_of(toy->model()).clone();
  const auto status_of = [&](auto&& call) {
    try {
      call();
    } catch (const RequestError& error) {
      EXPECT_THAT(error.what(), HasSubstr("belongs to run mine-1, but the call comes from "));
      return error.status();
    }
    return 200;
  };
  for (const CriticCaller& caller : {other, CriticCaller{}, CriticCaller{.takes_over = true}}) {
    EXPECT_EQ(status_of([&] { toy->restore(0, "", caller); }), 409);
    EXPECT_EQ(status_of([&] { toy->train(toy_critic_batch(6, 8, 2), "", {}, caller); }), 409);
    EXPECT_EQ(status_of([&] { toy->save(6, "", caller); }), 409);
  }
  EXPECT_THAT(error_of<RequestError>([&] { return toy->restore(0, "", other); }), HasSubstr("run other-2"));
  EXPECT_TRUE(testing::same_bits(testing::weights_of(toy->model()), before));
  EXPECT_EQ(toy->train_calls(), 1);
  toy->restore(0, "", {.run = "other-2", .takes_over = true});
  EXPECT_EQ(toy->owner(), "other-2");
  EXPECT_FALSE(fs::is_empty(temp / "set_aside/checkpoints"));
  EXPECT_EQ(CriticToy(judge, FolderCopy(temp.path()).path())->owner(), "other-2");
}

TEST(CriticOwner, AnActorThatWasReplacedIsRefused) {
  const JudgeFolder judge;
  const TempFolder temp;
  CriticToy toy(judge, temp.path());
  const CriticResult first = toy->restore(0, "r1", {.run = "mine"});
  const CriticCaller old{.run = "mine", .epoch = first.epoch};
  toy->train(toy_critic_batch(6, 8, 1), "t1", 0, old);
  toy->save(5, "", old);
  const CriticResult second = toy->restore(5, "r2", {.run = "mine"});
  EXPECT_GT(second.epoch, first.epoch);
  EXPECT_EQ(toy->restore(5, "r2", {.run = "mine"}).epoch, second.epoch);  // sent again, it is the same
  const auto expect_refused = [&](const CriticToy& of) {
    for (const auto& call : std::vector<std::function<void()>>{[&] { of->train(toy_critic_batch(6, 8, 2), "late", 1, old); },
                                                               [&] { of->train(toy_critic_batch(6, 8, 1), "t1", 0, old); },
                                                               [&] { of->save(6, "", old); }, [&] { of->check_epoch(old.epoch); }})
      EXPECT_THAT(error_of<RequestError>(call), HasSubstr("from an actor that was replaced"));
  };
  expect_refused(toy);
  EXPECT_EQ(toy->train_calls(), 1);
  const CriticCaller current{.run = "mine", .epoch = second.epoch};
  const FolderCopy copy(temp.path());
  CriticToy again(judge, copy.path());
  expect_refused(again);
  EXPECT_EQ(again->train(toy_critic_batch(6, 8, 2), "", 1, current).train_calls, 2);
  again->save(6, "", current);
  expect_refused(CriticToy(judge, copy.path()));
}

// Folders from before critics had owners: the same without the fields.
TEST(CriticOwner, AFolderOfOldBelongsToNobody) {
  const JudgeFolder judge;
  const TempFolder temp;
  {
    CriticToy toy(judge, temp.path());
    toy->train(toy_critic_batch(6, 8, 1), "t1");
    toy->save(5, "s1");
  }
  const Path file = temp / "checkpoints/megatron_gpt-step=2-last/meta.json";
  Json meta = Json::parse(read_text(file)), record = meta.at("record", "meta");
  Json::Object fields = record.as_object("record");
  EXPECT_EQ(std::erase_if(fields, [](const Json::Member& one) { return one.first == "owner" || one.first == "epoch"; }), 2U);
  meta.set("record", Json(std::move(fields)));
  Json::Object all = meta.as_object("meta");
  std::erase_if(all, [](const Json::Member& one) { return one.first == "hash"; });
  write_atomic(file, Json(std::move(all)).dump());
  fs::remove_all(temp / "journals");  // begun anew without a remark, as after a kill
  CriticToy toy(judge, temp.path());
  EXPECT_EQ(toy->owner(), "");
  EXPECT_EQ(toy->train_calls(), 1);
  EXPECT_EQ(toy->restore(5, "", {.run = "mine"}).train_calls, 1);
  EXPECT_EQ(toy->owner(), "mine");
}

}  // namespace
}  // namespace kedge
