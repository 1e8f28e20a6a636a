#include "kedge/net/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/http/string_body.hpp>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/net/beast.h"
#include "kedge/net/byte_budget.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kLingerBytes = 64 * kMiB;  // read and dropped from a peer that was refused while it was still sending
constexpr auto kLingerTime = std::chrono::seconds(3);
constexpr const char* kNoRoom = "no memory left for this request: too many others are waiting";

std::string cannot_listen(const HttpServerOptions& options, Failure failure) {
  return str("cannot listen on ", options.ip, ":", options.port, ": ", failure.message());
}

// Takes the address, but does not listen yet.
void bind(tcp::acceptor& acceptor, const HttpServerOptions& options) {
  Failure failure;
  const auto address = asio::ip::make_address(options.ip, failure);
  check(!failure, "cannot listen on ", options.ip, ": expected an IP address");
  const tcp::endpoint place(address, static_cast<uint16_t>(options.port));
  acceptor.open(place.protocol(), failure);
  if (!failure) acceptor.set_option(asio::socket_base::reuse_address(true), failure);
  if (!failure) acceptor.bind(place, failure);
  if (failure) throw Error(cannot_listen(options, failure));
}

}  // namespace

void check_listening(const HttpServerOptions& options) {
  asio::io_context io;
  tcp::acceptor acceptor(io);
  bind(acceptor, options);
}

// What a connection does now decides what stopping the server does to it.
enum class Doing { reading, waiting, writing };

class HttpServer::Listener {
 public:
  class Session;

  Listener(const HttpServerOptions& options, HttpHandler handler, HttpGate gate)
      : options_(options), handler_(std::move(handler)), gate_(std::move(gate)), budget_(options.max_held_bytes), acceptor_(io_) {
    bind(acceptor_, options);
    Failure failure;
    acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    if (failure) throw Error(cannot_listen(options, failure));
    port_ = acceptor_.local_endpoint().port();
  }

  void start() {
    accept();
    for (int i = 0; i < options_.num_threads; ++i) threads_.emplace_back([this] { run(); });
  }

  void stop(std::chrono::milliseconds time);
  void add(Session* session);
  void remove(Session* session);

  [[nodiscard]] const HttpServerOptions& options() const { return options_; }
  [[nodiscard]] const HttpHandler& handler() const { return handler_; }
  [[nodiscard]] const HttpGate& gate() const { return gate_; }
  [[nodiscard]] int64_t port() const { return port_; }
  [[nodiscard]] bool is_stopping() const { return stopping_; }
  [[nodiscard]] ByteBudget& budget() { return budget_; }
  [[nodiscard]] std::atomic<int64_t>& num_strangers() { return num_strangers_; }
  [[nodiscard]] int64_t num_refused() const { return num_refused_; }
  [[nodiscard]] int64_t num_connections() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(sessions_.size());
  }

 private:
  void run();
  void accept();
  void accepted(tcp::socket socket);

  HttpServerOptions options_;
  HttpHandler handler_;
  HttpGate gate_;
  int64_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> num_refused_ = 0, num_strangers_ = 0;
  ByteBudget budget_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Session*> sessions_;
  asio::io_context io_;  // declared before what sessions use: it ends the remaining ones, which deregister here
  tcp::acceptor acceptor_;
  std::vector<std::thread> threads_;
};

class HttpReply::Place {
 public:
  using Answer = std::function<void(HttpResponse response)>;
  Place(Answer answer, ByteBudget& budget, int64_t held) : answer_(std::move(answer)), budget_(budget), held_(held) {}
  ~Place() {
    send(error_response(500, "the server gave no answer"));
    budget_.give_back(held_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void send(HttpResponse response) {
    if (!answered_.exchange(true)) answer_(std::move(response));
  }
  void hold(int64_t bytes) {
    if (!budget_.take(bytes)) throw RequestError(503, kNoRoom);
    held_ += bytes;
  }
  void set_gone() { gone_ = true; }
  [[nodiscard]] bool is_gone() const { return gone_; }

 private:
  Answer answer_;
  ByteBudget& budget_;
  std::atomic<int64_t> held_;
  std::atomic<bool> answered_ = false, gone_ = false;
};

// One connection. Everything but answer() runs on its strand.
class HttpServer::Listener::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Listener* listener, bool is_refused)
      : stream_(std::move(socket)),
        listener_(listener),
        buffer_(2 * kMaxRead),
        is_refused_(is_refused),
        stranger_until_(std::chrono::steady_clock::now() + listener->options().stranger_time) {
    if (is_refused_) return;
    listener_->add(this);
    ++listener_->num_strangers();
  }
  ~Session() {
    listener_->budget().give_back(held_);
    if (!is_refused_ && is_stranger_) --listener_->num_strangers();
    if (!is_refused_) listener_->remove(this);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
      Failure ignored;
      self->stream_.socket().set_option(tcp::no_delay(true), ignored);
      if (self->is_refused_) return self->refuse(error_response(503, "too many connections"));
      self->wait_for_request();
    });
  }

  void stop() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
      if (self->doing_ == Doing::reading) self->close();
    });
  }

  // From any thread.
  void answer(HttpResponse response) {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this(), response = std::move(response)]() mutable {
      self->write(std::move(response), self->parser_->get().keep_alive() && !self->listener_->is_stopping());
    });
  }

 private:
  static constexpr size_t kMaxRead = 128 << 10;

  // Until the first byte of a request, however long that takes.
  void wait_for_request() {
    doing_ = Doing::reading;
    if (listener_->is_stopping()) return close();
    if (buffer_.size() > 0) return read_header();
    set_limit(listener_->options().idle_time);
    stream_.async_read_some(buffer_.prepare(kMaxRead / 8), [self = shared_from_this()](Failure failure, size_t count) {
      if (failure) return self->close();
      self->buffer_.commit(count);
      self->read_header();
    });
  }

  // An unauthenticated peer has a total time limit, whatever it does.
  void set_limit(std::chrono::milliseconds time) {
    const auto at = std::chrono::steady_clock::now() + time;
    stream_.expires_at(is_stranger_ ? std::min(at, stranger_until_) : at);
  }

  void read_header() {
    const HttpServerOptions& options = listener_->options();
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(options.max_header_bytes));
    parser_->body_limit(static_cast<uint64_t>(options.max_body_bytes));
    request_ = {};
    is_head_ = false;
    set_limit(options.header_time);
    http::async_read_header(stream_, buffer_, *parser_, [self = shared_from_this()](Failure failure, size_t) {
      if (failure) return self->fail(failure);
      self->take_header();
    });
  }

  std::optional<HttpResponse> look_at_head() {
    try {
      return listener_->gate()(request_);
    } catch (const RequestError& error) {
      return error_response(error.status(), error.what());
    }
  }

  void take_header() {
    const auto& message = parser_->get();
    is_head_ = message.method() == http::verb::head;
    request_.method = std::string(message.method_string());
    request_.target = std::string(message.target());
    for (const auto& field : message) request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    if (listener_->gate())
      if (std::optional<HttpResponse> answer = look_at_head()) return refuse(std::move(*answer));
    if (std::exchange(is_stranger_, false)) --listener_->num_strangers();
    const std::optional<std::string> expect = find_header(request_.headers, "Expect");
    if (!expect || parser_->is_done()) return read_body();
    if (!beast::iequals(*expect, "100-continue")) return refuse(error_response(417, "cannot meet what Expect asks for"));
    static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kGoOn.data(), kGoOn.size()), [self = shared_from_this()](Failure failure, size_t) {
      if (failure) return self->close();
      self->read_body();
    });
  }

  // A MiB at a time, so that memory grows with what has come and not with what was announced.
  void read_body() {
    if (parser_->is_done()) return handle();
    const auto length = parser_->content_length();
    const size_t have = request_.body.size();
    const size_t step = length ? std::min<size_t>(kMiB, *length - have) : kMaxRead;
    if (!make_room(have, step)) return refuse(no_room());
    auto& body = parser_->get().body();
    body.data = request_.body.data() + have;
    body.size = step;
    body.more = true;
    stream_.expires_after(listener_->options().stall_time);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](Failure failure, size_t) {
      self->request_.body.resize(self->request_.body.size() - self->parser_->get().body().size);
      if (failure && failure != http::error::need_buffer) return self->fail(failure);
      self->read_body();
    });
  }

  bool make_room(size_t have, size_t step) {
    const auto wanted = static_cast<int64_t>(have + step) - held_;
    // One that cannot be read completely is rejected at its start.
    const auto announced = static_cast<int64_t>(parser_->content_length().value_or(0)) - held_;
    if (announced > listener_->budget().left() || !listener_->budget().take(wanted)) return false;
    held_ += wanted;
    try {
      request_.body.resize(have + step);
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  static HttpResponse no_room() {
    HttpResponse response = error_response(503, kNoRoom);
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }

  void handle() {
    doing_ = Doing::waiting;
    stream_.expires_never();
    const auto place =
        std::make_shared<HttpReply::Place>([self = shared_from_this()](HttpResponse response) { self->answer(std::move(response)); },
                                           listener_->budget(), std::exchange(held_, 0));
    watch(place);
    const HttpReply reply(place);
    try {
      listener_->handler()(std::move(request_), reply);
    } catch (const RequestError& error) {
      reply.send(error_response(error.status(), error.what()));
    } catch (const std::exception& error) {
      log_error("a request failed: ", error.what());
      reply.send(error_response(500, error.what()));
    }
  }

  // Notices a peer that closes while its answer is waited for. What it sends meanwhile is the next request, for later.
  void watch(const std::shared_ptr<HttpReply::Place>& place) {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), weak = std::weak_ptr(place)](Failure failure) {
      const auto held = weak.lock();
      if (!held || failure) return;
      char byte = 0;
      const ssize_t found = recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (found > 0) return;
      // It may also have been woken for what was read before.
      if (found < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch(held);
      held->set_gone();
    });
  }

  // A request that could not be read. A silent peer gets no response.
  void fail(Failure failure) {
    if (failure == beast::error::timeout || failure == http::error::end_of_stream || failure == http::error::partial_message ||
        failure.category() != make_error_code(http::error::end_of_stream).category())
      return close();
    const int status = failure == http::error::body_limit ? 413 : failure == http::error::header_limit ? 431 : 400;
    refuse(error_response(status, "not a request that can be read: " + failure.message()));
  }

  void refuse(HttpResponse response) {
    refused_now_ = true;
    request_.body = {};
    listener_->budget().give_back(std::exchange(held_, 0));
    write(std::move(response), false);
  }

  void write(HttpResponse response, bool keep) {
    doing_ = Doing::writing;
    const auto length = response.body.size();
    if (is_head_) response.body.clear();
    const auto num_mib = static_cast<int64_t>(response.body.size()) / kMiB;
    response_.emplace();
    response_->version(11);
    response_->result(static_cast<unsigned>(response.status));
    for (const auto& [name, value] : response.headers) response_->set(name, value);
    response_->body() = std::move(response.body);
    response_->keep_alive(keep);
    response_->content_length(length);  // of HEAD too: what GET would be answered
    stream_.expires_after(listener_->options().stall_time * (1 + num_mib));
    http::async_write(stream_, *response_, [self = shared_from_this(), keep](Failure failure, size_t) {
      self->response_.reset();
      if (failure) return self->close();
      if (keep) return self->wait_for_request();
      if (!self->refused_now_) return self->close();
      // Closing now would reset the connection under an answer that the peer, still sending, has not read.
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, failure);
      self->stream_.expires_after(kLingerTime);
      self->linger(0);
    });
  }

  void linger(int64_t dropped) {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kMaxRead), [self = shared_from_this(), dropped](Failure failure, size_t count) {
      if (failure || dropped > kLingerBytes) return self->close();
      self->linger(dropped + static_cast<int64_t>(count));
    });
  }

  void close() {
    Failure ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  Listener* listener_;
  beast::flat_buffer buffer_;
  bool is_refused_, refused_now_ = false, is_stranger_ = true, is_head_ = false;
  std::chrono::steady_clock::time_point stranger_until_;
  int64_t held_ = 0;  // bytes of the budget, for a body that is being read
  Doing doing_ = Doing::reading;
  std::optional<http::request_parser<http::buffer_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  HttpRequest request_;
};

void HttpReply::send(HttpResponse response) const { place_->send(std::move(response)); }

bool HttpReply::is_gone() const { return place_->is_gone(); }

void HttpReply::hold(int64_t bytes) const { place_->hold(bytes); }

void HttpServer::Listener::run() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {  // costs one connection, whose operations end here
      log_error("a connection was dropped: ", error.what());
    }
  }
}

void HttpServer::Listener::accept() {
  acceptor_.async_accept(asio::make_strand(io_), [this](Failure failure, tcp::socket socket) {
    if (stopping_ || failure == asio::error::operation_aborted) return;
    if (!failure) {
      accepted(std::move(socket));
      return accept();
    }
    // Out of descriptors, most likely: connections that end make room.
    log_warn("cannot accept a connection: ", failure.message());
    auto pause = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(200));
    pause->async_wait([this, pause](Failure) {
      if (!stopping_) accept();
    });
  });
}

void HttpServer::Listener::accepted(tcp::socket socket) {
  const bool is_full = num_connections() >= options_.max_connections || num_strangers_ >= options_.max_strangers;
  if (is_full) ++num_refused_;
  std::make_shared<Session>(std::move(socket), this, is_full)->start();
}

void HttpServer::Listener::add(Session* session) {
  const std::lock_guard lock(mutex_);
  sessions_.insert(session);
}

void HttpServer::Listener::remove(Session* session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session);
  changed_.notify_all();
}

void HttpServer::Listener::stop(std::chrono::milliseconds time) {
  if (threads_.empty()) return;
  stopping_ = true;
  asio::post(io_, [this] {
    Failure ignored;
    acceptor_.close(ignored);
  });
  std::unique_lock lock(mutex_);
  // A session in the set may be about to end: it is stopped only while somebody still holds it.
  std::vector<std::shared_ptr<Session>> alive;
  for (Session* session : sessions_)
    if (auto held = session->weak_from_this().lock()) alive.push_back(std::move(held));
  lock.unlock();
  for (const auto& session : alive) session->stop();
  alive.clear();
  lock.lock();
  changed_.wait_for(lock, time, [&] { return sessions_.empty(); });
  lock.unlock();
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler, HttpGate gate)
    : listener_(std::make_unique<Listener>(options, std::move(handler), std::move(gate))) {
  listener_->start();
}

HttpServer::~HttpServer() { stop(); }

int64_t HttpServer::port() const { return listener_->port(); }

int64_t HttpServer::num_connections() const { return listener_->num_connections(); }

int64_t HttpServer::num_refused() const { return listener_->num_refused(); }

void HttpServer::stop(std::chrono::milliseconds time) { listener_->stop(time); }

}  // namespace kedge
