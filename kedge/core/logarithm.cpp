#include "kedge/core/logarithm.h"

#include <limits>

#include "kedge/core/random.h"

namespace kedge {
namespace {

double log_of(float x) {
  if (x > 0 && x <= std::numeric_limits<float>::max()) return random_detail::log_of(static_cast<double>(x));
  const double infinity = std::numeric_limits<double>::infinity();
  return x > 0 ? infinity : x == 0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

float natural_log(float x) { return static_cast<float>(log_of(x)); }
float binary_log(float x) { return static_cast<float>(log_of(x) * 1.4426950408889634); }

}  // namespace kedge
