#pragma once
// Third-party models and data for tests, where they are there: in KEDGE_ASSETS, or beside the checkout in shared/assets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace kedge::testing {

inline std::filesystem::path source_folder() { return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path(); }

inline std::filesystem::path assets_folder() {
  const char* named = std::getenv("KEDGE_ASSETS");
  return named != nullptr ? std::filesystem::path(named) : source_folder().parent_path() / "shared" / "assets";
}

inline std::filesystem::path asset(std::string_view name) { return assets_folder() / name; }

}  // namespace kedge::testing

// Ends the test as skipped, with a word, where the file or folder is not there.
#define KEDGE_NEEDS_ASSET(name)                              \
  if (!std::filesystem::exists(kedge::testing::asset(name))) \
  GTEST_SKIP() << "no " << kedge::testing::asset(name) << "; KEDGE_ASSETS names the assets folder"
