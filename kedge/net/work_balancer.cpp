#include "kedge/net/work_balancer.h"

#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/json.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/http_client.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

constexpr int64_t kMaxBodyBytes = 4 << 10;

}  // namespace

WorkBalancer::WorkBalancer(HttpServerOptions options, std::string token) : token_(std::move(token)) {
  options.max_body_bytes = kMaxBodyBytes;
  options.max_held_bytes = options.max_connections * kMaxBodyBytes;
  const auto gate = [this](const HttpRequest& head) {
    const bool is_known = shows_token(find_header(head.headers, "Authorization").value_or(""), token_);
    return is_known ? std::nullopt : std::optional(error_response(401, "unauthorized"));
  };
  server_ = std::make_unique<HttpServer>(
      options, [this](const HttpRequest& request, const HttpReply& reply) { handle(request, reply); }, gate);
}

void WorkBalancer::fill(std::vector<int64_t> indices) {
  const std::lock_guard lock(mutex_);
  left_.assign(indices.begin(), indices.end());
}

std::vector<int64_t> WorkBalancer::take(int64_t at_most) {
  const std::lock_guard lock(mutex_);
  std::vector<int64_t> taken;
  while (!left_.empty() && static_cast<int64_t>(taken.size()) < at_most) {
    taken.push_back(left_.front());
    left_.pop_front();
  }
  return taken;
}

void WorkBalancer::handle(const HttpRequest& request, const HttpReply& reply) {
  if (path_parts(request.target) != std::vector<std::string>{"get_idx"}) throw RequestError(404, "no such address: " + request.target);
  if (request.method != "PUT") throw RequestError(405, "/get_idx: expected PUT, found " + request.method);
  int64_t wanted = 0;
  try {
    wanted = Json::parse(request.body, "the request").at("batch_size", "the request").as_integer("batch_size");
  } catch (const UsageError& error) {
    throw RequestError(400, error.what());
  }
  check_request(wanted >= 1, "batch_size: expected at least 1, found ", wanted);
  Json::Array list;
  for (const int64_t index : take(wanted)) list.emplace_back(index);
  reply.send({200, {{"Content-Type", "application/json"}}, Json(std::move(list)).dump()});
}

std::vector<int64_t> ask_for_work(const WorkAddress& address, int64_t at_most) {
  const std::string where = str("the work balancer ", address.host, ":", address.port);
  HttpConnection connection(address.host, address.port);
  const HttpResponse response = connection.send({"PUT",
                                                 "/get_idx",
                                                 {{"Content-Type", "application/json"}, {"Authorization", authorization_of(address.token)}},
                                                 str("{\"batch_size\": ", at_most, "}")});
  if (response.status != 200) throw Error(str(where, ": HTTP ", response.status, ": ", response.body));
  std::vector<int64_t> indices;
  try {
    const Json list = Json::parse(response.body, where);
    for (const Json& index : list.as_array(where)) indices.push_back(index.as_integer(where));
  } catch (const UsageError& error) {
    throw Error(error.what());
  }
  return indices;
}

}  // namespace kedge
