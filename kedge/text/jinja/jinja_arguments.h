#pragma once
// The arguments of a call matched with the parameters of a Python function.
#include <initializer_list>
#include <string>
#include <string_view>

#include "kedge/text/jinja/jinja_value.h"

namespace kedge::jinja {

class Bound {
 public:
  // One name per parameter, in order; an empty one is positional only. Faults: too many, too few, unknown names.
  // Holds references into `arguments`.
  Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names, size_t required = 0);

  [[nodiscard]] bool given(size_t index) const { return values_[index] != nullptr; }
  // The value, or a missing one.
  [[nodiscard]] const Value& operator[](size_t index) const;

  // A Fault if the kind is another.
  [[nodiscard]] const std::string& text(size_t index) const;
  [[nodiscard]] int64_t integer(size_t index) const;
  [[nodiscard]] int64_t integer(size_t index, int64_t otherwise) const;
  [[nodiscard]] bool flag(size_t index, bool otherwise = false) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

}  // namespace kedge::jinja
