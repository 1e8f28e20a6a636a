#include "kedge/metrics/trackers/wandb.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/identity.h"
#include "kedge/core/log.h"
#include "kedge/core/utf8.h"
#include "kedge/metrics/jsonl.h"
#include "kedge/metrics/trackers/wandb_script.h"

namespace kedge {
namespace {

constexpr std::chrono::seconds kStartLimit{180};  // wandb.init itself gives up after 90
constexpr std::chrono::seconds kStallLimit{60};
constexpr std::chrono::seconds kFinishLimit{600};
constexpr int kLookMs = 100;

void set_if(Json& json, const char* key, const std::optional<std::string>& value) {
  if (value) json.set(key, *value);
}

}  // namespace

std::string wandb_python(const WandbConfig& config) {
  if (config.python) return *config.python;
  const char* variable = std::getenv("KEDGE_PYTHON");
  return variable != nullptr && *variable != '\0' ? variable : "python3";
}

void check_wandb(const WandbConfig& config) {
  const std::string python = wandb_python(config);
  const std::string otherwise = "; or set exp_manager.create_wandb_logger=false";
  std::unique_ptr<ChildProcess> process;
  try {
    process = std::make_unique<ChildProcess>(
        std::vector<std::string>{python, "-c", "import wandb.proto.wandb_internal_pb2; print('it is there')"});
  } catch (const Error& error) {
    throw UsageError(str("exp_manager.create_wandb_logger: ", error.what(), ". Name a Python that has the wandb package in ",
                         "exp_manager.wandb_logger_kwargs.python or the variable KEDGE_PYTHON", otherwise));
  }
  process->close_input();
  std::string said, errors;
  while (!process->ended()) {
    read_available(process->output(), said);
    read_available(process->errors(), errors);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  read_available(process->output(), said);
  read_available(process->errors(), errors);
  check(said.find("it is there") != std::string::npos, "exp_manager.create_wandb_logger: ", python, " cannot load the wandb package (",
        last_line(errors), "). Install it: ", python, " -m pip install wandb; or name another Python in ",
        "exp_manager.wandb_logger_kwargs.python or the variable KEDGE_PYTHON", otherwise);
}

WandbLink::WandbLink(WandbConfig config, Path folder) : config_(std::move(config)), folder_(std::move(folder)) {}

WandbLink::~WandbLink() = default;

Json WandbLink::settings(const std::string& id) const {
  const std::string folder_name = std::filesystem::absolute(folder_).lexically_normal().filename().string();
  const Path save_dir = std::filesystem::absolute(config_.save_dir ? Path(*config_.save_dir) : folder_);
  make_folder(save_dir);
  Json init = Json::Object{{"id", id}, {"dir", save_dir.string()}, {"name", config_.name.value_or(folder_name)}};
  set_if(init, "project", config_.project);
  set_if(init, "entity", config_.entity);
  set_if(init, "group", config_.group);
  set_if(init, "job_type", config_.job_type);
  set_if(init, "notes", config_.notes);
  set_if(init, "mode", config_.offline ? std::optional<std::string>("offline") : config_.mode);
  if (config_.tags) {
    Json::Array tags;
    for (const std::string& tag : *config_.tags) tags.emplace_back(tag);
    init.set("tags", std::move(tags));
  }
  const Path file = folder_ / "config.yaml";
  return Json::Object{{"init", std::move(init)},
                      {"config", is_file(file) ? to_json(parse_yaml(read_text(file), file.string())) : Json(Json::Object{})}};
}

std::optional<int64_t> WandbLink::connect(Json& memory, const std::function<void()>& save) {
  if (memory.find("id") == nullptr) {
    memory.set("id", config_.id.value_or(random_hex(6)));
    save();
  }
  disconnect();
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{wandb_python(config_), "-u", "-c", kWandbScript});
  write(settings(memory.at("id", "id").as_text("id")).dump_compact() + "\n");
  wait_until([this] { return last_kept_.has_value(); }, kStartLimit, "start");
  return last_kept_;
}

void WandbLink::send(std::span<const TrackerRow> rows) {
  const std::string prefix = config_.prefix ? *config_.prefix + "-" : "";
  std::string text;
  for (const TrackerRow& row : rows) {
    Json numbers{Json::Object{}};
    for (const auto& [metric, value] : row.numbers) numbers.append(prefix + metric, metric_json(value));
    const Json line = Json::Object{{"row", row.number}, {"step", row.step}, {"time_ms", row.time_ms}, {"numbers", std::move(numbers)}};
    text += line.dump_compact() + "\n";
  }
  write(std::move(text));
}

int64_t WandbLink::last_kept() {
  look();
  return last_kept_.value_or(-1);
}

void WandbLink::finish(RunOutcome end) {
  write(Json(Json::Object{{"exit_code", end == RunOutcome::failed ? 1 : 0}}).dump_compact() + "\n");
  process_->close_input();
  wait_until([this] { return is_finished_ && process_->ended(); }, kFinishLimit, "finish");  // wandb has to end another process first
}

void WandbLink::disconnect() {
  process_.reset();
  output_.clear(), errors_.clear(), last_words_.clear(), error_.clear();
  last_kept_.reset();
  is_finished_ = false;
}

void WandbLink::write(std::string text) {
  wait_until(
      [&] {
        while (!text.empty()) {
          const ssize_t size = ::write(process_->input(), text.data(), text.size());
          if (size < 0 && errno == EINTR) continue;
          if (size <= 0) break;  // the pipe is full, or the process ended, which look() sees
          text.erase(0, static_cast<size_t>(size));
        }
        return text.empty();
      },
      kStallLimit, "take its lines");
}

void WandbLink::wait_until(const std::function<bool()>& is_done, std::chrono::seconds limit, const char* what) {
  const auto until = Clock::now() + limit;
  while (!is_done()) {
    if (is_aborted_) throw Error("given up");
    if (Clock::now() >= until) throw Error(str("the wandb process did not ", what, " within ", limit.count(), " s"));
    std::array<pollfd, 2> watched{{{process_->output(), POLLIN, 0}, {process_->errors(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), kLookMs);
    look();
  }
}

// Reads what the process wrote; an Error if it failed or ended.
void WandbLink::look() {
  const std::optional<std::string> ended = process_->ended();  // checked first: all its output is in the pipes by now
  read_available(process_->output(), output_);
  read_available(process_->errors(), errors_);
  log_errors();
  for (std::string line; take_line(output_, line);) take_message(line);
  if (!error_.empty()) throw Error(error_);
  if (ended && !is_finished_)
    throw Error(str("the wandb process ", *ended, last_words_.empty() ? "" : str("; it last said \"", last_words_, "\"")));
}

void WandbLink::take_message(const std::string& line) {
  const std::string where = "the wandb process";
  const Json message = Json::parse(line, where);
  if (const Json* kept = message.find("kept")) last_kept_ = kept->as_integer(where);
  if (message.find("finished") != nullptr) is_finished_ = true;
  if (const Json* error = message.find("error")) error_ = error->as_text(where);
}

void WandbLink::log_errors() {
  for (std::string line; take_line(errors_, line);) {
    if (line.find_first_not_of(" \r") == std::string::npos) continue;
    last_words_ = utf8_replace_invalid(line);
    log_info(last_words_.starts_with("wandb:") ? "" : "wandb: ", last_words_);
  }
}

}  // namespace kedge
