# Run at every build; writes OUT only when its content changes.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
endif()
set(text "#include \"kedge/core/version.h\"

namespace kedge {
const char* version() { return \"${VERSION}\"; }
const char* commit() { return \"${commit}\"; }
const char* build_type() { return \"${BUILD}\"; }
}  // namespace kedge
")
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE "${OUT}" "${text}")
endif()
