#include "kedge/rollout/work_queue.h"

#include <algorithm>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/net/auth_token.h"

namespace kedge {

WorkQueue::WorkQueue(Group group, const WorkQueueOptions& options) : group_(std::move(group)), piece_(options.piece) {
  const std::vector<std::string> hosts = group_.all_gather(host_name());
  const bool is_one_machine = std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
  address_.host = is_one_machine ? "127.0.0.1" : hosts[0];
  std::string port, token = group_.rank() == 0 ? random_token() : "";
  if (group_.rank() == 0) {
    HttpServerOptions server;
    server.ip = is_one_machine ? "127.0.0.1" : "0.0.0.0";
    server.port = options.port;
    try {
      balancer_ = std::make_unique<WorkBalancer>(server, token);
    } catch (const Error& error) {
      throw Error(str(error.what(), "; batch_iterator.port sets another port, 0 any that is free"));
    }
    port = std::to_string(balancer_->port());
  }
  group_.broadcast(port, 0);
  address_.port = std::stoll(port);
  group_.broadcast(token, 0);
  address_.token = token;
}

void WorkQueue::fill(int64_t size) {
  if (balancer_) {
    std::vector<int64_t> slots(static_cast<size_t>(size));
    std::iota(slots.begin(), slots.end(), 0);
    balancer_->fill(std::move(slots));
  }
  group_.barrier();  // no rank asks before the queue is filled
}

std::vector<int64_t> WorkQueue::take() const { return balancer_ ? balancer_->take(piece_) : ask_for_work(address_, piece_); }

}  // namespace kedge
