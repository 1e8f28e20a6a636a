#pragma once
// For test programs that mpirun starts: every rank runs every test, and the tests meet in collective calls.
// ranks_main.cpp is their main.
#include <array>

#include "kedge/core/tensor.h"
#include "kedge/dist/mesh.h"

namespace kedge::testing {

[[nodiscard]] const Mesh& mesh();
// The same where every `tensor_ranks` neighbours compute together. Made once: to connect GPUs takes a second. All ranks call it.
[[nodiscard]] const Mesh& mesh_of(int tensor_ranks);
[[nodiscard]] inline const Group& world() { return mesh().world; }
[[nodiscard]] inline int rank() { return world().rank(); }
[[nodiscard]] inline int size() { return world().size(); }

inline constexpr std::array kEveryDtype = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong,
                                           at::kInt,   at::kShort,  at::kByte,     at::kBool};

}  // namespace kedge::testing
