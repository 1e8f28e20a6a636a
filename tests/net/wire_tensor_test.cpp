#include "kedge/net/wire_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::IsEmpty;

constexpr int64_t kHuge = int64_t{1} << 40U;

WireTensor two_rows_of_text() { return text_tensor("t", {2, 2}, std::vector<std::string>{"a", "", "n\xc3\xa9", std::string("\0x", 2)}); }

TEST(WireTensor, TypesHaveTheNamesAndSizesOfTheProtocol) {
  const std::vector<std::tuple<WireType, std::string_view, std::string_view, int64_t>> wanted = {
      {WireType::boolean, "BOOL", "TYPE_BOOL", 1},    {WireType::int8, "INT8", "TYPE_INT8", 1},
      {WireType::int16, "INT16", "TYPE_INT16", 2},    {WireType::int32, "INT32", "TYPE_INT32", 4},
      {WireType::int64, "INT64", "TYPE_INT64", 8},    {WireType::uint8, "UINT8", "TYPE_UINT8", 1},
      {WireType::uint16, "UINT16", "TYPE_UINT16", 2}, {WireType::uint32, "UINT32", "TYPE_UINT32", 4},
      {WireType::uint64, "UINT64", "TYPE_UINT64", 8}, {WireType::fp16, "FP16", "TYPE_FP16", 2},
      {WireType::bf16, "BF16", "TYPE_BF16", 2},       {WireType::fp32, "FP32", "TYPE_FP32", 4},
      {WireType::fp64, "FP64", "TYPE_FP64", 8},       {WireType::bytes, "BYTES", "TYPE_STRING", 0}};
  for (const auto& [type, name, config_name, num_bytes] : wanted) {
    EXPECT_EQ(name_of(type), name);
    EXPECT_EQ(config_name_of(type), config_name);
    EXPECT_EQ(bytes_of(type), num_bytes) << name;
    WireType found = type == WireType::fp32 ? WireType::int8 : WireType::fp32;
    EXPECT_TRUE(find_wire_type(name, found));
    EXPECT_EQ(found, type);
    found = type == WireType::fp32 ? WireType::int8 : WireType::fp32;
    EXPECT_TRUE(find_config_wire_type(config_name, found));
    EXPECT_EQ(found, type);
  }
  WireType type = WireType::bytes;
  EXPECT_FALSE(find_wire_type("STRING", type));
  EXPECT_FALSE(find_wire_type("TYPE_INT64", type));
  EXPECT_FALSE(find_config_wire_type("TYPE_BYTES", type));
  EXPECT_EQ(type, WireType::bytes);
}

TEST(WireTensor, NumbersAreLittleEndianInOrderOfRows) {
  const WireTensor tensor = int64_tensor("tokens", {2, 1}, std::vector<int64_t>{101, -2});
  EXPECT_EQ(tensor.data, std::string("\x65\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16));
  EXPECT_THAT(int64_values(tensor), ElementsAre(101, -2));
  const WireTensor floats = fp32_tensor("rewards", {2}, std::vector<float>{1.5F, -0.25F});
  EXPECT_EQ(floats.data, std::string("\0\0\xc0\x3f\0\0\x80\xbe", 8));
  EXPECT_THAT(fp32_values(floats), ElementsAre(1.5F, -0.25F));
}

TEST(WireTensor, TextsStandBehindTheirLengths) {
  const WireTensor tensor = two_rows_of_text();
  EXPECT_EQ(tensor.data, std::string("\1\0\0\0a\0\0\0\0\3\0\0\0n\xc3\xa9\2\0\0\0\0x", 22));
  EXPECT_THAT(text_values(tensor), ElementsAre("a", "", "n\xc3\xa9", std::string("\0x", 2)));
  EXPECT_THAT(text_values(text_tensor("t", {0, 1}, {})), IsEmpty());
}

TEST(WireTensor, ReadingAnotherTypeOrWritingAnotherNumberIsABug) {
  const WireTensor floats = fp32_tensor("f", {1}, std::vector<float>{1});
  EXPECT_EQ(error_of<Bug>([&] { return int64_values(floats); }), "tensor f: holds FP32, read as INT64");
  EXPECT_EQ(error_of<Bug>([&] { return text_values(floats); }), "tensor f: holds FP32, read as texts");
  EXPECT_EQ(error_of<Bug>([] { return fp32_tensor("f", {2, 2}, std::vector<float>{1}); }), "tensor f: 1 values for the shape [2,2]");
  EXPECT_EQ(error_of<Bug>([] { return text_tensor("t", {2}, {}); }), "tensor t: 0 texts for the shape [2]");
}

TEST(WireTensor, ElementsAreCountedWithoutOverflow) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({2, 3, 4}), 24);
  EXPECT_EQ(num_elements({kHuge, kHuge, 0}), 0);
  EXPECT_EQ(num_elements({0, kHuge, kHuge}), 0);
  EXPECT_EQ(num_elements({std::numeric_limits<int64_t>::max(), 1}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(error_of<RequestError>([] {
              return num_elements({kHuge, kHuge});
            }),
            "the shape [1099511627776,1099511627776] has more elements than can be counted");
  EXPECT_EQ(error_of<RequestError>([] { return num_elements({0, -1}); }), "the shape [0,-1] has a negative size");
}

TEST(WireTensor, DataThatDoesNotFitItsShapeIsRefused) {
  const auto fault = [](WireType type, std::vector<int64_t> shape, std::string_view data) {
    return error_of<RequestError>([&] {
      check_tensor_data({.name = "x", .type = type, .shape = std::move(shape), .data = std::string(data)});
      return 0;
    });
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(fault(WireType::int64, {2}, "12345678"), "tensor \"x\": INT64 of shape [2] needs 16 bytes, found 8");
  EXPECT_EQ(fault(WireType::fp16, {0, 2}, "1"), "tensor \"x\": FP16 of shape [0,2] needs 0 bytes, found 1");
  EXPECT_EQ(fault(WireType::int64, {int64_t{1} << 60U}, ""),
            "tensor \"x\": the shape [1152921504606846976] has more bytes than can be counted");
  EXPECT_EQ(fault(WireType::boolean, {2}, "\1\2"), "tensor \"x\": BOOL allows only bytes 0 and 1");
  EXPECT_EQ(fault(WireType::bytes, {2}, "\1\0\0\0a"sv), "tensor \"x\": its 5 bytes end within text 1 of 2");
  EXPECT_EQ(fault(WireType::bytes, {1}, "\1\0\0"sv), "tensor \"x\": its 3 bytes end within text 0 of 1");
  EXPECT_EQ(fault(WireType::bytes, {1},
                  "\xff\xff\xff\xff"
                  "a"),
            "tensor \"x\": its 5 bytes end within text 0 of 1");
  EXPECT_EQ(fault(WireType::bytes, {1}, "\1\0\0\0ab"sv), "tensor \"x\": 1 bytes are left over after 1 texts");
  EXPECT_EQ(fault(WireType::bytes, {kHuge}, ""), "tensor \"x\": its 0 bytes end within text 0 of 1099511627776");
  check_tensor_data({.name = "x", .type = WireType::fp16, .shape = {3, 0}});
  check_tensor_data({.name = "x", .type = WireType::boolean, .shape = {2}, .data = std::string("\0\1", 2)});
  check_tensor_data(two_rows_of_text());
}

TEST(WireTensor, IsFoundByName) {
  const std::vector<WireTensor> tensors = {fp32_tensor("a", {0}, {}), fp32_tensor("b", {0, 1}, {})};
  EXPECT_EQ(find_tensor(tensors, "b"), &tensors[1]);
  EXPECT_EQ(find_tensor(tensors, "c"), nullptr);
}

TEST(WireTensor, RowsAreJoinedAndTakenApartAgain) {
  const WireTensor one = int64_tensor("x", {1, 2}, std::vector<int64_t>{1, 2});
  const WireTensor two = int64_tensor("x", {2, 2}, std::vector<int64_t>{3, 4, 5, 6});
  const WireTensor none = int64_tensor("x", {0, 2}, {});
  const WireTensor joined = join_rows(std::vector{&one, &none, &two});
  EXPECT_THAT(joined.shape, ElementsAre(3, 2));
  EXPECT_THAT(int64_values(joined), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(take_rows(joined, 0, 1), one);
  EXPECT_EQ(take_rows(joined, 1, 2), two);
  EXPECT_EQ(take_rows(joined, 3, 0), none);
  EXPECT_EQ(take_rows(none, 0, 0), none);

  const WireTensor texts = two_rows_of_text();
  const WireTensor twice = join_rows(std::vector{&texts, &texts});
  EXPECT_EQ(take_rows(twice, 2, 2), texts);
  EXPECT_THAT(text_values(take_rows(twice, 1, 2)), ElementsAre("n\xc3\xa9", std::string("\0x", 2), "a", ""));
}

TEST(WireTensor, RowsThatDoNotFitAreABug) {
  const WireTensor wide = int64_tensor("x", {1, 2}, std::vector<int64_t>{1, 2});
  const WireTensor narrow = int64_tensor("x", {1, 1}, std::vector<int64_t>{1});
  const WireTensor flat = int64_tensor("x", {1}, std::vector<int64_t>{1});
  const WireTensor single = int64_tensor("x", {}, std::vector<int64_t>{1});
  EXPECT_EQ(error_of<Bug>([&] {
              return join_rows(std::vector{&wide, &narrow});
            }),
            "tensor x: rows of INT64 [1,2] and of INT64 [1,1] cannot be joined");
  EXPECT_EQ(error_of<Bug>([&] {
              return join_rows(std::vector{&narrow, &flat});
            }),
            "tensor x: rows of INT64 [1,1] and of INT64 [1] cannot be joined");
  EXPECT_EQ(error_of<Bug>([&] { return join_rows({}); }), "no tensors to join");
  EXPECT_EQ(error_of<Bug>([&] { return take_rows(wide, 1, 1); }), "tensor x: rows 1 to 2 of 1");
  EXPECT_EQ(error_of<Bug>([&] { return take_rows(single, 0, 1); }), "tensor x: a single value has no rows");
}

}  // namespace
}  // namespace kedge
