#pragma once
// The text of the error a call throws, for exact comparison.
#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "kedge/core/error.h"

namespace kedge::testing {

template <typename Expected = UsageError, typename Call>
std::string error_of(Call&& call) {
  try {
    static_cast<void>(call());
  } catch (const Expected& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace kedge::testing
