#include "cli/dashboard/web_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "kedge/core/error.h"

namespace kedge::cli {
namespace {

using ::testing::HasSubstr;

std::string content_of(std::string_view path) {
  for (const WebFile& file : web_files())
    if (file.path == path) return std::string(file.content);
  return "";
}

TEST(WebFiles, AreThoseOfTheirFolder) {
  EXPECT_THAT(content_of("/").substr(0, 15), "<!DOCTYPE html>");
  EXPECT_THAT(content_of("/style.css"), HasSubstr("prefers-reduced-motion"));
  EXPECT_EQ(content_of("/icon.svg").substr(0, 4), "<svg");
}

TEST(WebFiles, ChartJsIsThereOrItsPackageIsNamed) {
  try {
    EXPECT_THAT(std::string(chart_js()), HasSubstr("Chart.js v3"));
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("install libjs-chart.js"));
  }
}

// Whatever the page and its scripts name is there, and is ours.
TEST(WebFiles, NothingIsLoadedFromElsewhere) {
  const std::regex named(R"re((?:src|href)="([^"#]+)"|from "\.(/[a-z]+\.js)")re");
  size_t num_found = 0;
  for (const WebFile& file : web_files()) {
    const std::string text(file.content);
    for (auto it = std::sregex_iterator(text.begin(), text.end(), named); it != std::sregex_iterator(); ++it) {
      const std::string path = (*it)[1].matched ? (*it)[1].str() : (*it)[2].str();
      EXPECT_TRUE(path == "/chart.js" || !content_of(path).empty()) << file.path << " names " << path;
      num_found += 1;
    }
    EXPECT_EQ(text.find("innerHTML"), std::string::npos) << file.path;
    EXPECT_EQ(text.find("https:"), std::string::npos) << file.path;
  }
  EXPECT_GT(num_found, 10U);
}

}  // namespace
}  // namespace kedge::cli
