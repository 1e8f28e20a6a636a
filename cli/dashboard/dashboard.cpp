#include <memory>
#include <thread>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/stop.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/http_server.h"
#include "kedge/net/own_host.h"

#include "cli/commands.h"
#include "cli/dashboard/dashboard_api.h"
#include "cli/dashboard/web_files.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct DashboardOptions {
  std::vector<std::string> runs;
  std::string ip = "127.0.0.1";
  std::optional<int64_t> port;
  bool token = true, ask_servers = false;

  void fields(auto&& field) {
    field("runs", runs, "folders of runs, or folders that contain runs, including new ones", required());
    field("ip", ip, "address to listen on; 0.0.0.0: all interfaces");
    field("port", port, "port to listen on; 0: any free port [6006, or the next free one]", at_least(0), at_most(65535));
    field("token", token, "require the token that is part of the printed address; --no-token admits anyone who reaches the port");
    field("ask_servers", ask_servers, "also query servers on other machines, if a run of your own names them");
  }
};

const std::vector<std::string> kDashboardPositionals = {"runs"};
constexpr int64_t kFirstPort = 6006, kNumPorts = 100;

std::unique_ptr<HttpServer> listen(const DashboardOptions& options, DashboardApi& api) {
  HttpServerOptions server{.ip = options.ip == "localhost" ? "127.0.0.1" : options.ip,
                           .port = options.port.value_or(kFirstPort),
                           .max_connections = 64,
                           .max_body_bytes = 1 << 10};
  const HttpHandler handler = [&api](const HttpRequest& request, const HttpReply& reply) { reply.send(api.answer(request)); };
  while (true) {
    try {
      return std::make_unique<HttpServer>(server, handler, [&api](const HttpRequest& head) { return api.refusal(head); });
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      if (options.port || server.port + 1 == kFirstPort + kNumPorts)
        throw Error(str(error.what(), "; --port sets another port, 0 any that is free"));
      server.port += 1;  // in use, perhaps by another dashboard
    }
  }
}

std::string url_of(const DashboardOptions& options, int64_t port) {
  const std::string host = options.ip == "0.0.0.0"                     ? "localhost"
                           : options.ip.find(':') != std::string::npos ? str("[", options.ip, "]")
                                                                       : options.ip;
  return str("http://", host, ":", port, "/");
}

}  // namespace

std::string dashboard_flags() { return options_help<DashboardOptions>(kDashboardPositionals); }

int run_dashboard(const Arguments& arguments) {
  const auto options = parse_options<DashboardOptions>(arguments, kDashboardPositionals);
  check(!options.runs.empty(), "kedge dashboard: which runs? Name their folders");
  static_cast<void>(chart_js());  // an Error if the program has none
  const StopSignals signals;
  const std::optional<std::string> token = options.token ? std::optional(random_token()) : std::nullopt;
  DashboardApi api(options.runs, token, options.ask_servers);
  const std::unique_ptr<HttpServer> server = listen(options, api);
  if (!is_loopback(options.ip) && !token)
    log_warn("whoever reaches ", options.ip, ":", server->port(), " can read these runs, their prompts and answers included");
  print_text(str(url_of(options, server->port()), token ? "?token=" + *token : "", " shows ", api.num_runs(),
                 api.num_runs() == 1 ? " run" : " runs", "; Ctrl-C ends it\n"));
  while (!signals.received()) std::this_thread::sleep_for(kStopPeriod);
  server->stop(std::chrono::milliseconds(500));
  return kExitOk;
}

}  // namespace kedge::cli
