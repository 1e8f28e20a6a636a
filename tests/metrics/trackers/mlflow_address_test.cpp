#include "kedge/metrics/trackers/mlflow_address.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/scoped_variable.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::ScopedVariable;

MlflowConfig at(const char* uri) {
  MlflowConfig config;
  config.tracking_uri = uri;
  return config;
}

TEST(MlflowAddress, AddressesAreOfTheKeyOrTheVariable) {
  const ScopedVariable variable("MLFLOW_TRACKING_URI", "http://tracker/mlflow/");
  HttpAddress address = mlflow_address({});
  EXPECT_EQ(str(address.host, " ", address.port, " ", address.target), "tracker 80 /mlflow");
  address = mlflow_address(at("http://[::1]:5000"));
  EXPECT_EQ(str(address.host, " ", address.port, " ", address.target), "::1 5000 ");
}

TEST(MlflowAddress, SaysWhatToDoAboutAddressesThatCannotBe) {
  const ScopedVariable variable("MLFLOW_TRACKING_URI", std::nullopt);
  EXPECT_EQ(error_of([] { return mlflow_address({}); }),
            "exp_manager.mlflow_logger_kwargs.tracking_uri: create_mlflow_logger requires the address of an MLflow server here or in the "
            "variable "
            "MLFLOW_TRACKING_URI, for example http://localhost:5000");
  const auto error = [](const char* uri) { return error_of([&] { return mlflow_address(at(uri)); }); };
  EXPECT_NE(error("https://tracker").find("https is not supported. Let a proxy"), std::string::npos);
  EXPECT_NE(
      error("file:./mlruns").find("file:./mlruns: expected the http:// address of an MLflow server. For files on this machine, start one"),
      std::string::npos);
  EXPECT_NE(error("http://me:secret@tracker").find("MLFLOW_TRACKING_PASSWORD"), std::string::npos);
  EXPECT_NE(error("http://tracker:x").find("expected http://HOST:PORT"), std::string::npos);
  EXPECT_NE(error("http://:5000").find("expected http://HOST:PORT"), std::string::npos);
}

TEST(MlflowAddress, NamesHoldWhatMlflowTakes) {
  EXPECT_EQ(mlflow_name("train_rollouts/rewards"), "train_rollouts/rewards");
  EXPECT_EQ(mlflow_name("a[b]/c+d"), "a_b_/c_d");
  EXPECT_EQ(mlflow_name("a//b/./c/"), "a/_/b/_/c/_");
  EXPECT_EQ(mlflow_name(std::string(300, 'a')).size(), 250U);
}

TEST(MlflowAddress, CredentialsAreThoseOfMlflowsOwnClient) {
  const ScopedVariable no_token("MLFLOW_TRACKING_TOKEN", std::nullopt);
  const ScopedVariable user("MLFLOW_TRACKING_USERNAME", "Aladdin"), password("MLFLOW_TRACKING_PASSWORD", "open sesame");
  EXPECT_EQ(mlflow_authorization(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");  // RFC 7617
  const ScopedVariable other("MLFLOW_TRACKING_PASSWORD", "x");
  EXPECT_EQ(mlflow_authorization(), "Basic QWxhZGRpbjp4");
  const ScopedVariable token("MLFLOW_TRACKING_TOKEN", "secret");
  EXPECT_EQ(mlflow_authorization(), "Bearer secret");
}

}  // namespace
}  // namespace kedge
