#pragma once
// Several SFT rows in one: which go together, how a pack is stored, and how it is fed. Sequences of a pack do not see each
// other: positions restart and cumulative lengths bound them.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/data/files/rows.h"
#include "kedge/text/tokenizer/text_encoder.h"

namespace kedge {

enum class PackingMethod { first_fit_shuffle, first_fit_decreasing };
constexpr auto enum_names(PackingMethod) {
  return std::array<EnumName<PackingMethod>, 2>{
      {{"first_fit_shuffle", PackingMethod::first_fit_shuffle}, {"first_fit_decreasing", PackingMethod::first_fit_decreasing}}};
}

struct PackingConfig {
  int64_t pack_size = 4096;
  PackingMethod method = PackingMethod::first_fit_shuffle;
  int64_t seed = 1234;

  void fields(auto&& field) {
    field("pack_size", pack_size, "maximum tokens per pack", at_least(1), unit("tokens"));
    field("method", method, "order in which rows are placed into packs: random, or longest first");
    field("seed", seed, "random seed of that order", at_least(0));
  }
};

// Which examples go into which pack. `lengths` are tokens fed, one less than a row has. Each example goes into the first pack
// with room for it. UsageError for one that is longer than a pack.
[[nodiscard]] std::vector<std::vector<int64_t>> assign_packs(std::span<const int64_t> lengths, const PackingConfig& config);

// As stored, one JSON object per line: complete rows one after another; the mask of a token says whether the next is trained on.
struct PackedRow {
  TokenIds input_ids;
  std::vector<uint8_t> loss_mask;
  std::vector<int64_t> seq_start_id;  // where each row begins
};
[[nodiscard]] PackedRow pack_rows(std::span<const MaskedTokens> rows);
[[nodiscard]] Json to_json(const PackedRow& packed);
[[nodiscard]] PackedRow read_packed_row(const Row& row);

// Packs rows that `get` gives (it is asked for each twice, from several threads) into a file of packed rows.
struct PackingReport {
  int64_t num_rows = 0, num_packs = 0;
  // Scale the global batch size down by this, so that a step sees as many rows as before.
  [[nodiscard]] double rows_per_pack() const { return static_cast<double>(num_rows) / static_cast<double>(num_packs); }
};
[[nodiscard]] PackingReport write_packs(int64_t num_rows, const std::function<MaskedTokens(int64_t)>& get, const PackingConfig& config,
                                        const Path& path);

// As fed: each sequence without its last token, its labels without the first.
struct PackInput {
  TokenIds tokens, labels;
  std::vector<uint8_t> loss_mask;
  std::vector<int64_t> positions;
  std::vector<int64_t> cumulative_lengths;  // 0, end of the first sequence, ..., number of tokens
};
[[nodiscard]] PackInput collate_packed(const PackedRow& packed);

// Safe to use from several threads.
class PackedDataset {
 public:
  // Reads every row once, so that a broken one is refused at load: a pack of more than `max_seq_length` tokens, or with a sequence of more
  // than `max_sequence`, which is what a network's positions limit, or with an id outside its vocabulary.
  PackedDataset(Rows rows, int64_t max_seq_length, int64_t max_sequence, int64_t vocab_size);
  [[nodiscard]] int64_t size() const { return rows_.size(); }
  [[nodiscard]] PackInput get(int64_t index) const;

 private:
  Rows rows_;
};

}  // namespace kedge
