#pragma once
// A line of numbers as a run writes most of them: {"step": 3, "time": 1.5, "NAME": 0.25, ...}. Read several times as fast as general JSON;
// anything else is left to the JSON parser.
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge {

// Keeps its memory from line to line. Names live as long as the line that was read.
class FlatLine {
 public:
  using Member = std::pair<std::string_view, double>;

  // False: the line has other content. An accepted line is JSON, except that names may occur twice.
  bool read(std::string_view line);

  [[nodiscard]] int64_t step() const { return static_cast<int64_t>(members_[0].second); }
  [[nodiscard]] double time() const { return members_[1].second; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }  // step and time are the first two

 private:
  bool take(char wanted);
  std::optional<std::string_view> take_name();
  std::optional<double> take_number();

  std::string_view rest_;
  std::vector<Member> members_;
};

}  // namespace kedge
