// Writes the event files that tensorboard_interop.py reads with TensorBoard's own reader: write_events FOLDER.
#include <cmath>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/metrics/tensorboard.h"

namespace kedge {
namespace {

void write_values(const Path& folder) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> extremes = {-1.5,  1e-45, 3.4028234663852886e38, 0.1,       0.0,       -0.0,
                                        1e-50, 1e300, std::nan(""),          kInfinity, -kInfinity};
  TensorBoardSink sink(folder);
  for (int64_t step = 0; step < 10000; ++step) {
    const auto x = static_cast<double>(step);
    sink.write(step, {{"train/loss", 0.5 * x - 1000}, {"Größe/奖励 📈", -x}, {"train/thirds", x / 3}});
  }
  for (size_t i = 0; i < extremes.size(); ++i) sink.write(static_cast<int64_t>(i), {{"extremes", extremes[i]}});
  for (const int shift : {31, 32, 40}) sink.write(int64_t{1} << shift, {{"far", static_cast<double>(shift)}});
  for (int i = 0; i < 3; ++i) sink.write(7, {{"same_step", static_cast<double>(i)}});
  sink.write(0, {{"not\xFFutf8", 1}});
}

void write_texts(const Path& folder) {
  TensorBoardSink sink(folder);
  for (int64_t step = 0; step < 300; ++step) sink.write_text(step, "config", str("# step ", step, "\n\n奖励: *", step, "*"));
  sink.write_text(5, "broken", "cut in a character: \xE5\xA5");
  sink.write_samples(
      3, {"train_rollouts",
          {{"What is 2 * 3 * 4?", "24", 1.5, {{"finish", "stop"}}},
           {"a | b\n`code` **bold** _em_ [link](http://x) <script>alert(1)</script> &amp; \\", "第一\n第二\n\n# no title", -0.25},
           {"", "", 0}}});
}

// A run that is killed at step 150 and goes on from its checkpoint of step 100; with a validation before that checkpoint, or not.
void write_resumed(const Path& folder, bool validates) {
  SinkPositions positions;
  {
    TensorBoardSink sink(folder);
    for (int64_t step = 0; step < 150; ++step) {
      if (step == 100) {
        if (validates) sink.write(step, {{"val/loss", 10}});
        sink.record(positions);
      }
      sink.write(step, {{"train/loss", 1}});
      if (step % 20 == 0) sink.write_text(step, "table/train_rollouts", "first");
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))  // killed within its last record
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) - 5);
  TensorBoardSink sink(folder);
  sink.resume(100, positions);
  for (int64_t step = 100; step < 200; ++step) {
    sink.write(step, {{"train/loss", 2}});
    if (step % 20 == 0) sink.write_text(step, "table/train_rollouts", "second");
  }
}

}  // namespace
}  // namespace kedge

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_events FOLDER\n";
    return kedge::kExitUsage;
  }
  const kedge::Path folder = argv[1];
  kedge::write_values(folder / "values");
  kedge::write_texts(folder / "texts");
  kedge::write_resumed(folder / "resumed", false);
  kedge::write_resumed(folder / "resumed_after_validation", true);
}
