#pragma once
// Metrics and sample tables as TensorBoard event files; view them with `tensorboard --logdir FOLDER`.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/metrics/metrics.h"

namespace kedge {

// Writes one new file, FOLDER/events.out.tfevents.TIME.HOST.PID.N, from the first write on; older files are left as they are.
// Every file records the step at which it starts, so that TensorBoard drops what an interrupted run had written from there on.
class TensorBoardSink final : public Sink {
 public:
  explicit TensorBoardSink(const Path& folder, WallClock clock = seconds_since_epoch);

  void write(int64_t step, const Metrics& metrics) override;
  void write_samples(int64_t step, const SampleTable& table) override;  // as text named table/NAME
  void write_text(int64_t step, std::string_view tag, std::string_view markdown);
  void flush() override;
  void record(SinkPositions& positions) const override;
  // TensorBoard can only drop complete steps. It drops those from `step` on, but nothing of a step in the checkpoint: the
  // validation of the step it was taken after.
  void resume(int64_t step, const SinkPositions& positions) override;

 private:
  void append(int64_t step, std::string_view event);

  Path folder_;
  WallClock clock_;
  std::optional<AppendFile> file_;     // empty until its first event
  std::optional<int64_t> start_step_;  // of a resumed run; otherwise the first step written
  std::optional<int64_t> last_step_;
};

// A table with one row per sample. Nothing in prompt and response is taken for markdown or HTML.
[[nodiscard]] std::string samples_as_markdown(int64_t step, const SampleTable& table);

}  // namespace kedge
