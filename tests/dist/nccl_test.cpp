#include "kedge/dist/nccl.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

TEST(Nccl, WhereItIsMissingTheErrorSaysWhatToInstall) {
  const std::string error = testing::error_of([] { return nccl::load("libnccl_that_is_not_there.so.2"); });
  EXPECT_NE(error.find("connected by NCCL, which is not installed here (libnccl_that_is_not_there.so.2: cannot open"), std::string::npos)
      << error;
  EXPECT_NE(error.find("pip install nvidia-nccl-cu13"), std::string::npos) << error;
}

TEST(Nccl, AnotherLibraryIsRefused) {
  EXPECT_EQ(testing::error_of([] { return nccl::load("libc.so.6"); }), "libc.so.6 has no ncclGetVersion: expected NCCL 2.10.0 or later");
}

TEST(Nccl, IsLoadedWhereItIsInstalled) {
  if (::dlopen("libnccl.so.2", RTLD_NOW) == nullptr) GTEST_SKIP() << ::dlerror();
  const nccl::Functions functions = nccl::load();
  EXPECT_NE(functions.send, nullptr);
  EXPECT_STREQ(functions.error_string(nccl::Status::success), "no error");
  nccl::check_status(functions, nccl::Status::success, "nothing");
  const std::string error = testing::error_of<Error>([&] {
    nccl::check_status(functions, nccl::Status{4}, "ncclSend");
    return 0;
  });
  EXPECT_TRUE(error.starts_with("ncclSend: invalid argument")) << error;
}

TEST(Nccl, VersionsReadAsTheyAreWritten) {
  EXPECT_EQ(nccl::version_text(22809), "2.28.9");
  EXPECT_EQ(nccl::version_text(21000), "2.10.0");
  EXPECT_EQ(nccl::version_text(2804), "2.8.4");
}

}  // namespace
}  // namespace kedge
