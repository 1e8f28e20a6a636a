#include "kedge/inspect/server_health.h"

#include <algorithm>
#include <array>

#include "kedge/core/error.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/inspect/run_overview.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/http_client.h"
#include "kedge/net/local_token.h"
#include "kedge/net/own_host.h"

namespace kedge {
namespace {

bool is_true(const Json& settings, std::string_view key) {
  const Json* value = setting(settings, key);
  return value != nullptr && value->is_bool() && value->as_bool(key);
}

bool is_there(const Json& settings, std::string_view key) {
  const Json* value = setting(settings, key);
  return value != nullptr && !value->is_null() && !(value->is_object() && value->as_object(key).empty());
}

std::optional<Path> file_at(const Json& settings, std::string_view key, const Path& started_in) {
  const std::string file = setting_text(settings, key);
  return file.empty() ? std::nullopt : std::optional(started_in / file);
}

Json::Array all_of(const Json* value, const std::string& key) {
  if (value == nullptr || value->is_null()) return {};
  return value->is_array() ? value->as_array(key) : Json::Array{*value};
}

// By `KEY.ip` and `KEY.port`, of which both may be lists.
void add_endpoint(std::vector<RunServer>& servers, const Json& settings, const std::string& key, RunServer server) {
  const Json::Array hosts = all_of(setting(settings, key + ".ip"), key), ports = all_of(setting(settings, key + ".port"), key);
  if (hosts.empty() || ports.empty()) return;
  for (size_t i = 0; i < std::max(hosts.size(), ports.size()); ++i) {
    const Json &host = hosts[std::min(i, hosts.size() - 1)], &port = ports[std::min(i, ports.size() - 1)];
    if (!host.is_text() || !port.is_integer()) continue;
    server.host = host.as_text(key);
    server.port = port.as_integer(key);
    servers.push_back(server);
  }
}

void add_sources(std::vector<RunServer>& servers, const Json& settings, const char* group, const Path& started_in) {
  const Json* sources = setting(settings, group);
  if (sources == nullptr || !sources->is_object()) return;
  for (const auto& [name, source] : sources->as_object(group)) {
    if (setting_text(source, "kind") != "server") continue;
    for (const Json& url : all_of(setting(source, "url"), name)) try {
        const HttpAddress address = parse_http_address(url.as_text(name), name);
        servers.push_back({.label = "reward server " + name,
                           .host = address.host,
                           .port = address.port,
                           .token_file = file_at(source, "token_file", started_in)});
      } catch (const UsageError&) {
        continue;  // no address, nothing to query
      }
  }
}

HttpResponse get(HttpConnection& connection, const RunServer& server, const char* target) {
  HttpRequest request{.target = target};
  if (server.token_file)
    request.headers.emplace_back("Authorization", authorization_of(read_token_file(server.token_file->string(), "token_file")));
  return connection.send(request,
                         {.connect = std::chrono::seconds(2), .stall = std::chrono::seconds(2), .answer = std::chrono::seconds(3)});
}

}  // namespace

std::string RunServer::address() const { return str(host, ":", port); }

std::vector<RunServer> servers_of(const Json& settings, std::string_view algorithm, const Path& started_in) {
  std::vector<RunServer> servers;
  const bool has_sources = is_there(settings, "reward.sources");
  if (algorithm == "ppo" && !is_there(settings, "local_critic")) {
    add_endpoint(servers, settings, "remote_critic_rm.critic",
                 {.label = "critic", .token_file = file_at(settings, "remote_critic_rm.token_file", started_in)});
    if (!has_sources && !is_true(settings, "remote_critic_rm.combine_rm_and_critic_server"))
      add_endpoint(servers, settings, "remote_critic_rm.reward_model", {.label = "reward server"});
  }
  if (algorithm == "reinforce" || algorithm == "grpo" || algorithm == "rloo" || algorithm == "rs") {
    add_endpoint(servers, settings, "remote_rm.reward_model", {.label = "reward server"});
    if (servers.empty() && !has_sources) servers.push_back({.label = "reward server", .host = "localhost", .port = 5555});
  }
  if (algorithm == "serve")
    add_endpoint(servers, settings, "trainer.ppo",
                 {.label = "this critic", .token_file = file_at(settings, "trainer.ppo.token_file", started_in)});
  add_sources(servers, settings, "reward.sources", started_in);
  add_sources(servers, settings, "reward.watch", started_in);
  return servers;
}

std::string why_not_ask(const RunServer& server, const Path& run_folder, bool asks_other_machines) {
  if (!is_own_run(run_folder)) return "not asked: the run belongs to another user";
  if (!asks_other_machines && !is_loopback(server.host))
    return "not asked: it is on another machine; kedge dashboard --ask-servers asks it";
  return "";
}

std::string_view name_of(ServerHealth::State state) {
  static constexpr std::array<std::string_view, 5> kNames = {"unknown", "ready", "not ready", "refuses", "away"};
  return kNames.at(static_cast<size_t>(state));
}

ServerHealth ask_server(const RunServer& server) {
  using State = ServerHealth::State;
  if (server.token_file && is_loopback(server.host) && !is_port_ours(server.port))
    return {State::refuses, "another user listens there; the token is not sent"};
  try {
    HttpConnection connection(server.host, server.port);
    const HttpResponse ready = get(connection, server, "/v2/health/ready");
    if (ready.status == 401 || ready.status == 403) return {State::refuses, "it is up, but requires a token that it was not sent"};
    if (ready.status != 200) return {State::not_ready, str("it returns HTTP ", ready.status, ": it accepts no calls now")};
    ServerHealth health{State::ready, "accepts calls"};
    const HttpResponse metrics = get(connection, server, "/metrics");
    if (metrics.status == 200) health.numbers = read_server_numbers(metrics.body);
    return health;
  } catch (const Error& error) {
    return {State::away, error.what()};
  }
}

ServerHealth HealthPoller::look(const RunServer& server) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[server.address()];
  const bool is_old = !entry.asked || Clock::now() - *entry.asked >= period_;
  if (is_old && !entry.is_asking) {
    entry.is_asking = true;
    worker_.post([this, server] {
      ServerHealth health = ask_server(server);
      const std::lock_guard relock(mutex_);
      entries_[server.address()] = {std::move(health), Clock::now(), false};
    });
  }
  return entry.health;
}

}  // namespace kedge
