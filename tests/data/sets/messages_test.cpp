#include "kedge/data/sets/messages.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::render_toy_chat;
using testing::TempFolder;

class MessagesTest : public ::testing::Test {
 protected:
  // The field m of a row, read.
  std::string read(const std::string& value) {
    const JsonlFile file(folder_.file("f.jsonl", "{\"m\": " + value + "}"));
    const Row row = file.row(0);
    return read_messages(row, row.at("m"), "\"m\"", default_roles()).dump();
  }
  std::string error(const std::string& value) {
    return error_of<RowError>([&] { return read(value); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
};

TEST_F(MessagesTest, BothLayoutsBecomeOneAndRolesAreRenamed) {
  const std::string wanted = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])";
  EXPECT_EQ(read(R"([{"role": "human", "content": "q"}, {"role": "assistant", "content": "a"}])"), wanted);
  EXPECT_EQ(read(R"([{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}])"), wanted);
  EXPECT_EQ(read(R"({"from": "gpt", "value": "a"})"), R"([{"role": "assistant", "content": "a"}])");
}

TEST_F(MessagesTest, OtherMembersAndPartsStay) {
  EXPECT_EQ(read(R"([{"role": "assistant", "content": null, "tool_calls": [1]}])"),
            R"([{"role": "assistant", "content": null, "tool_calls": [1]}])");
  EXPECT_EQ(read(R"([{"role": "user", "content": [{"type": "text"}]}])"), R"([{"role": "user", "content": [{"type": "text"}]}])");
}

TEST_F(MessagesTest, MembersKeepTheirOrder) {
  EXPECT_EQ(read(R"([{"name": "z", "content": "q", "role": "human"}])"), R"([{"name": "z", "content": "q", "role": "user"}])");
  EXPECT_EQ(read(R"([{"value": "q", "id": 1, "from": "human", "content": "x"}])"), R"([{"content": "q", "id": 1, "role": "user"}])");
}

TEST_F(MessagesTest, ToolCallsNeedNoContentAndToolsReturnAnything) {
  const std::string call = R"([{"role": "assistant", "tool_calls": [1]}])";
  EXPECT_EQ(read(call), call);
  for (const std::string content : {R"({"a": 1})", "5", "true"}) {
    const std::string result = R"([{"role": "tool", "content": )" + content + "}]";
    EXPECT_EQ(read(result), result);
  }
}

TEST_F(MessagesTest, WhatIsNoMessageIsNamed) {
  EXPECT_EQ(error("3"), ":1: \"m\": expected a list of messages, found an integer");
  EXPECT_EQ(error("[]"), ":1: \"m\": a list without messages");
  EXPECT_EQ(error("[\"x\"]"), ":1: \"m\"[0]: expected a message, {\"role\", \"content\"}, found a string");
  EXPECT_EQ(error(R"([{"content": "x"}])"), ":1: \"m\"[0]: no \"role\" field");
  EXPECT_EQ(error(R"([{"role": "user"}])"), ":1: \"m\"[0]: no \"content\" field");
  EXPECT_EQ(error(R"([{"role": "assistant", "tool_calls": null}])"), ":1: \"m\"[0]: no \"content\" field");
  EXPECT_EQ(error(R"([{"role": "user", "content": 5}])"), ":1: \"m\"[0].content: expected a string, found an integer");
  EXPECT_EQ(error(R"([{"role": 1, "content": "x"}])"), ":1: \"m\"[0].role: expected a string, found an integer");
  EXPECT_EQ(error(R"([{"from": "human", "value": null}])"), ":1: \"m\"[0].value: expected a string, found null");
}

TEST_F(MessagesTest, RenderingNamesTheRowThatFails) {
  const JsonlFile file(folder_.file("f.jsonl", "{}"));
  const Row row = file.row(0);
  const Json messages = Json::parse(R"([{"role": "user", "content": "q"}])"), broken = Json::parse(R"([{"role": "user"}])");
  EXPECT_EQ(render(render_toy_chat, {messages, row.json(), true}, row).text, "<user:q><assistant:");
  EXPECT_EQ(error_of<RowError>([&] {
              return render({}, {messages, row.json()}, row);
            }),
            file.path().string() + ":1: messages need a chat template, and the model has none");
  EXPECT_EQ(error_of<RowError>([&] {
              return render(render_toy_chat, {broken, row.json()}, row);
            }),
            file.path().string() + ":1: message: no \"content\" field");
}

}  // namespace
}  // namespace kedge
