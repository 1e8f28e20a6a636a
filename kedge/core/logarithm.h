#pragma once
// Logarithms whose bits are the same everywhere: a libm's are its own. For the few a kernel needs, one a row.

namespace kedge {

// Within one unit in the last place; minus infinity of 0, NaN below it.
[[nodiscard]] float natural_log(float x);
[[nodiscard]] float binary_log(float x);

}  // namespace kedge
