#include "kedge/text/jinja/jinja_arguments.h"

#include <algorithm>

#include "kedge/text/jinja/jinja_ops.h"

namespace kedge::jinja {

Bound::Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names, size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    fail(function, "() takes at most ", names.size(), " argument(s), found ", arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail(function, "() got an unexpected keyword argument '", name, "'");
    const Value*& place = values_[static_cast<size_t>(found - names.begin())];
    if (place != nullptr) fail(function, "() got multiple values for argument '", name, "'");
    place = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr) fail(function, "() misses its argument ", i + 1);
}

const Value& Bound::operator[](size_t index) const {
  static const Value missing;
  return values_[index] == nullptr ? missing : *values_[index];
}

const std::string& Bound::text(size_t index) const {
  const Value& value = (*this)[index];
  if (!value.is_text()) fail(function_, "() argument ", index + 1, " must be str, not ", type_name(value));
  return value.bytes();
}

int64_t Bound::integer(size_t index) const {
  const Value& value = (*this)[index];
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_integral()) fail(function_, "(): '", type_name(value), "' object cannot be interpreted as an integer");
  return value.integer();
}

int64_t Bound::integer(size_t index, int64_t otherwise) const { return given(index) ? integer(index) : otherwise; }

bool Bound::flag(size_t index, bool otherwise) const { return given(index) ? truth(*values_[index]) : otherwise; }

}  // namespace kedge::jinja
