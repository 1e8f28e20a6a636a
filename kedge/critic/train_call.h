#pragma once
// A call to train as bytes: in the journal, and between ranks.
#include <string>
#include <string_view>

#include "kedge/critic/critic_batch.h"

namespace kedge {

struct TrainCall {
  std::string key, settings;  // settings: of the critic when it was made
  std::string start;          // start_print() of the initial critic
  CriticBatch batch;
};
[[nodiscard]] std::string to_bytes(const TrainCall& call);
[[nodiscard]] TrainCall read_train_call(std::string_view bytes);

}  // namespace kedge
