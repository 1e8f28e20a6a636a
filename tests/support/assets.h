#pragma once
// Real artefacts for tests: ../shared/assets beside the checkout, or the folder that KEDGE_ASSETS names.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace kedge::testing {

inline std::filesystem::path source_folder() { return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path(); }

inline std::filesystem::path assets_folder() {
  const char* named = std::getenv("KEDGE_ASSETS");
  return named != nullptr ? std::filesystem::path(named) : source_folder().parent_path() / "shared" / "assets";
}

inline bool have_assets() { return std::filesystem::is_directory(assets_folder()); }

}  // namespace kedge::testing

// Ends a test that wants assets where there are none.
#define KEDGE_WANT_ASSETS()           \
  if (!kedge::testing::have_assets()) \
  GTEST_SKIP() << "no assets in " << kedge::testing::assets_folder() << " (KEDGE_ASSETS names another folder)"
