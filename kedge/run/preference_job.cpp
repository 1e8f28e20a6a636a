#include "kedge/run/preference_job.h"

#include <type_traits>

#include "kedge/algo/supervised/dpo.h"
#include "kedge/algo/supervised/kto.h"
#include "kedge/model/files/model_files.h"

namespace kedge {

template <typename Config>
void PreferenceJob<Config>::check_config() const {
  if constexpr (std::is_same_v<Config, DpoConfig>) {
    check_dpo_config(config_.model);
  } else {
    check_kto_config(config_.model);
  }
}

template <typename Config>
std::unique_ptr<Model> PreferenceJob<Config>::load(const Path& folder, const StorageOptions& storage) const {
  return load_model(folder, {.storage = storage, .head = HeadKind::language});
}

template <typename Config>
SupervisedTask PreferenceJob<Config>::make_task(const TaskModel& model) {
  if constexpr (std::is_same_v<Config, DpoConfig>) {
    return make_dpo_task(config_.model, model);
  } else {
    return make_kto_task(config_.model, model);
  }
}

// KTO also looks at mismatched rows, as long as the others on the whole.
template <typename Config>
ReferenceUse PreferenceJob<Config>::reference_use() const {
  const bool keeps = config_.model.loss.reference_cache != ReferenceKeeping::none, is_kto = std::is_same_v<Config, KtoConfig>;
  return {.exists = true, .copies = !keeps, .looks = (is_kto ? 1.0 : 0.0) + (keeps ? 0.0 : is_kto ? 2.0 : 1.0)};
}

template class PreferenceJob<DpoConfig>;
template class PreferenceJob<KtoConfig>;

}  // namespace kedge
