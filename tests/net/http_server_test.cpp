#include "kedge/net/http_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/raw_peer.h"

namespace kedge {
namespace {

using testing::error_of;

using std::chrono::milliseconds;
using std::chrono::seconds;

void echo(const HttpRequest& request, const HttpReply& reply) {
  reply.send({200, {{"Content-Type", "text/plain"}}, request.method + " " + request.target + " " + request.body});
}

std::string body_of(const std::string& answer) { return answer.substr(std::min(answer.size(), answer.find("\r\n\r\n") + 4)); }

TEST(HttpServer, KeepsAConnectionForManyRequests) {
  HttpServer server({}, echo);
  RawPeer peer(server.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peer.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"));
    EXPECT_EQ(body_of(peer.read_until("hello")), "POST /a hello");
  }
  EXPECT_EQ(server.num_connections(), 1);
  ASSERT_TRUE(peer.send("GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(body_of(peer.read_all()), "GET /b ");
  EXPECT_TRUE(peer.closed());
}

TEST(HttpServer, AnswersRequestsThatCameTogetherOneAfterTheOther) {
  HttpServer server({}, echo);
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const std::string both = peer.read_all();
  EXPECT_LT(both.find("GET /1"), both.find("GET /2"));
  EXPECT_NE(both.find("GET /2"), std::string::npos);
}

TEST(HttpServer, ReadsChunkedBodiesAndNoneAtAll) {
  HttpServer server({}, echo);
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"));
  EXPECT_EQ(body_of(peer.read_until("defg")), "POST /c abcdefg");
  ASSERT_TRUE(peer.send("POST /v2/repository/index HTTP/1.1\r\nHost: x\r\n\r\n"));  // neither length nor chunks: an empty body
  EXPECT_EQ(body_of(peer.read_until("index ")), "POST /v2/repository/index ");
}

TEST(HttpServer, TellsAPeerThatAsksFirstToGoOn) {
  HttpServer server({}, echo);
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(peer.send("ok"));
  EXPECT_EQ(body_of(peer.read_until("ok")), "POST /e ok");
}

TEST(HttpServer, LongBodiesComeWhole) {
  HttpServer server({}, [](const HttpRequest& request, const HttpReply& reply) {
    reply.send({200, {}, std::to_string(std::hash<std::string>{}(request.body)) + "!"});
  });
  std::string body(5 * (1 << 20) + 17, ' ');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + (i * 7919) % 26);
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send(str("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n", body)));
  EXPECT_EQ(body_of(peer.read_until("!")), std::to_string(std::hash<std::string>{}(body)) + "!");
}

TEST(HttpServer, WhatIsNotARequestIsRefused) {
  HttpServer server({.max_header_bytes = 1024, .max_body_bytes = 100}, echo);
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"hello\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nbad header\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n", "431"},
  };
  for (const auto& [bytes, status] : bad) {
    RawPeer peer(server.port());
    ASSERT_TRUE(peer.send(bytes));
    const std::string answer = peer.read_all();
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 " + status) << bytes.substr(0, 60);
    EXPECT_EQ(body_of(answer).substr(0, 10), "{\"error\":\"") << answer;
  }
  RawPeer good(server.port());
  ASSERT_TRUE(good.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(body_of(good.read_until("GET / ")), "GET / ");
}

TEST(HttpServer, APeerThatIsRefusedWhileItSendsReadsTheAnswer) {
  HttpServer server({.max_body_bytes = 1000}, echo);
  RawPeer peer(server.port());
  const std::string body(8 << 20, 'x');
  peer.send(str("POST / HTTP/1.1\r\nContent-Length: ", body.size(), "\r\n\r\n"));
  peer.send(body);
  EXPECT_EQ(peer.read_all().substr(0, 12), "HTTP/1.1 413");
}

TEST(HttpServer, HeadIsAnsweredWithTheLengthAloneOnAKeptConnection) {
  HttpServer server({}, [](const HttpRequest&, const HttpReply& reply) { reply.send({200, {}, "hello"}); });
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const std::string both = peer.read_all();
  const size_t end = both.find("\r\n\r\n") + 4;
  EXPECT_NE(both.substr(0, end).find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(both.substr(end).starts_with("HTTP/1.1 200")) << both;
  EXPECT_TRUE(both.ends_with("hello"));
}

TEST(HttpServer, ManyBodiesAtOnceHaveABudget) {
  std::mutex mutex;
  std::vector<HttpReply> waiting;
  std::condition_variable came;
  HttpServer server({.max_body_bytes = 1000, .max_held_bytes = 1500}, [&](const HttpRequest& request, const HttpReply& reply) {
    if (request.target == "/more") reply.hold(501);
    const std::lock_guard lock(mutex);
    if (request.target == "/wait") {
      waiting.push_back(reply);
      came.notify_all();
    } else {
      reply.send({200, {}, "done"});
    }
  });
  const auto post = [](const char* target) {
    return "POST " + std::string(target) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'a');
  };
  RawPeer first(server.port()), second(server.port()), third(server.port());
  ASSERT_TRUE(first.send(post("/wait")));
  {
    std::unique_lock lock(mutex);
    came.wait(lock, [&] { return !waiting.empty(); });
  }
  (void)second.send(post("/now"));
  const std::string refused = second.read_all();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 503")) << refused;
  EXPECT_NE(refused.find("Retry-After: 1\r\n"), std::string::npos);
  ASSERT_TRUE(third.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n"));  // takes none of it
  EXPECT_EQ(body_of(third.read_until("done")), "done");
  {
    const std::lock_guard lock(mutex);
    waiting[0].send({200, {}, "done"});
    waiting.clear();
  }
  EXPECT_EQ(body_of(first.read_until("done")), "done");
  ASSERT_TRUE(first.send(post("/now")));
  EXPECT_EQ(body_of(first.read_until("done")), "done");
  ASSERT_TRUE(first.send(post("/more")));  // what is made of a body counts too
  EXPECT_TRUE(first.read_until("others are waiting").starts_with("HTTP/1.1 503"));
}

TEST(HttpServer, StrangersHaveFewPlacesAndLittleTime) {
  HttpServer server({.max_strangers = 2}, echo);
  RawPeer known(server.port());
  ASSERT_TRUE(known.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(body_of(known.read_until("/1 ")), "GET /1 ");
  RawPeer silent(server.port()), silent_too(server.port()), late(server.port());
  EXPECT_TRUE(late.read_all().starts_with("HTTP/1.1 503"));
  ASSERT_TRUE(known.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(body_of(known.read_until("/2 ")), "GET /2 ");

  HttpServer hasty({.stranger_time = milliseconds(50)}, echo);
  RawPeer slow(hasty.port());
  EXPECT_EQ(slow.read_all(), "");
  EXPECT_TRUE(slow.closed());
}

TEST(HttpServer, AnExceptionInTheGateCostsOneConnection) {
  HttpServer server({}, echo, [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.target == "/bad") throw std::bad_alloc();
    return std::nullopt;
  });
  RawPeer bad(server.port()), good(server.port());
  ASSERT_TRUE(bad.send("GET /bad HTTP/1.1\r\nHost: x\r\n\r\n"));
  (void)bad.read_all();
  EXPECT_TRUE(bad.closed());
  ASSERT_TRUE(good.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_EQ(body_of(good.read_until("/1 ")), "GET /1 ");
}

TEST(HttpServer, SlowAndSilentPeersAreCutOff) {
  HttpServer server({.idle_time = milliseconds(150), .header_time = milliseconds(150), .stall_time = milliseconds(150)}, echo);
  for (const char* begin : {"", "GET / HT", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"}) {
    RawPeer peer(server.port());
    peer.send(begin);
    peer.read_all();
    EXPECT_TRUE(peer.closed()) << begin;
  }
}

TEST(HttpServer, AHeaderThatDripsInEndsInTime) {
  HttpServer server({.header_time = milliseconds(300)}, echo);
  RawPeer peer(server.port());
  const std::string request = "GET / HTTP/1.1\r\nX: " + std::string(1000, 'x');
  bool sent = true;
  for (size_t i = 0; i < 100 && sent; ++i) {
    sent = peer.send(request.substr(i, 1));
    std::this_thread::sleep_for(milliseconds(20));
  }
  peer.read_all();
  EXPECT_TRUE(peer.closed());
}

TEST(HttpServer, AnAnswerMayTakeLongerThanAnyLimit) {
  std::thread late;
  HttpServer server({.idle_time = milliseconds(50), .header_time = milliseconds(50), .stall_time = milliseconds(50)},
                    [&](const HttpRequest&, const HttpReply& reply) {
                      late = std::thread([reply] {
                        std::this_thread::sleep_for(milliseconds(500));
                        reply.send({200, {}, "late"});
                      });
                    });
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(body_of(peer.read_until("late")), "late");
  late.join();
}

// Of each of many: a thread of the server may be woken for a request that another one has read, and must look again.
TEST(HttpServer, TheHandlerLearnsThatItsPeerIsGone) {
  std::mutex mutex;
  std::vector<HttpReply> asked;
  const auto num_asked = [&] {
    const std::lock_guard lock(mutex);
    return asked.size();
  };
  HttpServer server({}, [&](const HttpRequest&, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    asked.push_back(reply);
  });
  constexpr size_t kPeers = 300;
  for (size_t i = 0; i < kPeers; ++i) {
    RawPeer peer(server.port());
    EXPECT_TRUE(peer.send("GET / HTTP/1.1\r\n\r\n"));
    while (num_asked() == i) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  const auto num_gone = [&] { return std::count_if(asked.begin(), asked.end(), [](const HttpReply& reply) { return reply.is_gone(); }); };
  for (int i = 0; i < 500 && num_gone() < std::ssize(asked); ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(num_gone(), std::ssize(asked));
  asked.clear();  // before the server they belong to
}

TEST(HttpServer, ErrorsOfTheHandlerAreAnswers) {
  HttpServer server({}, [](const HttpRequest& request, const HttpReply& reply) {
    if (request.target == "/bad") throw RequestError(400, "bad");
    if (request.target == "/broken") throw std::runtime_error("broken");
    if (request.target == "/twice") {
      reply.send({200, {}, "one"});
      reply.send({200, {}, "two"});
    }
  });
  RawPeer peer(server.port());
  const auto ask = [&](const std::string& target) {
    peer.send("GET " + target + " HTTP/1.1\r\n\r\n");
    return peer.read_until("\r\n\r\n") + peer.read_until("\r\n\r\n", 50);
  };
  EXPECT_EQ(ask("/bad").substr(0, 12), "HTTP/1.1 400");
  EXPECT_EQ(ask("/broken").substr(0, 12), "HTTP/1.1 500");
  EXPECT_EQ(ask("/silent").substr(0, 12), "HTTP/1.1 500");  // every reply was dropped
  EXPECT_EQ(body_of(ask("/twice")), "one");
}

TEST(HttpServer, TheGateRefusesBeforeTheBodyIsRead) {
  std::atomic<int> handled = 0;
  HttpServer server(
      {}, [&](const HttpRequest& request, const HttpReply& reply) { ++handled, echo(request, reply); },
      [](const HttpRequest& head) -> std::optional<HttpResponse> {
        if (find_header(head.headers, "Authorization")) return std::nullopt;
        return error_response(401, "unauthorized");
      });
  RawPeer peer(server.port());
  ASSERT_TRUE(peer.send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"));
  EXPECT_EQ(peer.read_all().substr(0, 12), "HTTP/1.1 401");
  EXPECT_EQ(handled, 0);
}

TEST(HttpServer, OneConnectionTooManyIsTold) {
  HttpServer server({.max_connections = 2}, echo);
  RawPeer first(server.port()), second(server.port());
  first.send("GET / HTTP/1.1\r\n\r\n");
  second.send("GET / HTTP/1.1\r\n\r\n");
  first.read_until("GET / ");
  second.read_until("GET / ");
  RawPeer third(server.port());
  EXPECT_EQ(third.read_all().substr(0, 12), "HTTP/1.1 503");
  EXPECT_EQ(server.num_refused(), 1);
  first.close();
  for (int i = 0; i < 200 && server.num_connections() > 1; ++i) std::this_thread::sleep_for(milliseconds(10));
  RawPeer fourth(server.port());
  fourth.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(fourth.read_until("GET / ").substr(0, 12), "HTTP/1.1 200");
}

TEST(HttpServer, StoppingLetsAnswersOutAndNobodyIn) {
  std::promise<HttpReply> asked;
  HttpServer server({.num_threads = 1}, [&](const HttpRequest&, const HttpReply& reply) { asked.set_value(reply); });
  RawPeer idle(server.port()), busy(server.port());
  busy.send("GET / HTTP/1.1\r\n\r\n");
  while (server.num_connections() < 2) std::this_thread::sleep_for(milliseconds(5));
  std::optional<HttpReply> waiting = asked.get_future().get();
  std::thread later([&] {
    idle.read_all();  // until it is closed: stopping has begun
    waiting->send({200, {}, "done"});
    waiting.reset();
  });
  server.stop(seconds(10));
  later.join();
  EXPECT_EQ(body_of(busy.read_all()), "done");
  EXPECT_TRUE(idle.closed());
  EXPECT_FALSE(RawPeer(server.port()).connected());
}

TEST(HttpServer, AnAddressThatIsTakenIsNamed) {
  HttpServer server({}, echo);
  const std::string error = error_of<Error>([&] { HttpServer second({.port = server.port()}, echo); });
  EXPECT_EQ(error, str("cannot listen on 127.0.0.1:", server.port(), ": Address already in use"));
  EXPECT_EQ(error_of<UsageError>([&] { HttpServer other({.ip = "rm01"}, echo); }), "cannot listen on rm01: expected an IP address");
}

}  // namespace
}  // namespace kedge
