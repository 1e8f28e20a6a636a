#include "kedge/net/server_pool.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

// Until a call whose server is lost or has no room goes to another one.
constexpr std::chrono::milliseconds kLost{1000};
constexpr std::chrono::seconds kFull{30};  // until a server that had no room is used like the others again
constexpr int64_t kMaxTries = 16;          // of one call, while servers are up
// What the results of a model depend on, as far as a server publishes it.
constexpr std::array kSame = {"model_print", "scoring_print", "tokenizer_fingerprint", "chat_template_fingerprint", "encoder_seq_length"};

int64_t whole_seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); }

int64_t num_rows_of(const InferRequest& request) {
  return request.inputs.empty() || request.inputs.front().shape.empty() ? 1 : request.inputs.front().shape.front();
}

}  // namespace

ServerPool::ServerPool(PoolOptions options) : options_(std::move(options)), servers_(options_.servers.size()) {
  ensure(!servers_.empty(), "a pool of no servers");
  for (size_t i = 0; i < servers_.size(); ++i) {
    ClientOptions client{.server = options_.servers[i]};
    client.server.start_limit = client.server.return_limit = kLost;
    client.server.meanwhile = "it is left out until it is back";
    servers_[i].client = std::make_unique<ModelClient>(client);
    servers_[i].interest = std::make_unique<ServerWatch::Interest>(servers_[i].client->watch());
  }
}

std::string ServerPool::name() const {
  std::string names;
  for (const WatchOptions& server : options_.servers) names += str(names.empty() ? "" : ", ", server.host, ":", server.port);
  return str(options_.model, " of the ", options_.label, " ", names);
}

void ServerPool::give_up() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (const Server& server : servers_) server.client->give_up();
}

std::string ServerPool::problems() {
  std::string text;
  for (const Server& server : servers_)
    text += str(text.empty() ? "" : "; ", server.client->server_name(), ": ", server.client->watch().problem());
  return text;
}

// The one with the least work among those that are up, in turn where several have as little. Under mutex_.
std::optional<size_t> ServerPool::pick(std::optional<size_t> avoided) {
  const auto now = Clock::now();
  const auto burden = [&](size_t server) {
    return std::tuple(servers_[server].full_until > now, server == avoided, servers_[server].num_rows);
  };
  std::optional<size_t> best;
  for (size_t step = 1; step <= servers_.size(); ++step) {
    const size_t i = (last_ + step) % servers_.size();
    servers_[i].client->watch().check_accepted();
    if (!servers_[i].client->watch().is_up()) continue;
    if (!best || burden(i) < burden(*best)) best = i;
  }
  return best;
}

size_t ServerPool::choose(std::optional<size_t> avoided) {
  Wait wait;
  std::unique_lock lock(mutex_);
  while (true) {
    if (stopping_) throw Error(str("the call to ", name(), " was cancelled"));
    if (const std::optional<size_t> found = pick(avoided)) return last_ = *found;
    keep_waiting(wait, "was ready", problems());
    changed_.wait_for(lock, kStopPeriod, [this] { return stopping_; });
    if (!stopping_) check_stop(options_.servers.front().stop, str("the ", options_.label, " (", problems(), ")"));
  }
}

// An Error at the limit, and a warning now and then. None of the servers did `what`: "was ready".
void ServerPool::keep_waiting(Wait& wait, const std::string& what, const std::string& why) const {
  const WatchOptions& limits = options_.servers.front();
  const auto now = Clock::now();
  if (now - wait.begin >= limits.return_limit)
    throw Error(str("none of the ", options_.label, " ", what, " within ", whole_seconds(limits.return_limit), " s (", why, ")",
                    limits.keys.empty() ? "" : "; their addresses are set by " + limits.keys));
  if (now - wait.told < limits.tell_every) return;
  log_warn("none of the ", options_.label, " ", what, " so far (", why, "); waited ", whole_seconds(now - wait.begin), " s, limit ",
           whole_seconds(limits.return_limit), " s");
  wait.told = now;
}

// That is no failure: all of them may be busy for long. As in ModelClient, a signal ends the wait only if it lasts.
void ServerPool::leave_out(size_t server, std::optional<Wait>& wait, const NoRoomError& error) {
  const WatchOptions& limits = options_.servers.front();
  {
    const std::lock_guard lock(mutex_);
    Clock::time_point& full_until = servers_[server].full_until;
    const auto now = Clock::now();
    if (full_until <= now) log_warn(error.what(), "; it is left out for ", kFull.count(), " s");
    full_until = now + kFull;
  }
  if (!wait) wait.emplace();
  keep_waiting(*wait, "accepted the call", error.what());
  if (Clock::now() - wait->begin >= limits.patience) check_stop(limits.stop, str("the ", options_.label, " (", error.what(), ")"));
}

// Rows are not sent to a server before its model is known to be that of the others.
void ServerPool::compare(size_t server) {
  {
    const std::lock_guard lock(mutex_);
    if (servers_[server].is_known) return;
  }
  const ModelSignature found = servers_[server].client->signature(options_.model);
  const std::lock_guard lock(mutex_);
  if (!signature_) {
    first_known_ = server;
    signature_ = found;
  }
  for (const char* key : kSame) {
    const std::string wanted = parameter_of(*signature_, key), has = parameter_of(found, key);
    check(wanted == has, "the ", servers_[*first_known_].client->server_name(), " and the ", servers_[server].client->server_name(),
          " do not serve the same ", options_.model, ": ", key, " is \"", wanted, "\" and \"", has, "\"");
  }
  check(found.inputs == signature_->inputs && found.outputs == signature_->outputs, "the ", servers_[*first_known_].client->server_name(),
        " and the ", servers_[server].client->server_name(), " do not serve the same ", options_.model,
        ": its inputs or outputs have other names, types or shapes");
  servers_[server].is_known = true;
}

size_t ServerPool::choose_known(std::optional<size_t> avoided) {
  std::optional<Wait> room;
  for (int64_t tries = 1;; ++tries) {
    const size_t server = choose(avoided);
    try {
      compare(server);
      return server;
    } catch (const UsageError&) {
      throw;
    } catch (const RemoteError&) {
      throw;
    } catch (const NoRoomError& error) {
      leave_out(server, room, error);
      --tries;
    } catch (const Error&) {
      if (tries >= kMaxTries) throw;
    }
    avoided = server;
  }
}

ModelSignature ServerPool::signature() {
  {
    const std::lock_guard lock(mutex_);
    if (signature_) return *signature_;
  }
  static_cast<void>(choose_known({}));
  const std::lock_guard lock(mutex_);
  return signature_.value();
}

ServerPool::Sent ServerPool::send(const InferRequest& request, std::optional<size_t> avoided) {
  Sent sent{.server = choose_known(avoided), .rows = num_rows_of(request), .reply = {}};
  {
    const std::lock_guard lock(mutex_);
    servers_[sent.server].num_rows += sent.rows;
  }
  sent.reply = servers_[sent.server].client->infer(options_.model, request);
  return sent;
}

std::future<InferReply> ServerPool::infer(InferRequest request) {
  Sent sent = send(request, {});
  return std::async(std::launch::deferred,
                    [this, request = std::move(request), sent = std::move(sent)]() mutable { return finish(request, std::move(sent)); });
}

InferReply ServerPool::finish(const InferRequest& request, Sent sent) {
  std::optional<Wait> room;
  for (int64_t tries = 1;; ++tries) {
    const std::string server = servers_[sent.server].client->server_name();
    sent.reply.wait();
    {
      const std::lock_guard lock(mutex_);
      servers_[sent.server].num_rows -= sent.rows;
    }
    try {
      InferReply reply = sent.reply.get();
      reply.sender = server;
      return reply;
    } catch (const UsageError&) {
      throw;
    } catch (const RemoteError& error) {
      if (error.status() < 500 || tries >= std::ssize(servers_)) throw;  // another one would refuse the call as well
      log_warn("a call failed and is sent to another server: ", error.what());
    } catch (const NoRoomError& error) {
      leave_out(sent.server, room, error);
      --tries;
    } catch (const Error& error) {
      if (tries >= kMaxTries) throw;
      log_warn("a call failed and is sent to another server: ", error.what());
    }
    sent = send(request, sent.server);
  }
}

}  // namespace kedge
