#include "kedge/net/kserve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/hex.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::from_hex;
using ::testing::HasSubstr;

WireTensor int64s(std::string name, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return int64_tensor(std::move(name), std::move(shape), values);
}
WireTensor floats(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  return fp32_tensor(std::move(name), std::move(shape), values);
}
WireTensor texts(std::string name, std::vector<int64_t> shape, const std::vector<std::string>& values) {
  return text_tensor(std::move(name), std::move(shape), values);
}
Json flag(const std::string& name) { return Json::Object{{name, true}}; }

// Written, these are the bytes; parsed, they are the request. `header_length` none: all of it is JSON.
void expect_both_ways(const InferRequest& request, const KserveBody& wanted, bool inputs_binary = true) {
  const KserveBody written = write_request(request, inputs_binary);
  EXPECT_EQ(written.bytes, wanted.bytes);
  EXPECT_EQ(written.header_length, wanted.header_length);
  EXPECT_TRUE(parse_request(wanted.bytes, wanted.header_length) == request) << wanted.bytes;
}
void expect_both_ways(const InferReply& reply, const std::vector<bool>& binary, const KserveBody& wanted) {
  const KserveBody written = write_reply(reply, binary);
  EXPECT_EQ(written.bytes, wanted.bytes);
  EXPECT_EQ(written.header_length, wanted.header_length);
  EXPECT_TRUE(parse_reply(wanted.bytes, wanted.header_length) == reply) << wanted.bytes;
}

// The header as it stands, then the bytes; what the specification says of their lengths.
KserveBody body_of(const std::string& header, const std::string& hex, size_t header_length, size_t body_length) {
  EXPECT_EQ(header.size(), header_length);
  KserveBody body{.bytes = header + from_hex(hex), .header_length = static_cast<int64_t>(header_length)};
  EXPECT_EQ(body.bytes.size(), body_length);
  return body;
}

TEST(KserveExample, ARewardRequestWithTokens) {
  expect_both_ways(
      InferRequest{.id = "0",
                   .inputs = {int64s("tokens", {2, 3}, {101, 7, 2, 101, 9, 0}), int64s("sequence_lengths", {2, 1}, {3, 2})},
                   .outputs = {{{.name = "rewards", .binary = true}}}},
      body_of(
          R"({"id":"0","inputs":[{"name":"tokens","shape":[2,3],"datatype":"INT64","parameters":{"binary_data_size":48}},{"name":"sequence_lengths","shape":[2,1],"datatype":"INT64","parameters":{"binary_data_size":16}}],"outputs":[{"name":"rewards","parameters":{"binary_data":true}}]})",
          "65 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 65 00 00 00 00 00 00 00 "
          "09 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00",
          272, 336));
  expect_both_ways(
      InferReply{.id = "0", .model_name = "reward_model", .outputs = {floats("rewards", {2, 1}, {1.5F, -0.25F})}}, {true},
      body_of(
          R"({"id":"0","model_name":"reward_model","model_version":"1","outputs":[{"name":"rewards","datatype":"FP32","shape":[2,1],"parameters":{"binary_data_size":8}}]})",
          "00 00 c0 3f 00 00 80 be", 157, 165));
}

TEST(KserveExample, ARewardRequestWithTextAndAllOutputsBinary) {
  expect_both_ways(
      InferRequest{.parameters = flag("binary_data_output"), .inputs = {texts("sentences", {2, 1}, {"hi", "n\xc3\xa9"})}},
      body_of(
          R"({"inputs":[{"name":"sentences","shape":[2,1],"datatype":"BYTES","parameters":{"binary_data_size":13}}],"parameters":{"binary_data_output":true}})",
          "02 00 00 00 68 69 03 00 00 00 6e c3 a9", 144, 157));
}

TEST(KserveExample, PlainJsonBothWays) {
  const std::string request = R"({"inputs":[{"name":"sentences","shape":[1,1],"datatype":"BYTES","data":["hi"]}]})";
  EXPECT_EQ(request.size(), 80U);
  expect_both_ways(InferRequest{.inputs = {texts("sentences", {1, 1}, {"hi"})}}, {.bytes = request}, false);
  const std::string reply =
      R"({"model_name":"reward_model","model_version":"1","outputs":[{"name":"rewards","datatype":"FP32","shape":[1,1],"data":[1.5]}]})";
  EXPECT_EQ(reply.size(), 125U);
  expect_both_ways(InferReply{.model_name = "reward_model", .outputs = {floats("rewards", {1, 1}, {1.5F})}}, {false}, {.bytes = reply});
}

TEST(KserveExample, ACombinedCriticAnswer) {
  expect_both_ways(
      InferReply{.id = "7",
                 .model_name = "critic_infer",
                 .outputs = {floats("values", {1, 3}, {0.5F, 1.0F, -2.0F}), floats("rewards", {1, 1}, {3.0F})}},
      {true, true},
      body_of(
          R"({"id":"7","model_name":"critic_infer","model_version":"1","outputs":[{"name":"values","datatype":"FP32","shape":[1,3],"parameters":{"binary_data_size":12}},{"name":"rewards","datatype":"FP32","shape":[1,1],"parameters":{"binary_data_size":4}}]})",
          "00 00 00 3f 00 00 80 3f 00 00 00 c0 00 00 40 40", 244, 260));
}

TEST(KserveExample, TrainingACritic) {
  expect_both_ways(
      InferRequest{.id = "1",
                   .inputs = {int64s("tokens", {1, 3}, {101, 7, 2}), floats("returns", {1, 2}, {0, 1}),
                              floats("prev_values", {1, 2}, {0.5F, 0.25F}), floats("mask", {1, 2}, {0, 1})},
                   .outputs = {{{.name = "loss_mean", .binary = true}}}},
      body_of(
          R"({"id":"1","inputs":[{"name":"tokens","shape":[1,3],"datatype":"INT64","parameters":{"binary_data_size":24}},{"name":"returns","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}},{"name":"prev_values","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}},{"name":"mask","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],"outputs":[{"name":"loss_mean","parameters":{"binary_data":true}}]})",
          "65 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 00 00 80 3f "
          "00 00 00 3f 00 00 80 3e 00 00 00 00 00 00 80 3f",
          438, 486));
  expect_both_ways(
      InferReply{.id = "1", .model_name = "critic_train", .outputs = {floats("loss_mean", {1}, {0.15125F})}}, {true},
      body_of(
          R"({"id":"1","model_name":"critic_train","model_version":"1","outputs":[{"name":"loss_mean","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]})",
          "48 e1 1a 3e", 157, 161));
}

TEST(KserveExample, SavingACritic) {
  expect_both_ways(
      InferRequest{.id = "2", .inputs = {int64s("dummy_var", {1}, {0})}, .outputs = {{{.name = "status", .binary = true}}}},
      body_of(
          R"({"id":"2","inputs":[{"name":"dummy_var","shape":[1],"datatype":"INT64","parameters":{"binary_data_size":8}}],"outputs":[{"name":"status","parameters":{"binary_data":true}}]})",
          "00 00 00 00 00 00 00 00", 173, 181));
  expect_both_ways(
      InferReply{.id = "2", .model_name = "critic_save", .outputs = {int64s("status", {1}, {0})}}, {true},
      body_of(
          R"({"id":"2","model_name":"critic_save","model_version":"1","outputs":[{"name":"status","datatype":"INT64","shape":[1],"parameters":{"binary_data_size":8}}]})",
          "00 00 00 00 00 00 00 00", 154, 162));
}

TEST(KserveExample, AnError) {
  EXPECT_EQ(error_body("no model named reward"), R"({"error":"no model named reward"})");
  EXPECT_EQ(error_body("no model named reward").size(), 33U);
  EXPECT_EQ(error_body("two\nlines \"\xff\""), "{\"error\":\"two\\nlines \\\"\xEF\xBF\xBD\\\"\"}");
}

TEST(Kserve, ParametersTravelBothWays) {
  InferRequest request{.id = "", .inputs = {floats("x", {1}, {0.1F})}};
  request.parameters = Json::Object{{"request_key", "a \"b\""}, {"actor_step", 12}, {"weight", 0.5}, {"flag", false}};
  expect_both_ways(
      request,
      {.bytes =
           R"({"id":"","inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[0.1]}],"parameters":{"request_key":"a \"b\"","actor_step":12,"weight":0.5,"flag":false}})"},
      false);
  expect_both_ways(
      InferReply{.model_name = "m", .parameters = Json::Object{{"step", 3}}, .outputs = {int64s("y", {0}, {})}}, {false},
      {.bytes =
           R"({"model_name":"m","model_version":"1","parameters":{"step":3},"outputs":[{"name":"y","datatype":"INT64","shape":[0],"data":[]}]})"});
}

TEST(Kserve, OutputsOfBothFormsKeepTheirOrder) {
  expect_both_ways(
      InferReply{.model_name = "m", .outputs = {floats("a", {1}, {1.0F}), texts("b", {1}, {"x"}), floats("c", {1}, {2.0F})}},
      {true, false, true},
      body_of(
          R"({"model_name":"m","model_version":"1","outputs":[{"name":"a","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},{"name":"b","datatype":"BYTES","shape":[1],"data":["x"]},{"name":"c","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]})",
          "00 00 80 3f 00 00 00 40", 265, 273));
}

TEST(Kserve, WithoutAByteBehindTheJsonThereIsNoHeaderLength) {
  expect_both_ways(
      InferReply{.model_name = "m", .outputs = {floats("a", {0, 3}, {})}}, {true},
      {.bytes =
           R"({"model_name":"m","model_version":"1","outputs":[{"name":"a","datatype":"FP32","shape":[0,3],"parameters":{"binary_data_size":0}}]})"});
  expect_both_ways(InferRequest{.inputs = {int64s("x", {2, 0}, {})}},
                   {.bytes = R"({"inputs":[{"name":"x","shape":[2,0],"datatype":"INT64","parameters":{"binary_data_size":0}}]})"});
}

TEST(Kserve, AnOutputIsBinaryOnlyWhereItSaysSoItself) {
  const std::string body = R"({"inputs":[],"outputs":[{"name":"a"},{"name":"b","parameters":{"binary_data":true}},
                               {"name":"c","parameters":{"binary_data":false,"other":1}}],"parameters":{"binary_data_output":true}})";
  const InferRequest request = parse_request(body, {});
  EXPECT_THAT(*request.outputs, ElementsAre(OutputWish{"a", false}, OutputWish{"b", true}, OutputWish{"c", false}));
  EXPECT_FALSE(parse_request(R"({"inputs":[]})", {}).outputs.has_value());
  EXPECT_TRUE(parse_request(R"({"inputs":[],"outputs":[]})", {}).outputs->empty());
}

TEST(Kserve, WhatServersNeedNotKnowIsIgnored) {
  const InferRequest request = parse_request(
      R"({"model_name":"m","inputs":[{"name":"x","shape":[1],"datatype":"INT64","data":[1],"parameters":{"other":1},"more":[]}],
          "parameters":{"timeout":1000,"priority":1,"sequence_id":7,"sequence_start":true},"extra":{"deep":[null]}})",
      {});
  EXPECT_THAT(request.inputs, ElementsAre(int64s("x", {1}, {1})));
  EXPECT_FALSE(request.id.has_value());
  // Clients may give the length of a header that is the whole body.
  const std::string whole = R"({"inputs":[]})";
  EXPECT_TRUE(parse_request(whole, static_cast<int64_t>(whole.size())).inputs.empty());
}

TEST(Kserve, BinaryAndJsonInputsMayStandTogether) {
  const std::string header =
      R"({"inputs":[{"name":"a","shape":[1],"datatype":"INT64","data":[5]},{"name":"b","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},{"name":"c","shape":[1],"datatype":"FP16","parameters":{"binary_data_size":2}}]})";
  const InferRequest request = parse_request(header + "xyzw", static_cast<int64_t>(header.size()));
  ASSERT_EQ(request.inputs.size(), 3U);
  EXPECT_THAT(int64_values(request.inputs[0]), ElementsAre(5));
  EXPECT_EQ(request.inputs[1].data, "xy");
  EXPECT_EQ(request.inputs[2].data, "zw");
}

TEST(Kserve, BareDataIsTheOneInputOfItsModel) {
  const std::string eight(8, '\0');
  const WireTensor fixed{.name = "dummy_var", .type = WireType::int64, .shape = {1}};
  const InferRequest request = parse_request(eight, 0, fixed);
  EXPECT_THAT(request.inputs, ElementsAre(int64s("dummy_var", {1}, {0})));
  EXPECT_EQ(request.parameters, flag("binary_data_output"));
  EXPECT_FALSE(request.outputs.has_value());

  const WireTensor open{.name = "x", .type = WireType::fp32, .shape = {1, -1, 2}};
  EXPECT_THAT(parse_request(eight + eight, 0, open).inputs[0].shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(parse_request("", 0, open).inputs[0].shape, ElementsAre(1, 0, 2));
  const WireTensor text{.name = "t", .type = WireType::bytes, .shape = {1, -1}};
  EXPECT_THAT(parse_request("two words", 0, text).inputs, ElementsAre(texts("t", {1, 1}, {"two words"})));

  EXPECT_EQ(error_of<RequestError>([&] { return parse_request("1234567", 0, fixed); }),
            "tensor \"dummy_var\": INT64 of shape [1] needs 8 bytes, found 7");
  EXPECT_EQ(error_of<RequestError>([&] { return parse_request("1234567", 0, open); }),
            "tensor \"x\": FP32 of shape [1,0,2] needs 0 bytes, found 7");
  EXPECT_EQ(error_of<RequestError>([&] { return parse_request(eight, 0); }),
            "a body without JSON (Inference-Header-Content-Length 0) requires a model with one input");
}

TEST(Kserve, RepliesThatMakeNoSenseAreTheWorldsErrors) {
  const auto fault = [](const std::string& body, std::optional<int64_t> header_length = {}) {
    try {
      static_cast<void>(parse_reply(body, header_length));
    } catch (const RequestError&) {
      return std::string("blames the request");
    } catch (const UsageError&) {
      return std::string("blames the user");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string start = "the server's reply is invalid: ";
  EXPECT_THAT(fault("<html>"), HasSubstr(start + "reply:1:1: not valid JSON"));
  EXPECT_EQ(fault("[]"), start + "reply: expected an object, found []");
  EXPECT_EQ(fault(R"({"outputs":[]})"), start + R"(reply: no "model_name" field)");
  EXPECT_EQ(fault(R"({"model_name":"m"})"), start + R"(reply: no "outputs" field)");
  EXPECT_EQ(fault(R"({"model_name":"m","outputs":[{"name":"y","shape":[2],"datatype":"FP32","data":[1]}]})"),
            start + "output \"y\": data: expected 2 values for the shape [2], found 1");
  EXPECT_EQ(fault("{}", 3), start + "Inference-Header-Content-Length is 3, the body has 2 bytes");
  const std::string header = R"({"model_name":"m","outputs":[]})";
  EXPECT_EQ(fault(header + "x", static_cast<int64_t>(header.size())), start + "the body has 1 bytes more than its outputs");
  // Versions are optional in the protocol.
  EXPECT_EQ(parse_reply(header, {}).model_version, "1");
}

TEST(Kserve, ReplyDataThatJsonCannotSayFailsUnlessItIsBinary) {
  const InferReply reply{.model_name = "m", .outputs = {floats("values", {1}, {std::nanf("")})}};
  EXPECT_EQ(error_of<RequestError>([&] { return write_reply(reply, {false}); }),
            "output \"values\": nan cannot be written as JSON; ask for it with binary_data");
  EXPECT_EQ(write_reply(reply, {true}).bytes.size(), static_cast<size_t>(*write_reply(reply, {true}).header_length) + 4);
  EXPECT_EQ(error_of<Bug>([&] { return write_reply(reply, {}); }), "1 outputs, 0 of them said to be binary or not");
}

}  // namespace
}  // namespace kedge
