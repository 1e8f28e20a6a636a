#include "cli/text/replay_text.h"

#include <algorithm>

#include "kedge/core/error.h"
#include "kedge/metrics/progress.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

constexpr size_t kWidth = 80, kQuantityWidth = 26, kNumberWidth = 12, kLargestWidth = 20;

// Ends with at least one space.
std::string quantity_cell(const std::string& name) {
  return name.size() >= kQuantityWidth ? name.substr(0, kQuantityWidth - 3) + ".. " : pad_right(name, kQuantityWidth);
}

std::string line_of(const std::string& name, const std::string& compared, const std::string& differ, const std::string& largest) {
  std::string line =
      quantity_cell(name) + pad_left(compared, kNumberWidth) + pad_left(differ, kNumberWidth) + pad_left(largest, kLargestWidth);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

Json json_of(const RecordPlace& place) {
  Json json{Json::Object{}};
  if (place.answer) json.set("answer", *place.answer);
  if (place.token) json.set("token", *place.token);
  if (place.update) json.set("update", *place.update);
  return json;
}

}  // namespace

std::string paragraph(const std::string& text) {
  std::string out;
  for (const std::string& line : wrap(printable(text), kWidth - 2)) out += str(out.empty() ? "" : "  ", line, "\n");
  return out;
}

std::string comparison_table(const StepComparison& comparison, bool all) {
  std::string text = line_of("quantity", "compared", "differ", "largest difference");
  for (const Quantity& quantity : comparison.quantities) {
    const bool differs = quantity.num_differ > 0;
    if (!differs && !all) continue;
    text += line_of(quantity.name, std::to_string(quantity.num_compared), differs ? std::to_string(quantity.num_differ) : "-",
                    quantity.largest > 0 ? format_number(quantity.largest) : "");
    if (!differs) continue;
    const std::string place = place_text(quantity.place);
    text += "  " + paragraph(str(place, place.empty() ? "" : ": ", "recorded ", quantity.recorded, ", computed ", quantity.computed));
  }
  return text;
}

Json comparison_json(const StepComparison& comparison) {
  Json::Array quantities, notes;
  for (const Quantity& quantity : comparison.quantities) {
    Json json = Json::Object{{"name", quantity.name}, {"compared", quantity.num_compared}, {"differ", quantity.num_differ}};
    if (quantity.num_differ > 0) {
      json.set("first", json_of(quantity.first));
      json.set("largest", quantity.largest);
      json.set("place", json_of(quantity.place));
      json.set("recorded", quantity.recorded);
      json.set("computed", quantity.computed);
    }
    if (quantity.largest_ignored > 0) json.set("largest_ignored", quantity.largest_ignored);
    quantities.push_back(std::move(json));
  }
  for (const std::string& note : comparison.notes) notes.emplace_back(note);
  Json json = Json::Object{{"step", comparison.step}, {"matches", comparison.matches()}};
  if (!comparison.matches()) json.set("blame", blame_of(comparison));
  json.set("quantities", std::move(quantities));
  json.set("notes", std::move(notes));
  return json;
}

}  // namespace kedge::cli
