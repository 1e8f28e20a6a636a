// Bytes as they come to a server over a connection: whatever they are, the server answers or closes, goes on serving others, and keeps
// nothing of connections that are gone.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "kedge/core/error.h"
#include "kedge/net/http_client.h"
#include "kedge/net/model_server.h"

#include "tests/support/toy_models.h"

namespace {

using namespace kedge;

constexpr int kLimitMs = 8000;  // of every wait; below libFuzzer's own, so that the reason is said

// libFuzzer's timer interrupts whatever waits.
template <typename Wait>
auto uninterrupted(Wait&& wait) {
  auto result = wait();
  while (result < 0 && errno == EINTR) result = wait();
  return result;
}

int connect_to(int64_t port) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int failed = uninterrupted([&] { return connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address); });
  ensure(failed == 0 || errno == EISCONN, "the server takes no connection: ", std::strerror(errno));  // by the try that was interrupted
  return peer;
}

// Sends the bytes, says that no more will come, and reads until the server closes.
void send_raw(int64_t port, std::string_view bytes) {
  const int peer = connect_to(port);
  const linger at_once{1, 0};  // or thousands of connections a second would leave none to open
  setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  while (!bytes.empty()) {
    const ssize_t sent = uninterrupted([&] { return send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (sent <= 0) break;  // refused before its end
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  shutdown(peer, SHUT_WR);
  char answer[4096];
  do {
    pollfd wait{peer, POLLIN, 0};
    ensure(uninterrupted([&] { return poll(&wait, 1, kLimitMs); }) == 1, "the server neither answers nor closes");
  } while (uninterrupted([&] { return recv(peer, answer, sizeof answer, 0); }) > 0);
  close(peer);
}

class Target {
 public:
  Target() : server_({.insecure = true, .queue_limit = 8, .max_connections = 16, .max_body = {1 << 16}}, models()) {}

  void send(std::string_view bytes) {
    send_raw(server_.port(), bytes);
    if (++num_inputs_ % 64 == 0) check_serving();
  }

 private:
  // The toys trust their callers; a served model looks first.
  std::vector<ServedModel> models() {
    ServedModel doubling = kedge::testing::doubling_model({}, {2}, 100), counting = counter_.model();
    doubling.check = [](const InferRequest& request) {
      for (const int64_t value : int64_values(request.inputs.front()))
        check_request(value >= INT32_MIN && value <= INT32_MAX, "x: ", value, " is too large to double");
    };
    counting.check = [](const InferRequest& request) {
      const Json* key = request.parameters.find("request_key");
      check_request(key == nullptr || key->is_text(), "parameters: request_key: expected a string");
    };
    return {doubling, counting};
  }

  void check_serving() {
    HttpConnection peer("127.0.0.1", server_.port());
    const HttpTimes times{.answer = std::chrono::milliseconds(kLimitMs)};
    const HttpResponse answer = peer.send(
        {"POST", "/v2/models/double/infer", {}, R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"INT64","data":[3,4]}]})"}, times);
    ensure(answer.status == 200 && answer.body.find("\"data\":[6,8]") != std::string::npos, "a good request got ", answer.status, " ",
           answer.body);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLimitMs);
    while (peer.send({"GET", "/metrics", {}, ""}, times).body.find("kedge_connections 1\n") == std::string::npos) {
      ensure(std::chrono::steady_clock::now() < end, "connections that are gone are still counted");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  kedge::testing::Counter counter_;
  ModelServer server_;
  int64_t num_inputs_ = 0;
};

}  // namespace

// The server's threads allocate and free whenever they like, which libFuzzer takes for a leak after almost every input and then looks for
// it for a second. Memory that is kept shows in the limit of the whole process.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // NOLINT: the name is the sanitizer's

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Target target;
  target.send({reinterpret_cast<const char*>(data), size});
  return 0;
}
