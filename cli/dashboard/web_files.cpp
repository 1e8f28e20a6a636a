#include "cli/dashboard/web_files.h"

#include <array>

#include "cli/embed.h"

KEDGE_EMBED(index_html, KEDGE_WEB_FOLDER "/index.html");
KEDGE_EMBED(style_css, KEDGE_WEB_FOLDER "/style.css");
KEDGE_EMBED(app_js, KEDGE_WEB_FOLDER "/app.js");
KEDGE_EMBED(charts_js, KEDGE_WEB_FOLDER "/charts.js");
KEDGE_EMBED(panels_js, KEDGE_WEB_FOLDER "/panels.js");
KEDGE_EMBED(answers_js, KEDGE_WEB_FOLDER "/answers.js");
KEDGE_EMBED(tools_js, KEDGE_WEB_FOLDER "/tools.js");
KEDGE_EMBED(icon_svg, KEDGE_WEB_FOLDER "/icon.svg");

namespace kedge::cli {

std::span<const WebFile> web_files() {
  static constexpr std::string_view kScript = "text/javascript; charset=utf-8";
  static const std::array<WebFile, 8> files = {{
      {"/", "text/html; charset=utf-8", KEDGE_EMBEDDED(index_html)},
      {"/style.css", "text/css; charset=utf-8", KEDGE_EMBEDDED(style_css)},
      {"/icon.svg", "image/svg+xml", KEDGE_EMBEDDED(icon_svg)},
      {"/app.js", kScript, KEDGE_EMBEDDED(app_js)},
      {"/charts.js", kScript, KEDGE_EMBEDDED(charts_js)},
      {"/panels.js", kScript, KEDGE_EMBEDDED(panels_js)},
      {"/answers.js", kScript, KEDGE_EMBEDDED(answers_js)},
      {"/tools.js", kScript, KEDGE_EMBEDDED(tools_js)},
  }};
  return files;
}

}  // namespace kedge::cli
