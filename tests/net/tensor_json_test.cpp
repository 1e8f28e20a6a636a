#include "kedge/net/tensor_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;

WireTensor read(WireType type, std::vector<int64_t> shape, std::string_view json) {
  WireTensor tensor{.name = "x", .type = type, .shape = std::move(shape)};
  read_json_data(Json::parse(json), "input \"x\"", tensor);
  return tensor;
}

std::string fault(WireType type, std::vector<int64_t> shape, std::string_view json) {
  const std::string text = error_of<RequestError>([&] { return read(type, std::move(shape), json); });
  EXPECT_EQ(text.find("input \"x\": "), 0U) << text;
  return text.substr(std::min(text.size(), size_t{11}));
}

std::string written(const WireTensor& tensor) {
  std::string out;
  append_json_data(tensor, out);
  return out;
}

std::string written(std::vector<float> values) { return written(fp32_tensor("x", {static_cast<int64_t>(values.size())}, values)); }

// The list itself, read and written again.
std::string again(WireType type, int64_t count, std::string_view json) { return written(read(type, {count}, json)); }

TEST(TensorJson, EveryTypeReadsAndWritesItsWholeRange) {
  for (const auto& [type, json] :
       std::vector<std::pair<WireType, std::string>>{{WireType::boolean, "[true,false]"},
                                                     {WireType::int8, "[-128,127]"},
                                                     {WireType::int16, "[-32768,32767]"},
                                                     {WireType::int32, "[-2147483648,2147483647]"},
                                                     {WireType::int64, "[-9223372036854775808,9223372036854775807]"},
                                                     {WireType::uint8, "[0,255]"},
                                                     {WireType::uint16, "[0,65535]"},
                                                     {WireType::uint32, "[0,4294967295]"},
                                                     {WireType::uint64, "[0,9223372036854775807]"},
                                                     {WireType::fp32, "[-3.4028235e+38,1e-45]"},
                                                     {WireType::fp64, "[-1.7976931348623157e+308,5e-324]"},
                                                     {WireType::bytes, "[\"n\xc3\xa9\",\"\\\"\\n\"]"}})
    EXPECT_EQ(again(type, 2, json), json) << name_of(type);
  EXPECT_EQ(read(WireType::boolean, {2}, "[true,false]").data, std::string("\1\0", 2));
  EXPECT_EQ(read(WireType::int16, {1}, "[-2]").data, "\xfe\xff");
  EXPECT_EQ(read(WireType::bytes, {1}, R"(["n\u00e9"])").data, std::string("\3\0\0\0n\xc3\xa9", 7));
}

TEST(TensorJson, NumbersBeyondTheirTypeAreRefused) {
  for (const auto& [type, value] : std::vector<std::pair<WireType, std::string>>{{WireType::int8, "128"},
                                                                                 {WireType::int8, "-129"},
                                                                                 {WireType::int16, "32768"},
                                                                                 {WireType::int32, "-2147483649"},
                                                                                 {WireType::uint8, "256"},
                                                                                 {WireType::uint16, "-1"},
                                                                                 {WireType::uint32, "4294967296"},
                                                                                 {WireType::uint64, "-1"},
                                                                                 {WireType::int64, "1.5"},
                                                                                 {WireType::int64, "1.0"}})
    EXPECT_EQ(fault(type, {1}, "[" + value + "]"), str("data: expected an integer in range for ", name_of(type), ", found ", value));
  EXPECT_EQ(fault(WireType::int64, {1}, "[9223372036854775808]"),
            "data: expected an integer in range for INT64, found 9223372036854775808.0");
  EXPECT_EQ(fault(WireType::fp32, {1}, "[3.5e38]"), "data: expected a number in range for FP32, found 3.5e+38");
}

TEST(TensorJson, ValuesOfAnotherKindAreRefused) {
  EXPECT_EQ(fault(WireType::int64, {2}, "[1,\"2\"]"), "data: expected an integer in range for INT64, found \"2\"");
  EXPECT_EQ(fault(WireType::int64, {1}, "[null]"), "data: expected an integer in range for INT64, found null");
  EXPECT_EQ(fault(WireType::fp32, {1}, "[true]"), "data: expected a number in range for FP32, found true");
  EXPECT_EQ(fault(WireType::boolean, {1}, "[1]"), "data: expected true or false for BOOL, found 1");
  EXPECT_EQ(fault(WireType::bytes, {1}, "[1]"), "data: expected a string for BYTES, found 1");
  EXPECT_EQ(fault(WireType::bytes, {1}, "[{}]"), "data: expected a string for BYTES, found an object");
  EXPECT_EQ(fault(WireType::fp32, {1}, "1"), "data: expected a list, found 1");
  EXPECT_EQ(fault(WireType::fp16, {1}, "[1]"), "FP16 cannot be sent as JSON; send it as binary data");
  EXPECT_EQ(fault(WireType::bf16, {1}, "[1]"), "BF16 cannot be sent as JSON; send it as binary data");
}

TEST(TensorJson, ListsMayBeFlatOrNestedAsTheShape) {
  const WireTensor flat = read(WireType::int64, {2, 3, 1}, "[1,2,3,4,5,6]");
  EXPECT_THAT(int64_values(flat), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(read(WireType::int64, {2, 3, 1}, "[[[1],[2],[3]],[[4],[5],[6]]]"), flat);
  EXPECT_EQ(read(WireType::int64, {2, 3, 1}, "[[1,2,3],[4,5,6]]"), flat);
  EXPECT_EQ(written(flat), "[1,2,3,4,5,6]");
  EXPECT_THAT(int64_values(read(WireType::int64, {}, "[7]")), ElementsAre(7));
  EXPECT_EQ(read(WireType::int64, {2, 0}, "[[],[]]").data, "");
  EXPECT_EQ(read(WireType::int64, {2, 0}, "[]").data, "");
  const int64_t huge = int64_t{1} << 40U;
  EXPECT_EQ(read(WireType::bytes, {0, huge, huge}, "[]").data, "");
  EXPECT_EQ(written(WireTensor{.name = "x", .type = WireType::int64, .shape = {0}}), "[]");
}

TEST(TensorJson, ListsThatDoNotFitTheShapeAreRefused) {
  EXPECT_EQ(fault(WireType::int64, {2, 3}, "[1,2]"), "data: expected 6 values for the shape [2,3], found 2");
  EXPECT_EQ(fault(WireType::int64, {2, 3}, "[[1,2],[3,4],[5,6]]"), "data: expected 2 lists for the shape [2,3], found 3");
  EXPECT_EQ(fault(WireType::int64, {2, 2}, "[[1,2],[3]]"), "data: expected 2 values in an inner list for the shape [2,2], found 1");
  EXPECT_EQ(fault(WireType::int64, {2, 2}, "[[1,2],3]"), "data: expected only lists for INT64, found 3");
  EXPECT_EQ(fault(WireType::int64, {2, 1}, "[1,[2]]"), "data: expected an integer in range for INT64, found a list");
  EXPECT_EQ(fault(WireType::int64, {1}, "[[1]]"), "data is nested deeper than the shape [1]");
  EXPECT_EQ(fault(WireType::int64, {2}, "[]"), "data: expected 2 values for the shape [2], found 0");
  const auto nested = [](size_t depth) { return std::string(depth, '[') + "5" + std::string(depth, ']'); };
  EXPECT_EQ(fault(WireType::int64, std::vector<int64_t>(101, 1), nested(101)), "data is nested deeper than 100 levels");
  EXPECT_THAT(int64_values(read(WireType::int64, std::vector<int64_t>(100, 1), nested(100))), ElementsAre(5));
}

TEST(TensorJson, FloatsAreShort) {
  EXPECT_EQ(written({1.5F, 0.1F, 2.0F, -0.0F, 1e10F, 16777216.0F}), "[1.5,0.1,2.0,-0.0,1e+10,16777216.0]");
  // The shortest text of this one, read as a double and then rounded, is its neighbour.
  const auto trap = std::bit_cast<float>(0x15AE43FDU);
  EXPECT_NE(static_cast<float>(7.038531e-26), trap);
  EXPECT_EQ(static_cast<float>(Json::parse(written({trap})).as_array("")[0].as_number("")), trap);
}

TEST(TensorJson, FloatsReadBackToTheSameBits) {
  std::mt19937 random(7);  // NOLINT: the same every time
  std::vector<float> values;
  while (values.size() < 100'000)
    if (const auto value = std::bit_cast<float>(static_cast<uint32_t>(random())); std::isfinite(value)) values.push_back(value);
  const WireTensor tensor = fp32_tensor("x", {100'000}, values);
  EXPECT_TRUE(read(WireType::fp32, {100'000}, written(tensor)) == tensor);
}

TEST(TensorJson, WhatJsonCannotSayIsTheModelsFault) {
  const auto status_and_text = [](const WireTensor& tensor) {
    try {
      return written(tensor);
    } catch (const RequestError& error) {
      return str(error.status(), " ", error.what());
    }
  };
  EXPECT_EQ(status_and_text(fp32_tensor("values", {1}, std::vector<float>{std::nanf("")})),
            "500 output \"values\": nan cannot be written as JSON; ask for it with binary_data");
  EXPECT_EQ(status_and_text(fp32_tensor("values", {1}, std::vector<float>{-std::numeric_limits<float>::infinity()})),
            "500 output \"values\": -inf cannot be written as JSON; ask for it with binary_data");
  EXPECT_EQ(status_and_text(text_tensor("t", {1}, std::vector<std::string>{"\xff"})),
            "500 output \"t\": a text that is not UTF-8 cannot be written as JSON; ask for it with binary_data");
  EXPECT_EQ(status_and_text({.name = "h", .type = WireType::bf16, .shape = {1}, .data = "ab"}),
            "400 output \"h\": BF16 cannot be sent as JSON; send it as binary data");
}

// Would not end within the test's time if anything in it grew with the square of the length.
TEST(TensorJson, AMillionNumbersAreReadInOneGo) {
  constexpr int64_t kCount = 1'000'000;
  std::string flat = "[", nested = "[";
  for (int64_t i = 0; i < kCount; ++i) {
    flat += str(i == 0 ? "" : ",", i);
    nested += str(i == 0 ? "[" : ",[", i, "]");
  }
  const WireTensor tensor = read(WireType::int64, {kCount, 1}, flat + "]");
  EXPECT_EQ(int64_values(tensor)[kCount - 1], kCount - 1);
  EXPECT_TRUE(read(WireType::int64, {kCount, 1}, nested + "]") == tensor);
}

}  // namespace
}  // namespace kedge
