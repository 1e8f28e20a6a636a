#include "kedge/net/http_client.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include <boost/beast/http/empty_body.hpp>

#include "kedge/net/beast.h"
#include "kedge/net/bounded_call.h"

namespace kedge {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr size_t kPiece = 1 << 20;

}  // namespace

// Every call runs its own small event loop, which gives it time limits, and lets another thread end it.
class HttpConnection::Parts {
 public:
  Parts(std::string host, int64_t port) : host_(std::move(host)), port_(std::to_string(port)) {}

  HttpResponse send(const HttpRequest& request, const HttpTimes& times) {
    const std::string where = str(host_, ":", port_);
    bool sent = false;
    aborted_ = false;  // an abort of the previous call does not apply to this one
    try {
      if (!stream_.socket().is_open()) connect(times.connect);
      sent = true;
      write(request, times.stall);
      return read(times);
    } catch (const boost::system::system_error& error) {
      close();
      throw ConnectionError(str(where, ": ", text_of(error.code(), sent)), sent);
    }
  }

  void abort() {
    aborted_ = true;
    asio::post(io_, [this] {
      if (aborted_.exchange(false)) stream_.close();
    });
  }

  [[nodiscard]] bool is_open() const { return stream_.socket().is_open(); }

  void close() {
    Failure ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    buffer_.clear();
  }

 private:
  static std::string text_of(Failure failure, bool sent) {
    if (failure == beast::error::timeout) return sent ? "no answer in time" : "no connection in time";
    if (failure == http::error::end_of_stream || failure == http::error::partial_message) return "closed the connection before replying";
    if (failure == asio::error::operation_aborted || failure == asio::error::bad_descriptor) return "the call was cancelled";
    return failure.message();
  }

  // Runs one asynchronous operation to its end; its failure is thrown.
  template <typename Start>
  size_t run(Start&& start) {
    Failure failure = asio::error::operation_aborted;
    size_t count = 0;
    start([&](Failure result, size_t bytes = 0) {
      failure = result;
      count = bytes;
    });
    io_.restart();
    io_.run();
    if (failure) throw boost::system::system_error(failure);
    return count;
  }

  // A name server that does not answer is waited for as long as the host itself would be.
  std::vector<tcp::endpoint> find_host(Milliseconds time) {
    Failure failure;
    const auto number = static_cast<uint16_t>(std::stoul(port_));
    if (const auto address = asio::ip::make_address(host_, failure); !failure) return {tcp::endpoint(address, number)};
    // This machine by definition (RFC 6761), also where neither a name server nor /etc/hosts knows it.
    if (host_ == "localhost")
      return {tcp::endpoint(asio::ip::make_address("::1"), number), tcp::endpoint(asio::ip::make_address("127.0.0.1"), number)};
    const auto found = call_at_most<std::vector<tcp::endpoint>>(
        [host = host_, port = port_] {
          asio::io_context io;
          std::vector<tcp::endpoint> all;
          for (const auto& entry : tcp::resolver(io).resolve(host, port)) all.push_back(entry.endpoint());
          return all;
        },
        time, [this] { return aborted_.load(); });
    if (!found) throw boost::system::system_error(aborted_ ? Failure(asio::error::operation_aborted) : Failure(beast::error::timeout));
    return *found;
  }

  void connect(Milliseconds time) {
    Failure failure;
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<tcp::endpoint> places = find_host(time);
    stream_.expires_at(begin + time);
    run([&](auto done) { stream_.async_connect(places, [done](Failure result, const tcp::endpoint&) mutable { done(result); }); });
    stream_.socket().set_option(tcp::no_delay(true), failure);
    stream_.socket().set_option(asio::socket_base::keep_alive(true), failure);
  }

  void write(const HttpRequest& request, Milliseconds stall) {
    http::request<http::empty_body> head;
    head.version(11);
    head.method_string(request.method);
    head.target(request.target);
    head.set(http::field::host, str(host_, ":", port_));
    for (const auto& [name, value] : request.headers) head.set(name, value);
    if (!request.body.empty() || request.method != "GET") head.content_length(request.body.size());
    stream_.expires_after(stall);
    http::request_serializer<http::empty_body> serializer(head);
    run([&](auto done) { http::async_write_header(stream_, serializer, done); });
    for (size_t at = 0; at < request.body.size(); at += kPiece) {
      stream_.expires_after(stall);
      const auto part = asio::buffer(request.body.data() + at, std::min(kPiece, request.body.size() - at));
      run([&](auto done) { asio::async_write(stream_, part, done); });
    }
  }

  HttpResponse read(const HttpTimes& times) {
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    if (times.answer) {
      stream_.expires_after(*times.answer);
    } else {
      stream_.expires_never();
    }
    run([&](auto done) { http::async_read_header(stream_, buffer_, parser, done); });
    HttpResponse response;
    while (!parser.is_done()) {
      const size_t have = response.body.size();
      const auto length = parser.content_length();
      const size_t step = length ? std::min<size_t>(kPiece, *length - have) : kPiece / 8;
      response.body.resize(have + step);
      auto& body = parser.get().body();
      body.data = response.body.data() + have;
      body.size = step;
      body.more = true;
      stream_.expires_after(times.stall);
      try {
        run([&](auto done) { http::async_read(stream_, buffer_, parser, done); });
      } catch (const boost::system::system_error& error) {
        if (error.code() != http::error::need_buffer) throw;
      }
      response.body.resize(response.body.size() - parser.get().body().size);
    }
    const auto& message = parser.get();
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    if (message.keep_alive()) {
      stream_.expires_never();
    } else {
      close();
    }
    return response;
  }

  std::string host_, port_;
  asio::io_context io_{1};
  beast::tcp_stream stream_{io_};
  beast::flat_buffer buffer_;
  std::atomic<bool> aborted_ = false;
};

HttpConnection::HttpConnection(std::string host, int64_t port) : parts_(std::make_unique<Parts>(std::move(host), port)) {}

HttpConnection::~HttpConnection() = default;

HttpResponse HttpConnection::send(const HttpRequest& request, const HttpTimes& times) { return parts_->send(request, times); }

void HttpConnection::abort() { parts_->abort(); }

bool HttpConnection::is_open() const { return parts_->is_open(); }

void HttpConnection::close() { parts_->close(); }

}  // namespace kedge
