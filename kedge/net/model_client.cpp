#include "kedge/net/model_client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/net/auth_token.h"
#include "kedge/net/local_token.h"

namespace kedge {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr int64_t kForeignBodyLimit = 2147483647;  // Triton reads lengths as 32 bits
constexpr int kNoRoomStatus = 503;                 // the queue is full, or a balancer has no server

// Doubles with every attempt, up to ten seconds, with jitter so that many clients do not retry at the same moment.
Milliseconds back_off(int64_t tries) {
  thread_local std::minstd_rand spread{std::random_device{}()};
  const int64_t longest = std::min<int64_t>(10000, int64_t{100} << std::min<int64_t>(tries, 7));
  return Milliseconds(std::uniform_int_distribution<int64_t>(longest / 2, longest)(spread));
}

// The text of an error answer, whatever form it has.
std::string error_text(const HttpResponse& response) {
  try {
    const Json json = Json::parse(response.body);
    if (const Json* error = json.find("error"); error != nullptr && error->is_text()) return error->as_text("error");
  } catch (const Error&) {
  }
  return response.body.empty() ? "no text" : response.body;
}

}  // namespace

// One thread with one connection.
class ModelClient::Worker {
 public:
  Worker(const WatchOptions& server) : connection(server.host, server.port) {}

  HttpConnection connection;
  bool is_calling = false;  // under the client's mutex
  std::thread thread;
};

ModelClient::ModelClient(ClientOptions options) : options_(std::move(options)), watch_(options_.server, [this] { abort_calls(); }) {}

void ModelClient::give_up() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  watch_.stop();
}

ModelClient::~ModelClient() {
  give_up();
  // Repeatedly: a worker that is just starting its call misses the first one, and a reply may take hours.
  for (bool working = true; working;) {
    abort_calls();
    std::unique_lock lock(mutex_);
    working = !changed_.wait_for(lock, Milliseconds(20), [&] { return num_working_ == 0; });
  }
  for (const auto& worker : workers_) worker->thread.join();
  for (Job& job : jobs_)
    job.promise.set_exception(std::make_exception_ptr(Error(str("the call to the ", server_name(), " was cancelled"))));
}

std::future<InferReply> ModelClient::infer(const std::string& model, InferRequest request, Resend resend) {
  Job job{model, std::move(request), resend, {}};
  std::future<InferReply> answer = job.promise.get_future();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || static_cast<int64_t>(jobs_.size()) < options_.max_in_flight; });
  if (!job.request.id) job.request.id = std::to_string(num_sent_++);
  jobs_.push_back(std::move(job));
  if (num_idle_ < static_cast<int64_t>(jobs_.size()) && static_cast<int64_t>(workers_.size()) < options_.max_in_flight) {
    workers_.push_back(std::make_unique<Worker>(options_.server));
    Worker& worker = *workers_.back();
    ++num_working_;
    worker.thread = std::thread([this, &worker] { work(worker); });
  }
  changed_.notify_all();
  return answer;
}

void ModelClient::work(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++num_idle_;
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    --num_idle_;
    if (stopping_) break;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    changed_.notify_all();  // there is room for another
    lock.unlock();
    try {
      job.promise.set_value(perform(worker, job));
    } catch (...) {
      job.promise.set_exception(std::current_exception());
    }
    lock.lock();
  }
  --num_working_;
  changed_.notify_all();
}

InferReply ModelClient::perform(Worker& worker, Job& job) {
  const ServerWatch::Interest interest(watch_);
  job.request.outputs.emplace();
  for (const TensorSpec& output : signature(job.model).outputs) job.request.outputs->push_back({output.name, true});
  KserveBody body = write_request(job.request);
  job.request.inputs = {};  // they may be gigabytes, and are in the body now
  const std::string what = str(job.model, " of the ", server_name());
  if (!is_kedge() && static_cast<int64_t>(body.bytes.size()) > kForeignBodyLimit)
    throw Error(str(what, ": a call of ", body.bytes.size(), " bytes is more than this server reads (", kForeignBodyLimit, ")"));
  HttpRequest call{"POST", "/v2/models/" + job.model + "/infer", headers(), std::move(body.bytes)};
  if (body.header_length) call.headers.emplace_back("Inference-Header-Content-Length", std::to_string(*body.header_length));
  HttpResponse response = send(worker, call, job);
  if (may_be_unloaded(response)) {  // the server was restarted; it has done nothing
    wait_until_loaded(job.model);
    response = send(worker, call, job);
  }
  if (response.status != 200) throw RemoteError(response.status, str(what, ": HTTP ", response.status, ": ", error_text(response)));
  std::optional<int64_t> header_length;
  try {
    header_length = find_count(response.headers, "Inference-Header-Content-Length");
    return parse_reply(response.body, header_length);
  } catch (const Error& error) {
    throw Error(str(what, ": an invalid reply: ", error.what()));
  }
}

// Until there is an answer that is not "no room".
HttpResponse ModelClient::send(Worker& worker, HttpRequest& request, const Job& job) {
  const bool wants_local = !options_.server.token && job.resend == Resend::by_key;
  int64_t num_lost = 0;
  RoomWait room;
  while (true) {
    watch_.wait_until_up();
    if (wants_local) (void)show_local_token(request);
    const bool may_repeat = job.resend == Resend::safe || is_kedge();
    if (!may_repeat) worker.connection.close();  // an old connection may be dead, and a call that is lost on it cannot be sent again
    const bool was_open = worker.connection.is_open();
    if (!was_open) check_same_model(job.model);
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) throw Error(str("the call to the ", server_name(), " was cancelled"));
      worker.is_calling = true;
    }
    try {
      HttpResponse response = worker.connection.send(request, {.answer = options_.answer_limit});
      {
        const std::lock_guard lock(mutex_);
        worker.is_calling = false;
      }
      if (response.status == 401 && wants_local && show_local_token(request)) continue;  // it was restarted just now
      if (response.status != kNoRoomStatus) return response;
      wait_for_room(room, response);
    } catch (const ConnectionError& error) {
      {
        const std::lock_guard lock(mutex_);
        worker.is_calling = false;
      }
      if (error.sent() && !may_repeat)
        throw Error(str("the ", server_name(), " was lost during ", request.target, " (", error.what(),
                        "); it is unknown whether the call was executed, and this server would execute a repeated call again"));
      if (was_open && num_lost == 0) {  // most likely closed while idle
        ++num_lost;
        continue;
      }
      watch_.suspect(error.what());
      if (++num_lost > options_.max_resends)
        throw Error(str("the ", server_name(), " was lost ", num_lost, " times during one call to ", request.target, ": ", error.what()));
      log_debug("sending a call to the ", server_name(), " again: ", error.what());
      pause(back_off(num_lost));
    }
  }
}

// A queue may be full for a moment. A server that has no room for longer than `patience` is as good as unreachable: that is logged, and a
// signal ends the wait.
void ModelClient::wait_for_room(RoomWait& wait, const HttpResponse& response) {
  const WatchOptions& server = options_.server;
  const auto in_seconds = [](Clock::duration time) { return std::chrono::duration_cast<std::chrono::seconds>(time).count(); };
  const std::string problem = str("HTTP ", kNoRoomStatus, ": ", error_text(response));
  if (wait.num_tries++ == 0) wait.begin = Clock::now();
  const auto end = Clock::now() + back_off(wait.num_tries);
  for (auto now = Clock::now(); now < end; now = Clock::now()) {
    if (now - wait.begin >= server.return_limit)
      throw NoRoomError(str("the ", server_name(), " accepted no call within ", in_seconds(server.return_limit), " s (", problem, ")"));
    if (now - wait.begin >= server.patience) {
      if (is_time_to_tell("", now))
        log_warn("the ", server_name(), " accepts no calls (", problem, "); waited ", in_seconds(now - wait.begin), " s, limit ",
                 in_seconds(server.return_limit), " s");
      check_stop(server.stop, str("the ", server_name(), " (", problem, ")"));
    }
    pause(kStopPeriod);
  }
}

void ModelClient::pause(Milliseconds time) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, time, [&] { return stopping_; })) throw Error(str("the call to the ", server_name(), " was cancelled"));
}

void ModelClient::abort_calls() {
  const std::lock_guard lock(mutex_);
  for (const auto& worker : workers_)
    if (worker->is_calling) worker->connection.abort();
}

HttpHeaders ModelClient::headers() const {
  if (!options_.server.token) return {};
  return {{"Authorization", authorization_of(*options_.server.token)}};
}

// Calls that change something need a token; without a configured one it is that of a kedge server on this machine, new at every
// start. Is it different from the one in the request?
bool ModelClient::show_local_token(HttpRequest& request) const {
  const std::optional<std::string> token = find_local_token(options_.server.host, options_.server.port);
  if (!token || find_header(request.headers, "Authorization") == authorization_of(*token)) return false;
  std::erase_if(request.headers, [](const auto& header) { return header.first == "Authorization"; });
  request.headers.emplace_back("Authorization", authorization_of(*token));
  return true;
}

HttpResponse ModelClient::get(const std::string& target) {
  const ServerWatch::Interest interest(watch_);
  int64_t num_lost = 0;
  RoomWait room;
  while (true) {
    watch_.wait_until_up();
    try {
      HttpConnection connection(options_.server.host, options_.server.port);
      HttpResponse response = connection.send({"GET", target, headers(), ""}, {.answer = std::chrono::seconds(30)});
      if (response.status != kNoRoomStatus) return response;
      wait_for_room(room, response);
    } catch (const ConnectionError& error) {
      if (++num_lost > options_.max_resends)
        throw Error(str("the ", server_name(), " was lost ", num_lost, " times during one call to ", target, ": ", error.what()));
      watch_.suspect(error.what());
      pause(back_off(num_lost));
    }
  }
}

bool ModelClient::is_kedge() {
  {
    const std::lock_guard lock(mutex_);
    if (is_kedge_) return *is_kedge_;
  }
  const HttpResponse response = get("/v2");
  bool ours = false;
  try {
    const Json json = Json::parse(response.body);
    const Json* name = json.find("name");
    ours = name != nullptr && *name == Json("kedge");
  } catch (const Error&) {
  }
  const std::lock_guard lock(mutex_);
  is_kedge_ = ours;
  return ours;
}

// Triton says that it is healthy before its models are loaded. Until then it answers 404; older releases 400, as to any wrong call.
bool ModelClient::may_be_unloaded(const HttpResponse& response) {
  return (response.status == 404 || response.status == 400) && !is_kedge();
}

void ModelClient::wait_until_loaded(const std::string& model) {
  using std::chrono::seconds;
  const WatchOptions& server = options_.server;
  const auto begin = Clock::now();
  while (get("/v2/models/" + model + "/ready").status != 200) {
    const auto now = Clock::now();
    if (now - begin >= server.start_limit)
      throw Error(str("the ", server_name(), " is up, but its model ", model, " was not ready within ",
                      std::chrono::duration_cast<seconds>(server.start_limit).count(), " s",
                      server.keys.empty() ? "" : "; its address is set by " + server.keys));
    if (is_time_to_tell(model, now))
      log_warn("the ", server_name(), " is up, but its model ", model, " is not ready; waited ",
               std::chrono::duration_cast<seconds>(now - begin).count(), " s");
    check_stop(server.stop, str("the model ", model, " of the ", server_name(), " (not ready)"));
    pause(std::min(server.period, Milliseconds(1000)));
  }
}

// Many calls may wait for the same model, and one of them logs it.
bool ModelClient::is_time_to_tell(const std::string& model, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto last = told_.find(model);
  if (last != told_.end() && now - last->second < options_.server.tell_every) return false;
  told_[model] = now;
  return true;
}

ModelSignature ModelClient::signature(const std::string& model) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = signatures_.find(model); known != signatures_.end()) return known->second;
  }
  const std::string address = "/v2/models/" + model + "/config";
  HttpResponse response = get(address);
  if (may_be_unloaded(response)) {
    wait_until_loaded(model);
    response = get(address);
  }
  const std::string what = str("model ", model, " of the ", server_name());
  if (response.status != 200) throw RemoteError(response.status, str(what, ": HTTP ", response.status, ": ", error_text(response)));
  try {
    ModelSignature found = read_model_config(Json::parse(response.body, what));
    const std::lock_guard lock(mutex_);
    return signatures_.emplace(model, std::move(found)).first->second;
  } catch (const Error& error) {
    throw Error(str(what, ": an invalid configuration: ", error.what()));
  }
}

// A new connection may lead to another server than the one before.
void ModelClient::check_same_model(const std::string& model) {
  const std::string before = parameter_of(signature(model), "model_print");
  if (before.empty()) return;
  const HttpResponse response = get("/v2/models/" + model + "/config");
  std::string now;
  try {
    if (response.status == 200) now = parameter_of(read_model_config(Json::parse(response.body)), "model_print");
  } catch (const Error&) {  // not a kedge server
  }
  if (now != before)
    throw Error(str("the ", server_name(), " came back with a different model as ", model, ": it was ", before, ", and is ",
                    now.empty() ? "one that does not identify itself" : now));
}

}  // namespace kedge
