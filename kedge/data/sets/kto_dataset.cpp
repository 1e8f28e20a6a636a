#include "kedge/data/sets/kto_dataset.h"

#include <algorithm>

#include "kedge/core/log.h"

namespace kedge {
namespace {

bool read_wanted(const Row& row, const FieldNames& names) {
  const Json* value = first_field(row, names.label, {"preference", "label"});
  if (value == nullptr)
    row.fail_missing(Json(names.label.value_or("preference")).dump(), "set model.data.fields.label if it has another name");
  if (value->is_bool()) return value->as_bool("");
  constexpr const char* kWanted = "\"chosen\", \"rejected\", true or false";
  if (!value->is_text()) row.fail_type("the preference", kWanted, *value);
  const std::string& text = value->as_text("");
  if (text != "chosen" && text != "rejected")
    row.fail(RowFault::bad_value, str("the preference: expected ", kWanted, ", found ", value->dump()));
  return text == "chosen";
}

}  // namespace

KtoReader::KtoReader(const DataConfig& config, ChatRenderer chat) : reader_(config, std::move(chat)) {}

KtoRow KtoReader::read(const Row& row) const {
  const bool wanted = read_wanted(row, reader_.names());
  const Json* response = first_field(row, reader_.names().response, {"response", "completion"});
  if (response != nullptr) return {reader_.with_response(row, *response, "the answer"), wanted};
  if (reader_.names().response || !reader_.has_prompt(row) || row.find("prompt") != nullptr)
    row.fail_missing(Json(reader_.names().response.value_or("response")).dump(), "set model.data.fields.response if it has another name");
  return {reader_.whole_dialogue(row), wanted};
}

KtoDataset::KtoDataset(Rows rows, TextEncoder encoder, const DataConfig& config, ChatRenderer chat)
    : rows_(std::move(rows)), encoder_(std::move(encoder)), config_(config), reader_(config, std::move(chat)), kept_(rows_.size()) {
  kept_.filter([&](int64_t row) {
    const bool fits = static_cast<int64_t>(encode(row).ids.size()) <= config_.seq_length;
    return fits || !config_.drop_over_long;
  });
  check(size() > 0, rows_.name(), ": no row has at most ", config_.seq_length, " tokens");
  if (num_dropped() > 0) log_warn_of_job(rows_.name(), ": left out ", num_dropped(), " rows of more than ", config_.seq_length, " tokens");
}

KtoExample KtoDataset::encode(int64_t number) const {
  const Row row = rows_.row(number);
  const KtoRow read = reader_.read(row);
  JointTokens joint = encode_joint(encoder_, ends_of(config_), read.texts, [&] { return row.where(); });
  encoder_.check_ids(joint.ids, [&] { return row.where(); });
  return {number, std::move(joint.ids), joint.num_prompt_tokens, read.chosen};
}

KtoExample KtoDataset::get(int64_t index) const {
  ensure(index >= 0 && index < size(), rows_.name(), ": row ", index, " of ", size());
  KtoExample example = encode(kept_[index]);
  example.id = index;
  example.masked = static_cast<int64_t>(example.ids.size()) > config_.seq_length;
  if (example.masked) {
    example.ids.resize(std::min<size_t>(example.ids.size(), kMaskedTokens));
    masked_.note_once(index, rows_.where(kept_[index]), " is too long (limit: ", config_.seq_length,
                      " tokens) and is left out of the loss");
  }
  return example;
}

}  // namespace kedge
