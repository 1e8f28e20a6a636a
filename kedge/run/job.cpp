#include "kedge/run/job.h"

#include "kedge/run/online_job.h"
#include "kedge/run/preference_job.h"
#include "kedge/run/rm_job.h"
#include "kedge/run/sft_job.h"

namespace kedge {

std::unique_ptr<Job> make_job(std::string_view name) {
  if (name == "sft") return std::make_unique<SftJob>();
  if (name == "rm") return std::make_unique<RmJob>();
  if (name == "dpo") return std::make_unique<DpoJob>();
  if (name == "kto") return std::make_unique<KtoJob>();
  return make_online_job(name);
}

}  // namespace kedge
