#include "kedge/reward/row_answer.h"

namespace kedge {

const Json* find_field(const Json& row, std::string_view path) {
  if (const Json* whole = row.find(path)) return whole;
  const size_t point = path.find('.');
  if (point == std::string_view::npos) return nullptr;
  const Json* outer = row.find(path.substr(0, point));
  return outer == nullptr ? nullptr : find_field(*outer, path.substr(point + 1));
}

std::string_view answer_field(const Json& row, std::string_view field) {
  if (!field.empty()) return field;
  for (const std::string_view usual : kUsualAnswerFields)
    if (const Json* value = find_field(row, usual); value != nullptr && !value->is_null()) return usual;
  return kUsualAnswerFields[0];
}

const Json* find_answer(const Json& row, std::string_view field) { return find_field(row, answer_field(row, field)); }

}  // namespace kedge
