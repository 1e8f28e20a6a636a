// Reads safetensors files and writes them again, for the interop test: each line of the input is {"from": "...", "to": "..."}; the
// answer {"names": [...]} or {"error": "..."}.
#include <iostream>
#include <string>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/model/files/safetensors.h"

namespace kedge {
namespace {

Json copy(const Path& from, const Path& to) {
  const SafetensorsFile file(from);
  SafetensorsWriter writer(to, file.entries(), file.metadata());
  Json::Array names;
  for (const TensorEntry& entry : file.entries()) {
    const std::string_view bytes = file.bytes(entry);
    writer.write(bytes.substr(0, bytes.size() / 2));
    writer.write(bytes.substr(bytes.size() / 2));
    file.drop(entry);
    names.emplace_back(entry.name);
  }
  writer.finish();
  return Json::Object{{"names", std::move(names)}};
}

Json answer(const std::string& line) {
  try {
    const Json request = Json::parse(line, "request");
    return copy(request.at("from", "request").as_text("from"), request.at("to", "request").as_text("to"));
  } catch (const UsageError& error) {
    return Json::Object{{"error", std::string(error.what())}};
  }
}

}  // namespace
}  // namespace kedge

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << kedge::answer(line).dump() << std::endl;
  return 0;
}
