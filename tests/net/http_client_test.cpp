#include "kedge/net/http_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "kedge/net/http_server.h"

namespace kedge {
namespace {

using std::chrono::milliseconds;

TEST(HttpConnection, OneConnectionServesManyCalls) {
  HttpServer server({}, [](const HttpRequest& request, const HttpReply& reply) {
    reply.send({200, {{"X-Method", request.method}}, request.target + find_header(request.headers, "X-Sent").value_or("") + request.body});
  });
  HttpConnection connection("localhost", server.port());
  EXPECT_FALSE(connection.is_open());
  const HttpResponse first = connection.send({"GET", "/a", {{"X-Sent", "b"}}, ""});
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "/ab");
  EXPECT_EQ(find_header(first.headers, "x-method"), "GET");
  EXPECT_TRUE(connection.is_open());
  EXPECT_EQ(connection.send({"POST", "/", {}, "body"}).body, "/body");
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpConnection, LongBodiesGoAndComeWhole) {
  HttpServer server({}, [](HttpRequest request, const HttpReply& reply) { reply.send({200, {}, std::move(request.body)}); });
  std::string body(9 * (1 << 20) + 3, ' ');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + (i >> 13));
  HttpConnection connection("127.0.0.1", server.port());
  EXPECT_TRUE(connection.send({"POST", "/", {}, body}).body == body);
}

TEST(HttpConnection, AnyStatusIsAnAnswer) {
  HttpServer server({}, [](const HttpRequest&, const HttpReply& reply) { reply.send({503, {{"Retry-After", "1"}}, "full"}); });
  HttpConnection connection("127.0.0.1", server.port());
  const HttpResponse response = connection.send({});
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, "full");
}

struct Lost {
  std::string text;
  bool sent = false;
};

Lost lost(HttpConnection& connection, const HttpTimes& times = {}) {
  try {
    (void)connection.send({}, times);
  } catch (const ConnectionError& error) {
    return {error.what(), error.sent()};
  }
  return {"an answer", false};
}

TEST(HttpConnection, AServerThatIsNotThereIsNamed) {
  int64_t port = 0;
  {
    port = HttpServer({}, [](const HttpRequest&, const HttpReply&) {}).port();
  }
  HttpConnection connection("127.0.0.1", port);
  const Lost refused = lost(connection);
  EXPECT_EQ(refused.text, str("127.0.0.1:", port, ": Connection refused"));
  EXPECT_FALSE(refused.sent);
  HttpConnection unknown("no-such-host.invalid", 80);
  EXPECT_EQ(lost(unknown).text.substr(0, 25), "no-such-host.invalid:80: ");
}

TEST(HttpConnection, ACallWhoseServerGoesAwayFails) {
  std::promise<HttpReply> asked;
  HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) { asked.set_value(reply); });
  HttpConnection connection("127.0.0.1", server.port());
  const Lost late = lost(connection, {.answer = milliseconds(100)});
  EXPECT_EQ(late.text, str("127.0.0.1:", server.port(), ": no answer in time"));
  EXPECT_TRUE(late.sent);
  EXPECT_FALSE(connection.is_open());
  const HttpReply unsent = asked.get_future().get();  // gone before its server, as it must be
}

TEST(HttpConnection, AnotherThreadEndsACallThatWaits) {
  std::promise<HttpReply> asked;
  std::atomic<bool> came = false;
  std::thread holder([&] {
    const HttpReply reply = asked.get_future().get();
    came = true;
    while (!reply.is_gone()) std::this_thread::sleep_for(milliseconds(5));
  });
  HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) { asked.set_value(reply); });
  HttpConnection connection("127.0.0.1", server.port());
  std::thread other([&] {
    while (!came) std::this_thread::sleep_for(milliseconds(5));
    connection.abort();
  });
  const Lost given_up = lost(connection);
  EXPECT_EQ(given_up.text, str("127.0.0.1:", server.port(), ": the call was cancelled"));
  EXPECT_TRUE(given_up.sent);
  other.join();
  holder.join();
}

}  // namespace
}  // namespace kedge
