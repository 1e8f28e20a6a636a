#include "kedge/core/error.h"

#include "cli/dashboard/web_files.h"

namespace kedge::cli {

std::string_view chart_js() {
  throw Error("this kedge was built without Chart.js, which draws the dashboard's curves; install libjs-chart.js and build again");
}

}  // namespace kedge::cli
