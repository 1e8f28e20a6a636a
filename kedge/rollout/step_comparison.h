#pragma once
// A recorded step compared with the same step recomputed, quantity by quantity: how many values differ, the largest difference
// and where it is. Independent of runs, files and tensors.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kedge/rollout/record_file.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Where in a record, all from 0 on.
struct RecordPlace {
  std::optional<int64_t> answer = {}, token = {}, update = {};  // a token is counted from the answer's first
};

// A named quantity that is compared.
struct Quantity {
  std::string name;
  int64_t num_compared = 0, num_differ = 0;
  RecordPlace first = {};  // where a difference is first
  // Of the largest difference; of texts, the first difference.
  double largest = 0;
  RecordPlace place = {};
  std::string recorded = {}, computed = {};
  double largest_ignored = 0;  // of the differences within the tolerance, as a share of the value, or of 1 for values below 1
};

struct StepComparison {
  int64_t step = 0;
  std::vector<Quantity> quantities = {};  // in the order in which one follows from another
  std::vector<std::string> notes = {};    // what could not be compared, and why

  [[nodiscard]] bool matches() const;
  [[nodiscard]] const Quantity* find(std::string_view name) const;
};

// "answer 3, token 5"; empty if there is no such place.
[[nodiscard]] std::string place_text(const RecordPlace& place);

// Names used elsewhere.
inline constexpr std::string_view kWeightsBefore = "weights before", kWeightsAfter = "weights after";

// Collects what is compared under one name. A difference of at most `tolerance` times the value (for values below 1, at most `tolerance`)
// is ignored; 0: bit-identical. NaN and infinities count as equal.
class QuantityCheck {
 public:
  QuantityCheck(std::string name, double tolerance) : quantity_{.name = std::move(name)}, tolerance_(tolerance) {}

  void numbers(double recorded, double computed, const RecordPlace& place);
  void lists(std::span<const float> recorded, std::span<const float> computed, RecordPlace place);
  void words(const std::string& recorded, const std::string& computed, const RecordPlace& place);

  // Into the comparison, unless there was nothing to compare.
  void give(StepComparison& comparison) const;

 private:
  void differ(double by, const RecordPlace& place, std::string recorded, std::string computed);
  template <typename Number>
  void compare(Number recorded, Number computed, const RecordPlace& place);

  Quantity quantity_;
  double tolerance_;
};

// Extra results for a step's answers before its updates, in addition to the trainer's. Rows are those of the record, in its
// order; empty ones were not computed.
struct CloseLook {
  std::vector<std::vector<float>> logprobs = {};  // of the recorded tokens, in separate passes
  std::vector<RowReward> rewards = {};            // requested again
  std::vector<TokenIds> drawn = {};               // the ids that the policy samples again
};

struct RecordedStep {
  RecordHeader header;
  RolloutRows rows;
};

// Rows of both are paired by their rollout, which they share. With a tolerance hashes are not compared.
[[nodiscard]] StepComparison compare_step(const RecordedStep& recorded, const RecordedStep& computed, const CloseLook& look,
                                          double tolerance);

// The most likely cause of a step that does not match, as text: the record's tokens, its rewards, the weights, the update.
[[nodiscard]] std::string blame_of(const StepComparison& comparison);

}  // namespace kedge
