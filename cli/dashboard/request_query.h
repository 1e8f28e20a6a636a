#pragma once
// The query of a request, by name and kind. Errors are a RequestError (400) with the name.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kedge::cli {

class RequestQuery {
 public:
  explicit RequestQuery(std::string_view target);

  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;  // empty if missing
  [[nodiscard]] bool flag(std::string_view name) const;         // 1 or true; 0, false, empty or missing
  struct Bounds {
    int64_t low = 0, high = 0, usual = 0;
  };
  [[nodiscard]] int64_t integer(std::string_view name, const Bounds& bounds) const;  // `usual` if missing
  [[nodiscard]] std::optional<int64_t> count(std::string_view name) const;           // from 0 on; none if missing or empty
  [[nodiscard]] double share(std::string_view name) const;                           // from 0 to below 1; 0 if missing
  [[nodiscard]] std::vector<int64_t> counts(std::string_view name) const;            // "0,2,5"

 private:
  std::vector<std::pair<std::string, std::string>> parts_;
};

}  // namespace kedge::cli
