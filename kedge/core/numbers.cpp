#include "kedge/core/numbers.h"

#include <charconv>
#include <limits>

namespace kedge {

bool read_integer(std::string_view text, int64_t& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_number(std::string_view text, double& value) {
  std::string_view unsigned_text = text;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) unsigned_text.remove_prefix(1);
  if (unsigned_text == ".inf" || unsigned_text == "inf") {
    value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return true;
  }
  // from_chars would also take words (nan, infinity) and no plus sign.
  if (unsigned_text.empty() || (unsigned_text[0] != '.' && (unsigned_text[0] < '0' || unsigned_text[0] > '9'))) return false;
  const auto [end, error] = std::from_chars(unsigned_text.data(), unsigned_text.data() + unsigned_text.size(), value);
  if (error != std::errc() || end != unsigned_text.data() + unsigned_text.size()) return false;
  if (negative) value = -value;
  return true;
}

}  // namespace kedge
