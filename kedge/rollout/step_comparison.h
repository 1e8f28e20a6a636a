#pragma once
// A step as its record tells it beside the same step computed again, quantity by quantity: how many numbers differ, the largest difference
// and where it is. Knows no run, no files and no tensors.
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

// What has a name and is compared.
struct Quantity {
  std::string name;
  int64_t num_compared = 0, num_differ = 0;
  RecordPlace first = {};  // where a difference is first
  // Of the largest difference, and of words, whose differences have no size, the first.
  double largest = 0;
  RecordPlace place = {};
  std::string recorded = {}, computed = {};
};

struct StepComparison {
  int64_t step = 0;
  std::vector<Quantity> quantities = {};  // in the order in which one follows from another
  std::vector<std::string> notes = {};    // what could not be compared, and why

  [[nodiscard]] bool matches() const;
  [[nodiscard]] const Quantity* find(std::string_view name) const;
};

// "answer 3, token 5"; empty where there is no such place.
[[nodiscard]] std::string place_text(const RecordPlace& place);

// Names that others ask for.
inline constexpr std::string_view kWeightsBefore = "weights before", kWeightsAfter = "weights after";

// Gathers what is compared under one name. A difference of at most `tolerance` times the number (and of numbers below 1 at most that) is
// none; 0: equal to the bit. Numbers that JSON lacks are alike.
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

// What was found out about a step's answers before its updates, beside what its trainer computes. Rows are those of the record, in its
// order; what is empty was not looked at.
struct CloseLook {
  std::vector<std::vector<float>> logprobs = {};  // of the recorded tokens, in passes of their own
  std::vector<RowReward> rewards = {};            // asked for again
  std::vector<TokenIds> drawn = {};               // the ids that the policy draws again
};

struct RecordedStep {
  RecordHeader header;
  RolloutRows rows;
};

// Rows of both are paired by their rollout, which they share. With a tolerance hashes are not compared: they know only equal and other.
[[nodiscard]] StepComparison compare_step(const RecordedStep& recorded, const RecordedStep& computed, const CloseLook& look,
                                          double tolerance);

// What is most likely to blame for a step that does not match, in words: the record's tokens, its rewards, the weights, the update.
[[nodiscard]] std::string blame_of(const StepComparison& comparison);

}  // namespace kedge
