#pragma once
// Logarithms that are bit-identical on every platform, unlike those of libm. For the few that a kernel needs, one per row.

namespace kedge {

// Within one unit in the last place; minus infinity of 0, NaN below it.
[[nodiscard]] float natural_log(float x);
[[nodiscard]] float binary_log(float x);

}  // namespace kedge
