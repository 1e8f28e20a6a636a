#include "kedge/model/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::FileSizeLimit;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::TempFolder;

std::string header_error(std::string_view header, size_t data_size) {
  return error_of([&] { return parse_safetensors_header(header, data_size, "w"); });
}

// The fault of a file with one tensor "a", given as JSON, and 8 bytes of data.
std::string tensor_error(const std::string& tensor) { return header_error(R"({"a": )" + tensor + "}", 8); }

// Length and header of a file whose data would follow.
std::string with_length(const std::string& header) {
  return std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header;
}

TEST(Safetensors, AFileIsItsLengthItsHeaderAndItsData) {
  const std::string header = R"({"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},"__metadata__":{"k":"v"}})";
  const std::string file = with_length(header) + "abcd";
  const SafetensorsView view = view_safetensors(file, "w");
  ASSERT_EQ(view.header.entries.size(), 1U);
  EXPECT_EQ(view.header.entries[0].name, "b");
  EXPECT_EQ(view.header.entries[0].type, WeightType::bf16);
  EXPECT_EQ(view.header.entries[0].type_name, "BF16");
  EXPECT_THAT(view.header.entries[0].shape, ElementsAre(2, 1));
  EXPECT_EQ(view.header.entries[0].begin, 0U);
  EXPECT_EQ(view.header.entries[0].end, 4U);
  EXPECT_THAT(view.header.metadata, ElementsAre(Pair("k", "v")));
  EXPECT_EQ(view.data, "abcd");
}

TEST(Safetensors, TheTypesHaveTheirNamesAndSizes) {
  EXPECT_EQ(name_of(WeightType::f32), "F32");
  EXPECT_EQ(name_of(WeightType::bf16), "BF16");
  EXPECT_EQ(name_of(WeightType::f16), "F16");
  EXPECT_EQ(bytes_of(WeightType::f32), 4U);
  EXPECT_EQ(bytes_of(WeightType::bf16), 2U);
  EXPECT_EQ(bytes_of(WeightType::f16), 2U);
}

TEST(Safetensors, EntriesComeInOrderOfOffset) {
  const SafetensorsHeader header = parse_safetensors_header(
      R"({"z": {"dtype": "F32", "shape": [], "data_offsets": [4, 8]},
          "y": {"dtype": "F16", "shape": [0, 3], "data_offsets": [4, 4]},
          "a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}})",
      8, "w");
  std::vector<std::string> names;
  for (const TensorEntry& entry : header.entries) names.push_back(entry.name);
  EXPECT_THAT(names, ElementsAre("a", "y", "z"));
  EXPECT_THAT(header.metadata, IsEmpty());
}

TEST(Safetensors, AHeaderWithoutTensorsIsLegal) {
  EXPECT_THAT(parse_safetensors_header("{}", 0, "w").entries, IsEmpty());
  EXPECT_EQ(header_error("{}", 3), "w: 3 bytes follow the last tensor");
}

TEST(Safetensors, OtherDtypesOfTheFormatAreAnErrorOnlyWhenAskedFor) {
  const SafetensorsHeader header = parse_safetensors_header(
      R"({"attn.bias": {"dtype": "BOOL", "shape": [1, 4], "data_offsets": [0, 4]},
          "packed": {"dtype": "F4", "shape": [2, 4], "data_offsets": [4, 8]}})",
      8, "w");
  const TensorEntry& entry = header.entries.at(0);
  EXPECT_EQ(entry.type, std::nullopt);
  EXPECT_EQ(error_of([&] { return weight_type(entry, "w: tensor attn.bias"); }),
            "w: tensor attn.bias: expected F32, BF16 or F16, found BOOL");
  EXPECT_EQ(tensor_error(R"({"dtype": "F4", "shape": [3], "data_offsets": [0, 1]})"),
            "w: tensor \"a\": F4 of shape [3] does not fill whole bytes");
  EXPECT_EQ(tensor_error(R"({"dtype": "F33", "shape": [2], "data_offsets": [0, 8]})"), "w: tensor \"a\": the format has no dtype F33");
}

TEST(Safetensors, AFileThatIsTooShortIsCalledTruncated) {
  EXPECT_EQ(error_of([] { return view_safetensors("1234567", "w"); }),
            "w: 7 bytes, too short for a safetensors file: truncated or an incomplete download");
  EXPECT_EQ(error_of([] { return view_safetensors(with_length("{\"a\": 1}").substr(0, 12), "w"); }),
            "w: announces a header of 8 bytes, but 4 follow: truncated or an incomplete download");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [3], "data_offsets": [0, 12]})"),
            "w: tensor \"a\" ends at byte 12 of the data, but the file holds 8: truncated or an incomplete download");
}

TEST(Safetensors, AFileThatIsNoSafetensorsFileIsRefused) {
  EXPECT_EQ(error_of([] { return view_safetensors(std::string(16, '\x01'), "w"); }),
            "w: its first bytes announce a header of 72340172838076673 bytes, at most 100000000 are read; is this a safetensors file?");
  EXPECT_EQ(error_of([] { return view_safetensors("version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "w"); }),
            "w: a Git LFS pointer, not the file itself; git lfs pull fetches it");
  const std::string no_object = "w: header: expected a JSON object from its first byte on; is this a safetensors file?";
  EXPECT_EQ(header_error("", 0), no_object);
  EXPECT_EQ(header_error(" {}", 0), no_object);
  EXPECT_EQ(header_error("[]", 0), no_object);
  EXPECT_EQ(header_error("{", 0).substr(0, 30), "w: header:1:2: not valid JSON:");
  EXPECT_EQ(header_error("{} x", 0).substr(0, 30), "w: header:1:4: not valid JSON:");
}

TEST(Safetensors, AHeaderThatWouldFillTheMemoryIsRefused) {
  EXPECT_EQ(header_error(std::string(100'000'001, ' '), 0), "w: header: 100000001 bytes, at most 100000000 are read");
  EXPECT_EQ(header_error("{\"a\": [" + std::string(4'000'001, ','), 0), "w: header: 4000001 commas, at most 4000000 are read");
}

TEST(Safetensors, ANameMayStandOnce) {
  EXPECT_EQ(header_error(R"({"a": 1, "a": 2})", 0), "w: header:1: not valid JSON: key \"a\" occurs twice in one object");
}

TEST(Safetensors, FieldsAreWantedAndOfTheirKind) {
  EXPECT_EQ(tensor_error("5"), "w: tensor \"a\": expected an object, found 5");
  EXPECT_EQ(tensor_error(R"({"shape": [2], "data_offsets": [0, 8]})"), "w: tensor \"a\": no \"dtype\" field");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "data_offsets": [0, 8]})"), "w: tensor \"a\": no \"shape\" field");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2]})"), "w: tensor \"a\": no \"data_offsets\" field");
  EXPECT_EQ(tensor_error(R"({"dtype": 32, "shape": [2], "data_offsets": [0, 8]})"), "w: tensor \"a\": dtype: expected a string, found 32");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]})"),
            "w: tensor \"a\": shape: expected an integer, found 2.0");
  EXPECT_EQ(header_error(R"({"__metadata__": {"a": 1}})", 0), "w: __metadata__.a: expected a string, found 1");
  EXPECT_EQ(header_error(R"({"__metadata__": []})", 0), "w: __metadata__: expected an object, found []");
}

TEST(Safetensors, ShapesAreCheckedAgainstTheBytes) {
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]})"), "w: tensor \"a\": shape [-2] has a negative size");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]})"),
            "w: tensor \"a\": shape [4294967296, 4294967296] is too large");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]})"),
            "w: tensor \"a\": F32 of shape [3] takes 12 bytes, but data_offsets [0, 8] give it 8");
}

TEST(Safetensors, AShapeOfVeryManyDimensionsIsRefused) {
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ", 1";
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [)" + ones + R"(], "data_offsets": [0, 4]})"),
            "w: tensor \"a\": 65 dimensions, at most 64 are read");
}

TEST(Safetensors, OffsetsAreChecked) {
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]})"),
            "w: tensor \"a\": data_offsets: expected a begin and an end, found 3 values");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]})"),
            "w: tensor \"a\": data_offsets: expected 0 <= begin <= end, found [-8, 0]");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2], "data_offsets": [8, 0]})"),
            "w: tensor \"a\": data_offsets: expected 0 <= begin <= end, found [8, 0]");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [2], "data_offsets": [0, 18446744073709551616]})"),
            "w: tensor \"a\": data_offsets: expected an integer, found 18446744073709551616.0");
}

TEST(Safetensors, TensorsCoverTheDataOnce) {
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [], "data_offsets": [4, 8]})"),
            "w: bytes 0 to 4 of the data, before tensor \"a\", belong to no tensor");
  EXPECT_EQ(tensor_error(R"({"dtype": "F32", "shape": [], "data_offsets": [0, 4]})"), "w: 4 bytes follow the last tensor");
  EXPECT_EQ(header_error(R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
                             "b": {"dtype": "F32", "shape": [], "data_offsets": [2, 6]}})",
                         8),
            "w: tensor \"b\" begins at byte 2 of the data, inside the tensor before it, which ends at 4");
}

TEST(SafetensorsWriter, WhatIsWrittenReadsBack) {
  const TempFolder folder;
  const Path path = folder / "w.safetensors";
  SafetensorsWriter writer(path, {{.name = "f32", .type = WeightType::f32, .shape = {2, 1}},
                                  {.name = "none", .type = WeightType::f32, .shape = {0, 7}},
                                  {.name = "one", .type = WeightType::bf16, .shape = {}},
                                  {.name = "mask", .type = {}, .shape = {3}, .type_name = "BOOL"}});
  writer.write("1234");
  writer.write("5678");
  writer.write("ab");
  writer.write("010");
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.finish();

  const SafetensorsFile file(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("format", "pt")));
  std::string found;
  for (const TensorEntry& entry : file.entries()) found += str(entry.name, " ", entry.type_name, " ", file.bytes(entry), "; ");
  EXPECT_EQ(found, "f32 F32 12345678; none F32 ; one BF16 ab; mask BOOL 010; ");
  EXPECT_THAT(file.entries()[0].shape, ElementsAre(2, 1));
}

TEST(SafetensorsWriter, TheHeaderIsPaddedSoThatTheDataIsAligned) {
  for (const std::string name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    std::vector<TensorEntry> entries = {{.name = name, .type = WeightType::f16, .shape = {1}}};
    EXPECT_EQ(safetensors_preamble(entries, {}, "w").size() % 8, 0U) << name;
    EXPECT_EQ(entries[0].end, 2U);
  }
  std::vector<TensorEntry> none;
  EXPECT_EQ(safetensors_preamble(none, {}, "w"), std::string("\x08\0\0\0\0\0\0\0", 8) + "{}      ");
}

TEST(SafetensorsWriter, AnUnfinishedWriterLeavesNothing) {
  const TempFolder folder;
  {
    SafetensorsWriter writer(folder / "w", {{.name = "a", .type = WeightType::f32, .shape = {1}}});
    writer.write("12");
    EXPECT_THROW(writer.finish(), Bug);
  }
  {
    SafetensorsWriter writer(folder / "w", {{.name = "a", .type = WeightType::f32, .shape = {1000}}});
    const FileSizeLimit limit(1024);
    EXPECT_EQ(error_of<Error>([&] { writer.write(std::string(4000, 'x')); }),
              (folder / "w").string() + ": cannot be written: File too large");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, BytesThatDoNotFitTheirTensorAreABug) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "w",
                           {{.name = "a", .type = WeightType::f32, .shape = {1}}, {.name = "b", .type = WeightType::f32, .shape = {1}}});
  EXPECT_THROW(writer.write("12345678"), Bug);
  writer.write("1234");
  EXPECT_THROW(writer.write("56789"), Bug);
  writer.write("5678");
  EXPECT_THROW(writer.write("9"), Bug);
  writer.finish();
}

TEST(SafetensorsWriter, WhatCouldNotBeReadIsNotWritten) {
  const TempFolder folder;
  const std::string path = (folder / "w").string();
  const TensorEntry a{.name = "a", .type = WeightType::f32, .shape = {1}};
  EXPECT_EQ(error_of([&] { SafetensorsWriter(path, {a, a}); }), path + ": header:1: not valid JSON: key \"a\" occurs twice in one object");
  EXPECT_EQ(error_of([&] { SafetensorsWriter(path, {{.name = "a", .type = WeightType::f32, .shape = {-1}}}); }),
            path + ": tensor \"a\": shape [-1] has a negative size");
  EXPECT_EQ(error_of([&] { SafetensorsWriter(path, {{.name = "a", .type = {}, .shape = {}}}); }),
            path + ": tensor \"a\": the format has no dtype ");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, DroppedTensorsAreReadAgain) {
  const TempFolder folder;
  SafetensorsWriter writer(folder / "w", {{.name = "a", .type = WeightType::f32, .shape = {50000}}});
  writer.write(std::string(200000, 'x'));
  writer.finish();
  SafetensorsFile first(folder / "w");
  const SafetensorsFile file = std::move(first);
  EXPECT_EQ(file.bytes(file.entries()[0]), std::string(200000, 'x'));
  file.drop(file.entries()[0]);
  EXPECT_EQ(file.bytes(file.entries()[0]), std::string(200000, 'x'));
}

TEST(Safetensors, ARealModelReadsAndIsRewrittenWithEqualBytes) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k/model.safetensors");
  const SafetensorsFile real(testing::asset("models/tinystories-656k/model.safetensors"));
  const TempFolder folder;
  SafetensorsWriter writer(folder / "w", real.entries(), real.metadata());
  for (const TensorEntry& entry : real.entries()) writer.write(real.bytes(entry));
  writer.finish();
  const SafetensorsFile copy(folder / "w");
  ASSERT_EQ(copy.entries().size(), real.entries().size());
  EXPECT_EQ(copy.metadata(), real.metadata());
  for (size_t i = 0; i < copy.entries().size(); ++i) {
    EXPECT_EQ(copy.entries()[i].name, real.entries()[i].name);
    EXPECT_EQ(copy.bytes(copy.entries()[i]), real.bytes(real.entries()[i]));
  }
}

}  // namespace
}  // namespace kedge
