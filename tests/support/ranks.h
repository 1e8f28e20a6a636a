#pragma once
// For test programs that mpirun starts: every rank runs every test, and the tests meet in collective calls.
// ranks_main.cpp is their main.
#include "kedge/dist/mesh.h"

namespace kedge::testing {

[[nodiscard]] const Mesh& mesh();
[[nodiscard]] inline const Group& world() { return mesh().world; }

}  // namespace kedge::testing
