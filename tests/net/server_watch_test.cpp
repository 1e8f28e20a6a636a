#include "kedge/net/server_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <string_view>
#include <thread>

#include "kedge/net/http_server.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using std::chrono::milliseconds;
using testing::error_of;

int64_t unused_port() {
  return HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
}

WatchOptions watch_options(int64_t port) {
  return {.label = "reward server",
          .port = port,
          .keys = "remote_rm.reward_model.ip and .port",
          .period = milliseconds(30),
          .patience = milliseconds(300)};
}

std::unique_ptr<HttpServer> health_server(int64_t port, const std::atomic<int>& status) {
  return std::make_unique<HttpServer>(HttpServerOptions{.port = port}, [&](const HttpRequest& request, const HttpReply& reply) {
    reply.send({request.target == "/v2/health/ready" ? status.load() : 404, {}, ""});
  });
}

TEST(ServerWatch, WaitsForAServerThatComesLater) {
  const int64_t port = unused_port();
  ServerWatch watch(watch_options(port), [] {});
  const ServerWatch::Interest interest(watch);
  auto up = std::async(std::launch::async, [&] { watch.wait_until_up(); });
  EXPECT_EQ(up.wait_for(milliseconds(150)), std::future_status::timeout);
  std::atomic<int> status = 400;
  const auto server = health_server(port, status);
  EXPECT_EQ(up.wait_for(milliseconds(150)), std::future_status::timeout);  // there, but not ready
  status = 200;
  up.get();
}

TEST(ServerWatch, AServerThatNeverComesIsNamedWithItsKeys) {
  const int64_t port = unused_port();
  WatchOptions options = watch_options(port);
  options.start_limit = milliseconds(200);
  ServerWatch watch(options, [] {});
  const ServerWatch::Interest interest(watch);
  EXPECT_EQ(error_of<Error>([&] { watch.wait_until_up(); }),
            str("the reward server 127.0.0.1:", port, " did not become ready within 0 s (127.0.0.1:", port,
                ": Connection refused); its address is set by remote_rm.reward_model.ip and .port"));
}

TEST(ServerWatch, NoticesAServerThatGoesAndThatItIsBack) {
  const int64_t port = unused_port();
  std::atomic<int> status = 200, num_gone = 0;
  auto server = health_server(port, status);
  ServerWatch watch(watch_options(port), [&] { ++num_gone; });
  const ServerWatch::Interest interest(watch);
  watch.wait_until_up();
  EXPECT_EQ(num_gone, 0);
  server.reset();
  while (num_gone == 0) std::this_thread::yield();
  auto up = std::async(std::launch::async, [&] { watch.wait_until_up(); });
  EXPECT_EQ(up.wait_for(milliseconds(100)), std::future_status::timeout);
  server = health_server(port, status);
  up.get();
}

TEST(ServerWatch, AServerThatOnlyIsNotReadyHasNotLostItsCalls) {
  const int64_t port = unused_port();
  std::atomic<int> status = 200, num_gone = 0;
  const auto server = health_server(port, status);
  ServerWatch watch(watch_options(port), [&] { ++num_gone; });
  const ServerWatch::Interest interest(watch);
  watch.wait_until_up();
  status = 400;
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(num_gone, 0);
}

TEST(ServerWatch, AServerThatFallsSilentIsGone) {
  const int64_t port = unused_port();
  std::atomic<bool> silent = false;
  std::mutex mutex;
  std::vector<HttpReply> unanswered;
  HttpServer server({.port = port}, [&](const HttpRequest&, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    if (silent) {
      unanswered.push_back(reply);
    } else {
      reply.send({200, {}, ""});
    }
  });
  std::atomic<int> num_gone = 0;
  {
    ServerWatch watch(watch_options(port), [&] { ++num_gone; });
    const ServerWatch::Interest interest(watch);
    watch.wait_until_up();
    silent = true;
    while (num_gone == 0) std::this_thread::yield();
  }
  const std::lock_guard lock(mutex);
  unanswered.clear();
}

// Answers whatever comes over the one connection it takes, as a server does that ends but is not done yet.
class OneConnectionServer {
 public:
  OneConnectionServer() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listening_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { answer(); });
  }
  ~OneConnectionServer() { thread_.join(); }
  OneConnectionServer(const OneConnectionServer&) = delete;
  OneConnectionServer& operator=(const OneConnectionServer&) = delete;

  [[nodiscard]] int64_t port() const { return port_; }

 private:
  void answer() {
    const int connection = accept(listening_, nullptr, nullptr);
    close(listening_);
    constexpr std::string_view kReady = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    char question[4096];  // they are short, and come one at a time
    while (recv(connection, question, sizeof question, 0) > 0) (void)send(connection, kReady.data(), kReady.size(), MSG_NOSIGNAL);
    close(connection);
  }

  int listening_;
  int64_t port_ = 0;
  std::thread thread_;
};

TEST(ServerWatch, AServerThatTakesNoNewConnectionsIsGone) {
  const OneConnectionServer server;
  std::atomic<int> num_gone = 0;
  ServerWatch watch(watch_options(server.port()), [&] { ++num_gone; });
  const ServerWatch::Interest interest(watch);
  watch.wait_until_up();
  watch.suspect("a call was refused");
  while (num_gone == 0) std::this_thread::yield();
  auto up = std::async(std::launch::async, [&] { return error_of<Error>([&] { watch.wait_until_up(); }); });
  EXPECT_EQ(up.wait_for(milliseconds(100)), std::future_status::timeout);
  watch.stop();
  EXPECT_NE(up.get().find("was cancelled"), std::string::npos);
}

TEST(ServerWatch, AServerThatWantsAnotherTokenIsNotWaitedFor) {
  HttpServer server({}, [](const HttpRequest& request, const HttpReply& reply) {
    reply.send({find_header(request.headers, "Authorization") == "Bearer right" ? 200 : 401, {}, ""});
  });
  for (const auto& [token, error] :
       {std::pair{std::optional<std::string>{}, " requires a token"}, {std::optional<std::string>("wrong"), " requires another token"}}) {
    WatchOptions options = watch_options(server.port());
    options.token = token;
    ServerWatch watch(options, [] {});
    const ServerWatch::Interest interest(watch);
    EXPECT_EQ(error_of<UsageError>([&] { watch.wait_until_up(); }), "the " + watch.name() + error);
  }
  WatchOptions options = watch_options(server.port());
  options.token = "right";
  ServerWatch watch(options, [] {});
  const ServerWatch::Interest interest(watch);
  watch.wait_until_up();
}

TEST(ServerWatch, ASignalEndsTheWaitForAServerThatIsAway) {
  const int64_t port = unused_port();
  std::atomic<int> signal = 0, status = 200, num_gone = 0;
  WatchOptions options = watch_options(port);
  options.stop = [&] { return signal == 0 ? std::nullopt : std::optional<int>(signal); };
  ServerWatch watch(options, [&] { ++num_gone; });
  const ServerWatch::Interest interest(watch);
  const auto wait = [&] { return error_of<Interrupted>([&] { watch.wait_until_up(); }); };
  const std::string text = str("SIGTERM received while the ", watch.name(), " (127.0.0.1:", port, ": Connection refused) was unavailable");
  auto up = std::async(std::launch::async, wait);
  EXPECT_EQ(up.wait_for(milliseconds(150)), std::future_status::timeout);
  signal = SIGTERM;
  EXPECT_EQ(up.get(), text) << "at the start";
  signal = 0;
  auto server = health_server(port, status);
  watch.wait_until_up();
  server.reset();
  while (num_gone == 0) std::this_thread::yield();
  signal = SIGTERM;
  EXPECT_EQ(wait(), text) << "later";
}

TEST(ServerWatch, AServerThatIsOnlySuspectedIsAskedBeforeASignalCounts) {
  const int64_t port = unused_port();
  std::atomic<bool> is_silent = false;
  HttpServer server({.port = port}, [&](const HttpRequest&, const HttpReply& reply) {
    while (is_silent) std::this_thread::yield();
    reply.send({200, {}, ""});
  });
  WatchOptions options = watch_options(port);
  options.patience = std::chrono::seconds(60);
  options.stop = [] { return std::optional<int>(SIGTERM); };
  ServerWatch watch(options, [] {});
  const ServerWatch::Interest interest(watch);
  watch.wait_until_up();
  is_silent = true;
  watch.suspect("a call was lost");
  auto up = std::async(std::launch::async, [&] { watch.wait_until_up(); });
  EXPECT_EQ(up.wait_for(milliseconds(300)), std::future_status::timeout) << "it may be at work";
  is_silent = false;
  up.get();
}

TEST(ServerWatch, WhoWaitsWhenItStopsIsTold) {
  ServerWatch watch(watch_options(unused_port()), [] {});
  const ServerWatch::Interest interest(watch);
  auto up = std::async(std::launch::async, [&] { return error_of<Error>([&] { watch.wait_until_up(); }); });
  std::this_thread::sleep_for(milliseconds(50));
  watch.stop();
  EXPECT_EQ(up.get(), str("the call to the ", watch.name(), " was cancelled"));
}

}  // namespace
}  // namespace kedge
