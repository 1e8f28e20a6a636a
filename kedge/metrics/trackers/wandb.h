#pragma once
// Sends a run's metrics to Weights & Biases, over a pipe to a process that runs the user's Python and wandb package.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kedge/core/child_process.h"
#include "kedge/metrics/trackers/tracker.h"
#include "kedge/metrics/trackers/tracker_config.h"

namespace kedge {

// The Python to use: from the key, from the variable KEDGE_PYTHON, or python3.
[[nodiscard]] std::string wandb_python(const WandbConfig& config);
// A UsageError that says what to install if that Python or its wandb package is missing. Takes a second or two.
void check_wandb(const WandbConfig& config);

// The process ends with the thread that started it. Rows that wandb had not written by then are lost; connect() finds out which.
class WandbLink final : public TrackerLink {
 public:
  WandbLink(WandbConfig config, Path folder);
  ~WandbLink() override;

  [[nodiscard]] std::string name() const override { return "W&B"; }
  [[nodiscard]] std::optional<int64_t> connect(Json& memory, const std::function<void()>& save) override;
  void send(std::span<const TrackerRow> rows) override;
  [[nodiscard]] int64_t last_kept() override;
  void finish(RunOutcome end) override;
  void disconnect() override;
  void abort(bool on) override { is_aborted_ = on; }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Json settings(const std::string& id) const;
  void write(std::string text);
  void wait_until(const std::function<bool()>& is_done, std::chrono::seconds limit, const char* what);
  void look();
  void take_message(const std::string& line);
  void log_errors();

  WandbConfig config_;
  Path folder_;
  std::unique_ptr<ChildProcess> process_;
  std::string output_, errors_, last_words_, error_;
  std::optional<int64_t> last_kept_;
  bool is_finished_ = false;
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace kedge
