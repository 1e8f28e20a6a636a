#include "kedge/reward/row_answer.h"

namespace kedge {

const Json* find_field(const Json& row, std::string_view path) {
  if (const Json* whole = row.find(path)) return whole;
  const size_t point = path.find('.');
  if (point == std::string_view::npos) return nullptr;
  const Json* outer = row.find(path.substr(0, point));
  return outer == nullptr ? nullptr : find_field(*outer, path.substr(point + 1));
}

const Json* find_answer(const Json& row, std::string_view field) {
  if (!field.empty()) return find_field(row, field);
  const Json* found = nullptr;
  for (const std::string_view usual : kUsualAnswerFields) {
    if (found == nullptr || found->is_null())
      if (const Json* value = find_field(row, usual)) found = value;
  }
  return found;
}

}  // namespace kedge
