#pragma once
// For tests of critics that several ranks hold together.
#include <memory>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/ranks.h"
#include "tests/support/toy_critic.h"

namespace kedge::testing {

// The ranks write into rank 0's folder, which stays until all are done with it.
class CriticJob {
 public:
  CriticJob(const Group& ranks, Sharding sharding) : group_(ranks), sharding_(sharding), folder_(run_.path().string()) {
    group_.broadcast(folder_, 0);
  }
  ~CriticJob() { group_.barrier(); }
  CriticJob(const CriticJob&) = delete;
  CriticJob& operator=(const CriticJob&) = delete;

  [[nodiscard]] const Group& group() const { return group_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::unique_ptr<CriticModel> start(CriticOptions options) const {
    options.group = group_;
    return std::make_unique<CriticModel>(judge_.load({.trainable = true, .shards = {.kind = sharding_, .shard = group_}}), options);
  }

 private:
  Group group_;
  Sharding sharding_;
  JudgeFolder judge_;
  TempFolder run_;
  std::string folder_;
};

}  // namespace kedge::testing
