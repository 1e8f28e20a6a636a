// Bytes as a right answer and a response, apart by a zero byte. Whatever they are: an answer that can be read equals itself, and equality
// has no direction.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kedge/reward/math/math_answer.h"
#include "kedge/reward/math/math_equal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t zero = text.find('\0');
  const std::string_view truth = text.substr(0, zero), response = zero == std::string_view::npos ? text : text.substr(zero + 1);
  const auto found = kedge::math_answer(response);
  const auto right = kedge::RightMathAnswer::of(truth);
  if (!right) return 0;
  if (!right->is({right->text()})) std::abort();
  if (!found) return 0;
  const auto left_node = kedge::parse_math(found->text), right_node = kedge::parse_math(right->text());
  if (!left_node || !right_node) return 0;
  const bool same = kedge::same_answer(*left_node, *right_node, 1e-6);
  if (same != kedge::same_answer(*right_node, *left_node, 1e-6)) std::abort();
  if (same && !right->is(*found)) std::abort();
  return 0;
}
