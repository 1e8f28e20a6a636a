#pragma once
// Which data set each example of a weighted mixture comes from. A pure function of weights and sizes; independent of rows.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kedge {

struct BlendPart {
  double weight = 1;  // of any scale; shares are weight / sum of weights
  int64_t size = 0;   // examples
};

// Example j goes to the part that lags furthest behind its share of j+1 examples (the first of equals), and takes that part's
// next row; a part whose rows are used up starts over. The mixture is as long as all parts together. About two bytes per example.
class Blend {
 public:
  struct Pick {
    size_t part = 0;
    int64_t index = 0;  // in the part
  };

  // UsageError for no parts, an empty part, or a weight that is not above 0.
  explicit Blend(std::vector<BlendPart> parts);

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] Pick pick(int64_t example) const;

 private:
  static constexpr size_t kBlock = 256;

  std::vector<BlendPart> parts_;
  int64_t size_ = 0;
  std::vector<uint16_t> choices_;       // the part of each example; empty for one part
  std::vector<int64_t> counts_before_;  // for every kBlock examples, how many each part gave before them
};

}  // namespace kedge
