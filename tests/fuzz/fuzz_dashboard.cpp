// What the dashboard reads of others: the target of a request, and the /metrics of a server. Parsed or refused; no crash, no other
// exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/inspect/metrics_line.h"
#include "kedge/inspect/server_numbers.h"
#include "kedge/net/http.h"
#include "kedge/net/request_error.h"

#include "cli/dashboard/request_query.h"

namespace {

using namespace kedge;

template <typename Call>
void parsed_or_refused(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const RequestError& error) {
    ensure(error.status() == 400, "refused with ", error.status());
  }
}

void same_as_json(std::string_view line) {
  FlatLine flat;
  if (!flat.read(line)) return;
  try {
    const Json json = Json::parse(line);
    ensure(json.as_object("").size() == flat.members().size(), "another number of members");
    for (size_t i = 0; i < flat.members().size(); ++i) {
      const auto& [name, value] = json.as_object("")[i];
      ensure(name == flat.members()[i].first && value.as_number("") == flat.members()[i].second, "another member ", name);
    }
  } catch (const UsageError& error) {
    ensure(std::string_view(error.what()).find("occurs twice") != std::string_view::npos, error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  same_as_json(text);
  parsed_or_refused([&] { return path_parts(text); });
  parsed_or_refused([&] {
    const cli::RequestQuery query(text);
    for (const char* name : {"run", "smooth", ""}) {
      parsed_or_refused([&] { return query.count(name); });
      parsed_or_refused([&] { return query.share(name); });
      parsed_or_refused([&] { return query.counts(name); });
      parsed_or_refused([&] { return query.flag(name); });
      parsed_or_refused([&] {
        const int64_t value = query.integer(name, {1, 9, 5});
        ensure(value >= 1 && value <= 9, "out of bounds");
        return value;
      });
    }
    return 0;
  });
  for (const ServerNumber& number : read_server_numbers(text)) ensure(number.name.starts_with("kedge_"), "another's number");
  return 0;
}
