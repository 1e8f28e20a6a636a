#pragma once
// The dashboard's page: its files, embedded in the program at build time.
#include <span>
#include <string_view>

namespace kedge::cli {

struct WebFile {
  std::string_view path;  // "/app.js"
  std::string_view type;  // "text/javascript; charset=utf-8"
  std::string_view content;
};

// Our own files.
[[nodiscard]] std::span<const WebFile> web_files();

// Chart.js, which the page loads as /chart.js: a script of the package libjs-chart.js. If that was missing when the program was
// built: an Error that names it.
[[nodiscard]] std::string_view chart_js();

}  // namespace kedge::cli
