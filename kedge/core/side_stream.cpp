#include "kedge/core/side_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace kedge {

c10::Stream SideStream::current() const { return c10::impl::VirtualGuardImpl(device_.type()).getStream(device_); }

SideStream::Moment SideStream::moment_of(const c10::Stream& stream) {
  Moment moment;
  moment.event_ = std::make_shared<c10::Event>(stream.device_type());
  moment.event_->record(stream);
  return moment;
}

SideStream::Moment SideStream::now() const { return device_.is_cuda() ? moment_of(current()) : Moment(); }

SideStream::Moment SideStream::run(const Moment& after, const std::function<void()>& work) {
  if (!device_.is_cuda()) {
    work();
    return {};
  }
  // Of high priority: others wait for what is sent.
  if (!stream_)
    stream_ = std::make_shared<const c10::Stream>(c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_, true));
  const c10::StreamGuard guard(*stream_);
  if (after.event_) after.event_->block(*stream_);
  work();
  return moment_of(*stream_);
}

void SideStream::wait(const Moment& moment) const {
  if (moment.event_) moment.event_->block(current());
}

}  // namespace kedge
