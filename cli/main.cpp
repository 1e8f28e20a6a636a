#include <array>
#include <cstdio>
#include <exception>
#include <new>

#include <c10/util/Exception.h>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/dist/mesh.h"

#include "cli/commands.h"

namespace {

using kedge::cli::Command;

constexpr std::array kCommands = {
    Command{"config", "Look and check", "every key of a configuration with type, default, bounds and meaning", "kedge config NAME [--yaml]",
            kedge::cli::run_config, kedge::cli::config_flags},
    Command{"doctor", "Look and check", "this machine: devices, libraries, limits; what is missing and how to install it",
            "kedge doctor [--json]", kedge::cli::run_doctor, kedge::cli::doctor_flags},
};

// The one place that knows what each kind of error means to the caller.
int report(const char* opening, const char* what, int exit_code) {
  kedge::fail_job(kedge::str(opening, what), exit_code);  // ends the other ranks too
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  kedge::make_mkl_strict();
  try {
    return kedge::cli::run_commands(kCommands, kedge::cli::Arguments(argv + 1, argv + argc));
  } catch (const kedge::UsageError& error) {
    return report("error: ", error.what(), kedge::kExitUsage);
  } catch (const kedge::Error& error) {
    return report("error: ", error.what(), kedge::kExitWorld);
  } catch (const std::bad_alloc&) {
    return report("error: ", "out of memory", kedge::kExitWorld);
  } catch (const c10::Error& error) {
    return report("error inside torch, probably a bug in kedge: ", error.what_without_backtrace(), kedge::kExitWorld);
  } catch (const std::exception& error) {
    return report("a bug in kedge, please report it: ", error.what(), kedge::kExitWorld);
  }
}
