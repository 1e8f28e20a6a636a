#include "kedge/core/error.h"
#include "kedge/core/inflate.h"

namespace kedge {

struct Inflater::Stream {};

Inflater::Inflater(Packing) {
  throw UsageError("packed with gzip, and this build cannot unpack it; unpack it first, or install zlib1g-dev and build again");
}
Inflater::~Inflater() = default;
Inflater::Inflater(Inflater&& other) noexcept = default;
Inflater& Inflater::operator=(Inflater&& other) noexcept = default;
void Inflater::unpack(std::string_view, const std::function<void(std::string_view)>&) {}
void Inflater::finish() const {}

bool can_inflate() { return false; }

}  // namespace kedge
