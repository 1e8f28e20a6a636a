#include "cli/dashboard/dashboard_api.h"

#include <algorithm>
#include <array>

#include "kedge/core/error.h"
#include "kedge/core/version.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/own_host.h"
#include "kedge/net/request_error.h"

#include "cli/dashboard/dashboard_answers.h"
#include "cli/dashboard/dashboard_numbers.h"
#include "cli/dashboard/request_query.h"
#include "cli/dashboard/web_files.h"

namespace kedge::cli {
namespace {

constexpr std::chrono::milliseconds kFreshEnough{500};  // files are not checked more often

// Only our own files are loaded, the page cannot be framed, and other pages cannot read the responses.
HttpHeaders headers_for(std::string_view type) {
  return {{"Content-Type", std::string(type)},
          {"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
           "form-action 'none'; frame-ancestors 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

HttpResponse refused(int status, const std::string& text) {
  HttpResponse response = error_response(status, text);
  response.headers = headers_for("application/json");
  return response;
}

template <typename E>
E enum_of(const RequestQuery& query, std::string_view name, E usual) {
  const std::string value = query.text(name);
  if (value.empty()) return usual;
  for (const auto& known : enum_names(usual))
    if (known.name == value) return known.value;
  throw RequestError(400, str(name, ": there is no \"", value, "\""));
}

template <typename Query>
void read_list(const RequestQuery& from, Query& to) {
  to.key = enum_of(from, "sort", to.key);
  to.worst = from.flag("worst");
  to.search = from.text("search");
  to.offset = from.integer("offset", {0, 1'000'000'000, 0});
  to.limit = from.integer("limit", {1, 200, 20});
}

const DashboardRun& run_of(const DashboardRuns& runs, const RequestQuery& query, const char* name = "run") {
  const std::optional<int64_t> id = query.count(name);
  check_request(id.has_value(), name, ": which run?");
  const DashboardRun* run = runs.find(*id);
  if (run == nullptr) throw RequestError(404, str(name, ": no run ", *id));
  return *run;
}

RunList list_of(const DashboardRuns& runs, const RequestQuery& query) {
  RunList list;
  for (const int64_t id : query.counts("runs")) {
    const DashboardRun* run = runs.find(id);
    if (run == nullptr) throw RequestError(404, str("runs: no run ", id));
    list.push_back(run);
  }
  if (query.find("runs") == nullptr)
    for (const auto& run : runs.all()) list.push_back(run.get());
  return list;
}

Json runs_json(const DashboardRuns& runs) {
  Json::Array all;
  for (const auto& run : runs.all()) all.push_back(run->summary());
  return Json::Object{{"program", str("kedge ", version())}, {"runs", std::move(all)}};
}

Json servers_json(const DashboardRuns& runs, HealthPoller& poller, bool asks_other_machines) {
  Json::Array all;
  for (const auto& run : runs.all())
    for (const RunServer& server : servers_of(run->settings(), run->on_disk().algorithm, run->on_disk().started_in)) {
      const std::string why_not = why_not_ask(server, run->folder(), asks_other_machines);
      const ServerHealth health = why_not.empty() ? poller.look(server) : ServerHealth{.text = why_not};
      Json::Array numbers;
      for (const ServerNumber& number : health.numbers)
        numbers.push_back(Json::Object{{"name", number.name}, {"labels", number.labels}, {"value", number.value}});
      all.push_back(Json::Object{{"run", run->id()},
                                 {"label", server.label},
                                 {"address", server.address()},
                                 {"state", name_of(health.state)},
                                 {"text", health.text},
                                 {"numbers", std::move(numbers)}});
    }
  return Json::Object{{"servers", std::move(all)}};
}

Json answers_for(const DashboardRuns& runs, const RequestQuery& query) {
  AnswerQuery wanted;
  read_list(query, wanted);
  return answers_json(run_of(runs, query).folder(), query.count("step"), wanted);
}

Json pairs_for(const DashboardRuns& runs, const RequestQuery& query) {
  PairQuery wanted;
  read_list(query, wanted);
  wanted.step = query.count("step");
  wanted.other_step = query.count("other_step");
  const DashboardRun& run = run_of(runs, query);
  const DashboardRun& other = query.find("other_run") == nullptr ? run : run_of(runs, query, "other_run");
  return pairs_json(run.folder(), other.folder(), wanted);
}

Json samples_for(const DashboardRuns& runs, const RequestQuery& query) {
  SampleQuery wanted;
  read_list(query, wanted);
  wanted.table = query.text("table");
  return samples_json(run_of(runs, query).folder(), wanted);
}

Json series_for(const DashboardRuns& runs, const RequestQuery& query) {
  const auto max_points = static_cast<size_t>(query.integer("points", {10, 10'000, 600}));
  return series_json(run_of(runs, query), !query.flag("more"), {.max_points = max_points, .smoothing = query.share("smooth")});
}

// The endpoints below /api/.
struct Resource {
  std::string_view name;
  Json (*json)(const DashboardRuns& runs, const RequestQuery& query);
};
constexpr std::array kResources = {
    Resource{"runs", [](const DashboardRuns& runs, const RequestQuery&) { return runs_json(runs); }},
    Resource{"charts", [](const DashboardRuns& runs, const RequestQuery& query) { return charts_json(list_of(runs, query)); }},
    Resource{"series", series_for},
    Resource{"timing",
             [](const DashboardRuns& runs, const RequestQuery& query) {
               return timing_json(run_of(runs, query), query.integer("bars", {1, 400, 60}));
             }},
    Resource{"settings", [](const DashboardRuns& runs, const RequestQuery& query) { return settings_json(list_of(runs, query)); }},
    Resource{"notes",
             [](const DashboardRuns& runs, const RequestQuery& query) {
               return Json(Json::Object{{"notes", run_of(runs, query).notes()}});
             }},
    Resource{"records",
             [](const DashboardRuns& runs, const RequestQuery& query) {
               const DashboardRun& run = run_of(runs, query);
               return recorded_json(run.folder(), run.settings());
             }},
    Resource{"answers", answers_for},
    Resource{"pairs", pairs_for},
    Resource{"samples", samples_for},
};

// Cookies of one host are shared by all its ports: each has its own name.
std::string cookie_name(const HttpRequest& request) {
  const std::string host = find_header(request.headers, "Host").value_or("");
  const size_t colon = host.rfind(':');
  return "kedge-" + (colon == std::string::npos ? "80" : host.substr(colon + 1));
}

std::string cookie_of(const HttpRequest& request) {
  const std::string cookies = "; " + find_header(request.headers, "Cookie").value_or(""), start = "; " + cookie_name(request) + "=";
  const size_t at = cookies.find(start);
  if (at == std::string::npos) return "";
  const size_t begin = at + start.size();
  return cookies.substr(begin, cookies.find(';', begin) - begin);
}

std::string token_in_address(const HttpRequest& request) {
  for (const auto& [name, value] : query_parts(request.target))
    if (name == "token") return value;
  return "";
}

}  // namespace

DashboardApi::DashboardApi(const std::vector<std::string>& folders, std::optional<std::string> token, bool asks_other_machines)
    : token_(std::move(token)), asks_other_machines_(asks_other_machines), runs_(folders), refreshed_(std::chrono::steady_clock::now()) {}

bool DashboardApi::is_known(const HttpRequest& request) const {
  return !token_ || is_same_token(cookie_of(request), *token_) || is_same_token(token_in_address(request), *token_) ||
         shows_token(find_header(request.headers, "Authorization").value_or(""), *token_);
}

std::optional<HttpResponse> DashboardApi::refusal(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = refused(405, "the dashboard is read-only: GET and HEAD");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (!is_own_host(find_header(request.headers, "Host").value_or("")))
    return refused(403, "the request names a host that is not this machine; use its address or localhost");
  if (!is_known(request)) return refused(401, "open the address that kedge dashboard printed: its token lets you in");
  return std::nullopt;
}

void DashboardApi::refresh() {
  const auto now = std::chrono::steady_clock::now();
  if (now - refreshed_ < kFreshEnough) return;
  runs_.update();
  refreshed_ = std::chrono::steady_clock::now();
}

size_t DashboardApi::num_runs() {
  const std::lock_guard lock(mutex_);
  return runs_.all().size();
}

Json DashboardApi::json_for(const std::string& what, const std::string& target) {
  const RequestQuery query(target);
  const std::lock_guard lock(mutex_);
  refresh();
  if (what == "servers") return servers_json(runs_, health_, asks_other_machines_);
  for (const Resource& resource : kResources)
    if (resource.name == what) return resource.json(runs_, query);
  throw RequestError(404, "no such address");
}

HttpResponse DashboardApi::answer(const HttpRequest& request) {
  try {
    if (std::optional<HttpResponse> response = refusal(request)) return *response;
  } catch (const RequestError& error) {
    return refused(error.status(), error.what());
  }
  HttpResponse response = answer_known(request);
  if (token_ && is_same_token(token_in_address(request), *token_))
    response.headers.emplace_back("Set-Cookie", str(cookie_name(request), "=", *token_, "; HttpOnly; SameSite=Strict; Path=/"));
  return response;
}

HttpResponse DashboardApi::answer_known(const HttpRequest& request) {
  try {
    const std::vector<std::string> parts = path_parts(request.target);
    if (parts.size() == 2 && parts[0] == "api")
      return {200, headers_for("application/json"), json_for(parts[1], request.target).dump_compact()};
    const std::string path = parts.size() == 1 ? "/" + parts[0] : "";
    for (const WebFile& file : web_files())
      if (path == file.path) return {200, headers_for(file.type), std::string(file.content)};
    if (path == "/chart.js") return {200, headers_for("text/javascript; charset=utf-8"), std::string(chart_js())};
    return refused(404, "no such address");
  } catch (const RequestError& error) {
    return refused(error.status(), error.what());
  } catch (const UsageError& error) {
    return refused(422, error.what());  // a run's files cannot be read
  } catch (const Error& error) {
    return refused(500, error.what());  // it was removed meanwhile
  }
}

}  // namespace kedge::cli
