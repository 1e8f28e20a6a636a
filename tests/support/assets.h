#pragma once
// Third-party models and data for tests, where they are there: in KEDGE_ASSETS, or beside the checkout in shared/assets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace kedge::testing {

inline std::filesystem::path asset(std::string_view name) {
  const char* folder = std::getenv("KEDGE_ASSETS");
  const auto checkout = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  return (folder != nullptr ? std::filesystem::path(folder) : checkout.parent_path() / "shared" / "assets") / name;
}

}  // namespace kedge::testing

// Ends the test as skipped, with a word, where the file is not there.
#define KEDGE_NEEDS_ASSET(name)                                                    \
  if (!std::filesystem::exists(kedge::testing::asset(name))) {                     \
    GTEST_SKIP() << name << " is not there; KEDGE_ASSETS names the assets folder"; \
  }
