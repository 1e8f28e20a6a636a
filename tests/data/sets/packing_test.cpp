#include "kedge/data/sets/packing.h"

#include <gtest/gtest.h>

#include "kedge/core/random.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::digits;
using testing::error_of;
using testing::shown;
using testing::TempFolder;
using Packs = std::vector<std::vector<int64_t>>;
using Numbers = std::vector<int64_t>;

// Decreasing: 7 (row 1), 5 (row 0), 4 (rows 3, 4), 3 (row 2). 7 opens pack 0; 5 and 4 open and share pack 1 (9 of 10); the other 4
// opens pack 2; 3 fits pack 0.
TEST(Packing, TheLongestLookForRoomFirst) {
  const Numbers lengths = {5, 7, 3, 4, 4};
  EXPECT_EQ(assign_packs(lengths, {.pack_size = 10, .method = PackingMethod::first_fit_decreasing}), (Packs{{1, 2}, {0, 3}, {4}}));
}

TEST(Packing, OrRowsComeInRandomOrder) {
  Numbers lengths;
  for (int i = 0; i < 500; ++i) lengths.push_back(1 + (i * 37) % 100);
  const PackingConfig config = {.pack_size = 128, .seed = 7};
  const Packs packs = assign_packs(lengths, config);
  EXPECT_EQ(packs, assign_packs(lengths, config));
  // The plain form of first fit over the same order.
  Packs wanted;
  Numbers room;
  for (const int64_t example : permutation(500, 7)) {
    size_t pack = 0;
    while (pack < room.size() && room[pack] < lengths[static_cast<size_t>(example)]) ++pack;
    if (pack == room.size()) room.push_back(128), wanted.emplace_back();
    room[pack] -= lengths[static_cast<size_t>(example)];
    wanted[pack].push_back(example);
  }
  EXPECT_EQ(packs, wanted);
}

TEST(Packing, WhatFitsNoPackIsRefused) {
  EXPECT_TRUE(assign_packs({}, {}).empty());
  const Numbers exact = {10, 10};
  EXPECT_EQ(assign_packs(exact, {.pack_size = 10, .method = PackingMethod::first_fit_decreasing}), (Packs{{0}, {1}}));
  const Numbers lengths = {11};
  EXPECT_EQ(error_of([&] { return assign_packs(lengths, {.pack_size = 10}); }),
            "example 0 has 11 tokens and does not fit into a pack of 10");
}

const std::vector<MaskedTokens> kRows = {{{'a', 'b', 'c', 'd'}, {0, 0, 1, 1}}, {{'x', 'y', 'z'}, {0, 1, 1}}};

TEST(Packing, APackHoldsWholeRowsAndShiftedMasks) {
  const PackedRow packed = pack_rows(kRows);
  EXPECT_EQ(shown(packed.input_ids), "abcdxyz");
  EXPECT_EQ(digits(packed.loss_mask), "0111111");
  EXPECT_EQ(packed.seq_start_id, (Numbers{0, 4}));
  EXPECT_EQ(to_json(packed).dump(),
            R"({"input_ids": [97, 98, 99, 100, 120, 121, 122], "loss_mask": [0, 1, 1, 1, 1, 1, 1], "seq_start_id": [0, 4]})");
}

TEST(Packing, EachSequenceIsFedWithoutItsLastToken) {
  const PackInput batch = collate_packed(pack_rows(kRows));
  EXPECT_EQ(shown(batch.tokens), "abcxy");
  EXPECT_EQ(shown(batch.labels), "bcdyz");
  EXPECT_EQ(digits(batch.loss_mask), "01111");
  EXPECT_EQ(batch.positions, (Numbers{0, 1, 2, 0, 1}));
  EXPECT_EQ(batch.cumulative_lengths, (Numbers{0, 3, 5}));
}

TEST(Packing, StoredPacksComeBack) {
  const TempFolder folder;
  const auto path = folder.file("p.jsonl", to_json(pack_rows(kRows)).dump() + "\n");
  const PackedDataset packs(Rows::of_file(path), 5, 5, 256);
  ASSERT_EQ(packs.size(), 1);
  EXPECT_EQ(shown(packs.get(0).labels), "bcdyz");
  EXPECT_EQ(error_of<RowError>([&] { return PackedDataset(Rows::of_file(path), 4, 4, 256).size(); }),
            path.string() + ":1: a pack of 5 tokens; max_seq_length is 4");
}

TEST(Packing, AFileOfPacksFeedsTheVeryRowsItWasMadeOf) {
  const TempFolder folder;
  const auto get = [](int64_t row) { return kRows[static_cast<size_t>(row) % 2]; };
  const PackingReport report = write_packs(5, get, {.pack_size = 6, .method = PackingMethod::first_fit_decreasing}, folder / "p.jsonl");
  EXPECT_EQ(report.num_packs, 3);  // fed are 3, 2, 3, 2, 3 tokens: 3 + 3, 3 + 2, 2
  EXPECT_DOUBLE_EQ(report.rows_per_pack(), 5.0 / 3);
  const PackedDataset packs(Rows::of_file(folder / "p.jsonl"), 6, 6, 256);
  EXPECT_EQ(shown(packs.get(0).tokens), "abcabc");
  EXPECT_EQ(shown(packs.get(1).tokens), "abcxy");
  EXPECT_EQ(shown(packs.get(2).tokens), "xy");
}

TEST(Packing, BrokenPacksAreRefused) {
  const TempFolder folder;
  const auto error = [&](const std::string& row) {
    const auto path = folder.file("p.jsonl", row);
    return error_of<RowError>([&] { return PackedDataset(Rows::of_file(path), 100, 100, 256).size(); }).substr(path.string().size());
  };
  EXPECT_EQ(error(R"({"input_ids": [1, 2], "loss_mask": [1], "seq_start_id": [0]})"), ":1: \"loss_mask\": 1 entries for 2 ids");
  const std::string starts = ":1: \"seq_start_id\": expected increasing positions in \"input_ids\" that start with 0";
  EXPECT_EQ(error(R"({"input_ids": [1, 2], "loss_mask": [1, 1], "seq_start_id": [1]})"), starts);
  EXPECT_EQ(error(R"({"input_ids": [1, 2], "loss_mask": [1, 1], "seq_start_id": [0, 2]})"), starts);
  EXPECT_EQ(error(R"({"input_ids": [1, 2], "loss_mask": [1, 1], "seq_start_id": [0, 1, 1]})"), starts);
  EXPECT_EQ(error(R"({"input_ids": [1, 2], "loss_mask": [1, 1], "seq_start_id": []})"), starts);
  EXPECT_EQ(error(R"({"input_ids": [-1], "loss_mask": [1], "seq_start_id": [0]})"), ":1: \"input_ids\": no token has the id -1");
  EXPECT_EQ(error(R"({"input_ids": [1.5], "loss_mask": [1], "seq_start_id": [0]})"),
            ":1: \"input_ids\": expected an integer, found a number");
  EXPECT_EQ(error(R"({"input_ids": 3})"), ":1: \"input_ids\": expected a list of integers, found an integer");
}

// A pack may be longer than a network's positions, a sequence in it may not.
TEST(PackedDataset, SequencesAreLimitedByThemselves) {
  const testing::TempFolder folder;
  const Path path =
      folder.file("p.jsonl", R"({"input_ids": [1, 2, 3, 4, 5, 6, 7], "loss_mask": [1, 1, 0, 1, 1, 1, 0], "seq_start_id": [0, 3]})"
                             "\n");
  EXPECT_EQ(PackedDataset(Rows::of_file(path), 5, 3, 256).size(), 1);
  EXPECT_EQ(error_of<RowError>([&] { return PackedDataset(Rows::of_file(path), 5, 2, 256).size(); }),
            path.string() + ":1: a sequence of 3 tokens in a pack; the network takes 2");
}

// Also the last of a sequence, which is a label and never goes in.
TEST(PackedDataset, IdsAreOfTheModelsVocabulary) {
  const testing::TempFolder folder;
  const auto size = [&](const std::string& ids) {
    return PackedDataset(Rows::of_file(folder.file("p.jsonl",
                                                   "{\"input_ids\": [" + ids + R"(], "loss_mask": [1, 1, 0, 1], "seq_start_id": [0, 2]})")),
                         5, 5, 10)
        .size();
  };
  EXPECT_EQ(size("9, 9, 9, 9"), 1);
  for (const char* ids : {"10, 1, 2, 3", "0, 10, 2, 3", "0, 1, 10, 3", "0, 1, 2, 10"})
    EXPECT_EQ(error_of<RowError>([&] { return size(ids); }),
              (folder / "p.jsonl").string() + ":1: \"input_ids\": id 10 is outside the model's vocabulary of 10");
}

}  // namespace
}  // namespace kedge
