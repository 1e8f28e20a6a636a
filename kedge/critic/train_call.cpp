#include "kedge/critic/train_call.h"

#include <cstring>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

template <typename T>
void append_numbers(std::string& bytes, const std::vector<T>& numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

template <typename T>
void take_numbers(std::string_view& bytes, std::vector<T>& numbers, int64_t count) {
  numbers.resize(static_cast<size_t>(count));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  bytes.remove_prefix(numbers.size() * sizeof(T));
}

}  // namespace

// A line of JSON, then the raw numbers, little-endian.
std::string to_bytes(const TrainCall& call) {
  Json header;
  header.set("call", "train");
  header.set("key", call.key);
  header.set("settings", call.settings);
  header.set("start", call.start);
  header.set("rows", call.batch.num_rows);
  header.set("width", call.batch.width);
  std::string bytes = header.dump() + "\n";
  append_numbers(bytes, call.batch.tokens);
  for (const auto* numbers : {&call.batch.returns, &call.batch.previous, &call.batch.mask}) append_numbers(bytes, *numbers);
  return bytes;
}

TrainCall read_train_call(std::string_view bytes) {
  const std::string where = "a journal's call to train";
  const size_t end = bytes.find('\n');
  check(end != std::string_view::npos, where, ": no header");
  const Json header = Json::parse(bytes.substr(0, end), where);
  bytes.remove_prefix(end + 1);
  TrainCall call;
  call.key = header.at("key", where).as_text(where);
  call.settings = header.at("settings", where).as_text(where);
  call.start = header.at("start", where).as_text(where);
  CriticBatch& batch = call.batch;
  batch.num_rows = header.at("rows", where).as_integer(where);
  batch.width = header.at("width", where).as_integer(where);
  const int64_t num_tokens = batch.num_rows * batch.width, num_targets = batch.num_rows * (batch.width - 1);
  check(static_cast<int64_t>(bytes.size()) == num_tokens * 8 + num_targets * 12, where, ": ", bytes.size(), " bytes for ", batch.num_rows,
        " rows of ", batch.width, " tokens");
  take_numbers(bytes, batch.tokens, num_tokens);
  for (auto* numbers : {&batch.returns, &batch.previous, &batch.mask}) take_numbers(bytes, *numbers, num_targets);
  return call;
}

}  // namespace kedge
