#include "kedge/metrics/trackers/mlflow_address.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr const char* kUriKey = "exp_manager.mlflow_logger_kwargs.tracking_uri";
constexpr size_t kLongestName = 250;

std::string variable_or_empty(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8U | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kLetters[group >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

}  // namespace

HttpAddress mlflow_address(const MlflowConfig& config) {
  const std::string variable = variable_or_empty("MLFLOW_TRACKING_URI");
  const std::string uri = config.tracking_uri.value_or(variable);
  const std::string origin = config.tracking_uri ? kUriKey : "MLFLOW_TRACKING_URI";
  check(!uri.empty(), kUriKey,
        ": create_mlflow_logger requires the address of an MLflow server here or in the variable MLFLOW_TRACKING_URI, ",
        "for example http://localhost:5000");
  check(!uri.starts_with("https://"), origin, ": ", uri,
        ": https is not supported. Let a proxy on this machine (stunnel, nginx) carry it, ", "and give its http:// address");
  check(uri.starts_with("http://"), origin, ": ", uri,
        ": expected the http:// address of an MLflow server. For files on this machine, start one: ",
        "mlflow server --backend-store-uri sqlite:///mlflow.db --port 5000, and give http://localhost:5000");
  check(uri.find('@') == std::string::npos, origin,
        ": no user and password in the address; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD");
  std::optional<HttpAddress> address = read_http_address(uri);
  check(address.has_value(), origin, ": ", uri, ": expected http://HOST:PORT");
  while (address->target.ends_with('/')) address->target.pop_back();
  return *address;
}

std::string mlflow_authorization() {
  if (const std::string token = variable_or_empty("MLFLOW_TRACKING_TOKEN"); !token.empty()) return "Bearer " + token;
  const std::string user = variable_or_empty("MLFLOW_TRACKING_USERNAME");
  return user.empty() ? "" : "Basic " + base64(user + ":" + variable_or_empty("MLFLOW_TRACKING_PASSWORD"));
}

std::string mlflow_name(std::string_view name) {
  std::string taken(name.substr(0, kLongestName));
  for (char& letter : taken)
    if (std::isalnum(static_cast<uint8_t>(letter)) == 0 && std::string_view("_-. :/").find(letter) == std::string_view::npos) letter = '_';
  // MLflow rejects a name that is not a normalised path: a//b, ./a, a/.
  size_t begin = 0;
  while (begin <= taken.size()) {
    const size_t end = std::min(taken.find('/', begin), taken.size());
    const std::string part = taken.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      taken.replace(begin, part.size(), "_");
      begin += 2;
    } else {
      begin = end + 1;
    }
  }
  return taken;
}

}  // namespace kedge
