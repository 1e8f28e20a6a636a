#pragma once
// Sends a run's metrics to an MLflow server over its REST interface, and its config.yaml as parameters.
#include <atomic>
#include <memory>
#include <string>

#include "kedge/metrics/trackers/mlflow_address.h"
#include "kedge/metrics/trackers/tracker.h"
#include "kedge/metrics/trackers/tracker_config.h"
#include "kedge/net/http_client.h"

namespace kedge {

// MLflow stores equal points once, so a row may be sent twice. It stores an infinity as the largest double of its sign.
class MlflowLink final : public TrackerLink {
 public:
  MlflowLink(MlflowConfig config, Path folder);
  ~MlflowLink() override;

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::optional<int64_t> connect(Json& memory, const std::function<void()>& save) override;
  void send(std::span<const TrackerRow> rows) override;
  [[nodiscard]] int64_t last_kept() override { return last_kept_; }
  void finish(RunOutcome end) override;
  void disconnect() override;
  void abort(bool on) override;

 private:
  struct Answer {
    int status = 0;
    Json json;
    std::string error_code, error;
  };
  [[nodiscard]] Answer call(const std::string& method, const std::string& what, const Json& body);
  Json call_or_throw(const std::string& method, const std::string& what, const Json& body);
  [[nodiscard]] std::string find_experiment();
  [[nodiscard]] std::string find_run(const std::string& experiment, const std::string& key);
  [[nodiscard]] std::string create_run(const std::string& experiment, const std::string& key);
  void send_params();

  MlflowConfig config_;
  Path folder_;
  HttpAddress address_;
  std::string authorization_;  // empty: none
  HttpConnection connection_;
  std::atomic<bool> is_aborted_ = false;
  std::string run_id_;
  int64_t last_kept_ = -1;
};

}  // namespace kedge
