#include "cli/generate_lines.h"

#include <array>
#include <chrono>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stop.h"

namespace kedge::cli {
namespace {

struct PromptField {
  std::string_view key;
  const Json& value;

  [[nodiscard]] bool is_ids() const { return key == "ids"; }
  [[nodiscard]] bool is_chat() const { return key == "messages" || (key == "prompt" && value.is_array()); }
};

PromptField prompt_of(const Json& line, const std::string& where) {
  constexpr std::array<std::string_view, 4> kKeys = {"prompt", "messages", "text", "ids"};
  for (const std::string_view key : kKeys)
    if (const Json* value = line.find(key)) return {key, *value};
  throw UsageError(str(where, R"(: expected an object with "prompt", "messages", "text" or "ids")"));
}

TokenIds read_prompt(RowReader& reader, const Json& line, const std::string& where) {
  const PromptField prompt = prompt_of(line, where);
  const std::string place = str(where, ": ", prompt.key);
  if (prompt.is_ids()) return reader.from_ids(prompt.value, place);
  if (prompt.is_chat()) return reader.from_messages(prompt.value, line, place);
  return reader.from_text(prompt.value.as_text(place), where);
}

template <typename Numbers>
Json::Array json_list(const Numbers& numbers, auto&& make) {
  Json::Array list;
  for (const auto number : numbers) list.push_back(make(number));
  return list;
}

}  // namespace

LineGenerator::LineGenerator(Generation& generation, const GenerateOptions& options)
    : generation_(generation), options_(options), order_(!options.unordered, print_json_line) {}

void LineGenerator::add(const Json& line, const std::string& where) {
  Row row{next_index_, line, read_prompt(generation_.reader(), line, where), options_.samples};
  const int64_t request = generation_.engine().submit(generation_.request(row.prompt, row.index, where));
  order_.expect(row.index, row.num_open);
  num_open_ += row.num_open;
  rows_.emplace(request, std::move(row));
  ++next_index_;
}

void LineGenerator::add_or_refuse(const JsonLine& line) {
  const PromptField prompt = prompt_of(line.value, line.where);
  // A folder without them cannot serve any such line, so there is no point in continuing.
  if (!prompt.is_ids()) static_cast<void>(generation_.reader().tokenizer());
  if (prompt.is_chat()) generation_.need_chat_template();
  try {
    add(line.value, line.where);
  } catch (const UsageError& error) {
    if (!std::string_view(error.what()).starts_with(line.where)) throw;  // not an error of the line: too little memory for any
    log_error(error.what());
    Json refused = line_of({next_index_, line.value, {}, 0});
    refused.set("finish", name_of(Finish::failed));
    refused.set("error", error.what());
    order_.expect(next_index_, 1);
    order_.ready(next_index_, 0, std::move(refused));
    ++num_failed_;
    ++next_index_;
  }
}

std::optional<int> LineGenerator::run(const std::function<std::optional<JsonLine>(const StopQuestion&)>& next) {
  // Twice the batch, so that a finished one is replaced at once.
  const int64_t max_open = 2 * options_.engine.scheduler.running_on(generation_.engine().is_cuda());
  const StopSignals stop;
  bool has_more = true;
  while (!stop.received() && (has_more || num_open_ > 0)) {
    if (has_more && num_open_ < max_open) {
      const auto line = next([&] { return stop.received(); });
      has_more = line.has_value();
      if (line) add_or_refuse(*line);
    } else {
      step();
    }
  }
  order_.finish();
  return stop.received();
}

void LineGenerator::step() {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t num_drawn = generation_.engine().stats().num_drawn;
  const int64_t num_open = num_open_;
  const EngineEvents events = {.token = {}, .end = [this](const Completion& completion) { end(completion); }};
  static_cast<void>(generation_.engine().step(events));
  progress_.add(num_open - num_open_, generation_.engine().stats().num_drawn - num_drawn,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void LineGenerator::end(const Completion& completion) {
  Row& row = rows_.at(completion.request);
  Json line = line_of(row);
  if (options_.samples > 1) line.set("sample", completion.sample);
  if (const ResponseText* responses = generation_.responses()) line.set("response", responses->text(row.prompt, completion.tokens));
  line.set("ids", json_list(completion.tokens, [](TokenId id) { return Json(int64_t{id}); }));
  line.set("logprobs", json_list(completion.logprobs, short_number));
  line.set("finish", name_of(completion.finish));
  if (completion.finish == Finish::failed) {
    line.set("error", completion.error);
    log_error(completion.error);
    ++num_failed_;
  }
  order_.ready(row.index, completion.sample, std::move(line));
  --num_open_;
  if (--row.num_open == 0) rows_.erase(completion.request);
}

// What came in, the ids of a prompt under another name, because those of the completion take theirs.
Json LineGenerator::line_of(const Row& row) const {
  Json line = row.line;
  if (prompt_of(line, "").is_ids()) {
    line = Json(Json::Object{});
    for (const auto& [key, value] : row.line.as_object(""))
      if (key != "prompt_ids") line.append(key == "ids" ? "prompt_ids" : key, value);
  }
  if (options_.samples > 1 || options_.unordered) line.set("index", row.index);
  return line;
}

}  // namespace kedge::cli
