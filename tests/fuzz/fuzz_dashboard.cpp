// What the dashboard reads of others: the target of a request, and the /metrics of a server. Parsed or refused; no crash, no other
// exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kedge/core/error.h"
#include "kedge/net/http.h"
#include "kedge/net/request_error.h"

#include "cli/request_query.h"
#include "cli/server_numbers.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
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
  for (const cli::ServerNumber& number : cli::read_server_numbers(text)) ensure(number.name.starts_with("kedge_"), "another's number");
  return 0;
}
