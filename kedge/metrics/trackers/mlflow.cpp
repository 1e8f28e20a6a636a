#include "kedge/metrics/trackers/mlflow.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/log.h"
#include "kedge/metrics/jsonl.h"

namespace kedge {
namespace {

constexpr size_t kNumbersOfACall = 1000, kParamsOfACall = 100;  // MLflow's limits
constexpr size_t kLongestParam = 6000;
constexpr const char* kKeyTag = "kedge.tracker";

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<uint8_t>(letter);
    if (std::isalnum(byte) != 0 || std::string_view("-._~").find(letter) != std::string_view::npos) {
      encoded += letter;
    } else {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return encoded;
}

Json pair_json(const std::string& key, const std::string& value) { return Json::Object{{"key", key}, {"value", value}}; }

// Leaves of the tree under their dotted keys.
void add_params(const ConfigNode& node, const std::string& path, Json::Array& params) {
  if (!node.is_map() || node.members.empty()) {
    params.push_back(pair_json(mlflow_name(path), node.shown().substr(0, kLongestParam)));
    return;
  }
  for (const auto& [name, member] : node.members) add_params(member, join_path(path, name), params);
}

const char* mlflow_status(RunOutcome end) {
  switch (end) {
    case RunOutcome::finished:
      return "FINISHED";
    case RunOutcome::failed:
      return "FAILED";
    case RunOutcome::killed:
      return "KILLED";
  }
  return "";
}

}  // namespace

MlflowLink::MlflowLink(MlflowConfig config, Path folder)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      address_(mlflow_address(config_)),
      authorization_(mlflow_authorization()),
      connection_(address_.host, address_.port) {}

MlflowLink::~MlflowLink() = default;

std::string MlflowLink::name() const { return str("MLflow at http://", address_.host, ":", address_.port, address_.target); }

MlflowLink::Answer MlflowLink::call(const std::string& method, const std::string& what, const Json& body) {
  HttpRequest request{.method = method, .target = str(address_.target, "/api/2.0/mlflow/", what), .headers = {}, .body = {}};
  if (method == "POST") {
    request.headers.emplace_back("Content-Type", "application/json");
    request.body = body.dump_compact();
  }
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
  const HttpTimes times{.answer = std::chrono::seconds(30)};
  const auto send_once = [&] {
    if (is_aborted_) throw Error("given up");
    return connection_.send(request, times);
  };
  HttpResponse response;
  const bool may_be_stale = connection_.is_open();
  try {
    response = send_once();
  } catch (const ConnectionError&) {
    if (!may_be_stale) throw;
    response = send_once();  // the server may have closed an idle connection; every call may be repeated
  }
  Answer answer{.status = response.status, .json = {}, .error_code = {}, .error = str("HTTP ", response.status)};
  try {
    answer.json = Json::parse(response.body, what);
  } catch (const UsageError&) {
    if (response.status == 200) throw Error(str(what, ": the answer is not JSON; is this the address of an MLflow server?"));
  }
  if (const Json* code = answer.json.find("error_code"); code != nullptr && code->is_text()) answer.error_code = code->as_text("");
  if (const Json* text = answer.json.find("message"); text != nullptr && text->is_text())
    answer.error += ": " + text->as_text("").substr(0, 300);
  return answer;
}

Json MlflowLink::call_or_throw(const std::string& method, const std::string& what, const Json& body) {
  Answer answer = call(method, what, body);
  if (answer.status != 200) throw Error(str(what.substr(0, what.find('?')), ": ", answer.error));
  return std::move(answer.json);
}

std::string MlflowLink::find_experiment() {
  const std::string wanted = config_.experiment_name.value_or("kedge");
  const std::string by_name = "experiments/get-by-name?experiment_name=" + percent_encoded(wanted);
  Answer answer = call("GET", by_name, {});
  if (answer.error_code == "RESOURCE_DOES_NOT_EXIST" || answer.status == 404) {
    Json body = Json::Object{{"name", wanted}};
    if (config_.artifact_location) body.set("artifact_location", *config_.artifact_location);
    const Answer made = call("POST", "experiments/create", body);
    if (made.status == 200) return made.json.at("experiment_id", "experiments/create").as_text("experiments/create");
    answer = call("GET", by_name, {});  // another process may have created it
  }
  if (answer.status != 200) throw Error(str("experiments/get-by-name: ", answer.error));
  const Json& experiment = answer.json.at("experiment", by_name);
  if (const Json* stage = experiment.find("lifecycle_stage"); stage != nullptr && *stage == Json("deleted"))
    throw Error(str("the experiment \"", wanted, "\" is deleted there; restore it (mlflow experiments restore)"));
  return experiment.at("experiment_id", by_name).as_text(by_name);
}

// A run that was created before, whose id was not recorded. Empty: there is none.
std::string MlflowLink::find_run(const std::string& experiment, const std::string& key) {
  const Json found = call_or_throw(
      "POST", "runs/search",
      Json::Object{{"experiment_ids", Json::Array{experiment}}, {"filter", str("tags.`", kKeyTag, "` = '", key, "'")}, {"max_results", 1}});
  const Json* runs = found.find("runs");
  if (runs == nullptr || runs->as_array("runs").empty()) return "";
  return runs->as_array("runs")[0].at("info", "runs/search").at("run_id", "runs/search").as_text("run_id");
}

std::string MlflowLink::create_run(const std::string& experiment, const std::string& key) {
  const std::string folder_name = std::filesystem::absolute(folder_).lexically_normal().filename().string();
  const std::string run_name = config_.run_name.value_or(folder_name.empty() ? "run" : folder_name);
  Json::Array tags = {pair_json(kKeyTag, key), pair_json("kedge.folder", std::filesystem::absolute(folder_).string()),
                      pair_json("mlflow.source.name", "kedge"), pair_json("mlflow.runName", run_name)};
  if (const char* user = std::getenv("USER"); user != nullptr) tags.push_back(pair_json("mlflow.user", user));
  if (config_.tags)
    for (const auto& [name, value] : *config_.tags) tags.push_back(pair_json(name, value));
  const Json made = call_or_throw("POST", "runs/create",
                                  Json::Object{{"experiment_id", experiment},
                                               {"run_name", run_name},
                                               {"start_time", static_cast<int64_t>(seconds_since_epoch() * 1000)},
                                               {"tags", std::move(tags)}});
  return made.at("run", "runs/create").at("info", "runs/create").at("run_id", "runs/create").as_text("run_id");
}

std::optional<int64_t> MlflowLink::connect(Json& memory, const std::function<void()>& save) {
  if (memory.find("run_id") == nullptr) {
    std::string id = config_.run_id.value_or("");
    if (id.empty()) {
      const std::string experiment = find_experiment();
      const Json* key = memory.find("key");  // set: an earlier attempt was interrupted, perhaps after the server created the run
      if (key != nullptr) {
        id = find_run(experiment, key->as_text("key"));
      } else {
        memory.set("key", random_hex(8));
        save();
      }
      if (id.empty()) id = create_run(experiment, memory.at("key", "key").as_text("key"));
    }
    memory.set("run_id", id);
    save();
  }
  run_id_ = memory.at("run_id", "run_id").as_text("run_id");
  const Answer opened = call("POST", "runs/update", Json::Object{{"run_id", run_id_}, {"status", "RUNNING"}});
  if (opened.error_code == "RESOURCE_DOES_NOT_EXIST")
    throw Error(
        str("has no run ", run_id_, " any more. To send everything as a new one, remove ", (folder_ / "trackers/mlflow.json").string()));
  if (opened.status != 200) throw Error(str("runs/update: ", opened.error));
  if (memory.find("has_params") == nullptr) {
    send_params();
    memory.set("has_params", true);
    save();
  }
  return std::nullopt;
}

// Only for display: a server that rejects them still gets the metrics.
void MlflowLink::send_params() {
  const Path file = folder_ / "config.yaml";
  if (!is_file(file)) return;
  Json::Array params;
  add_params(parse_yaml(read_text(file), file.string()), "", params);
  for (size_t begin = 0; begin < params.size(); begin += kParamsOfACall) {
    const auto first = params.begin() + static_cast<int64_t>(begin);
    const auto last = params.begin() + static_cast<int64_t>(std::min(begin + kParamsOfACall, params.size()));
    const Answer answer = call("POST", "runs/log-batch", Json::Object{{"run_id", run_id_}, {"params", Json::Array(first, last)}});
    if (answer.status >= 400 && answer.status < 500) {
      log_warn(name(), ": does not take the settings as parameters: ", answer.error);
    } else if (answer.status != 200) {
      throw Error(str("runs/log-batch: ", answer.error));
    }
  }
}

void MlflowLink::send(std::span<const TrackerRow> rows) {
  const std::string prefix = config_.prefix.value_or("");
  Json::Array numbers;
  const auto send_numbers = [&] {
    if (!numbers.empty()) call_or_throw("POST", "runs/log-batch", Json::Object{{"run_id", run_id_}, {"metrics", std::move(numbers)}});
    numbers = {};
  };
  for (const TrackerRow& row : rows) {
    for (const auto& [metric, value] : row.numbers) {
      numbers.push_back(Json::Object{{"key", mlflow_name(prefix.empty() ? metric : str(prefix, "-", metric))},
                                     {"value", metric_json(value)},
                                     {"timestamp", row.time_ms},
                                     {"step", row.step}});
      if (numbers.size() == kNumbersOfACall) send_numbers();
    }
  }
  send_numbers();
  if (!rows.empty()) last_kept_ = std::max(last_kept_, rows.back().number);
}

void MlflowLink::finish(RunOutcome end) {
  call_or_throw(
      "POST", "runs/update",
      Json::Object{{"run_id", run_id_}, {"status", mlflow_status(end)}, {"end_time", static_cast<int64_t>(seconds_since_epoch() * 1000)}});
}

void MlflowLink::disconnect() { connection_.close(); }

void MlflowLink::abort(bool on) {
  is_aborted_ = on;
  if (on) connection_.abort();
}

}  // namespace kedge
