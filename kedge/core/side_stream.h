#pragma once
// A second stream of a GPU, for transfers that overlap with computation. A CPU has none: there, work is done when it is given.
#include <functional>
#include <memory>

#include <c10/core/Event.h>

#include "kedge/core/tensor.h"

namespace kedge {

// Not thread-safe. "The current stream" is that of the calling thread.
class SideStream {
 public:
  explicit SideStream(at::Device device) : device_(device) {}

  // All that was queued on a stream until then.
  class Moment {
    friend class SideStream;
    std::shared_ptr<c10::Event> event_;  // null: it has passed
  };

  // Of the current stream.
  [[nodiscard]] Moment now() const;
  // Queues work that begins after a moment of the current stream; its end.
  [[nodiscard]] Moment run(const Moment& after, const std::function<void()>& work);
  // What is queued on the current stream from here on waits for it.
  void wait(const Moment& moment) const;

 private:
  [[nodiscard]] c10::Stream current() const;
  [[nodiscard]] static Moment moment_of(const c10::Stream& stream);

  at::Device device_;
  std::shared_ptr<const c10::Stream> stream_;  // taken when it is first used
};

}  // namespace kedge
