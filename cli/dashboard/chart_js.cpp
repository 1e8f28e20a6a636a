#include "cli/dashboard/web_files.h"
#include "cli/embed.h"

KEDGE_EMBED(chart_js, KEDGE_CHART_JS);

namespace kedge::cli {

std::string_view chart_js() { return KEDGE_EMBEDDED(chart_js); }

}  // namespace kedge::cli
