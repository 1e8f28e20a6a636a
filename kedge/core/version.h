#pragma once
// What this binary was built from. The definitions are generated at build time (cmake/WriteVersion.cmake).

namespace kedge {

const char* version();
const char* commit();
const char* build_type();

}  // namespace kedge
