#include "kedge/core/first_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

namespace kedge {
namespace {

// The exit code of the child, if it is among those that have ended.
std::optional<int> reap_all(pid_t child) {
  std::optional<int> code;
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == child) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code;
}

}  // namespace

int run_as_first_process(const std::function<int()>& work) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child <= 0) {  // without a child, orphans have to wait
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return work();
  }
  while (true) {
    siginfo_t info{};
    if (::sigwaitinfo(&all, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      if (info.si_code != SI_KERNEL) ::kill(child, info.si_signo);
    } else if (const std::optional<int> code = reap_all(child)) {
      ::_exit(*code);
    }
  }
}

}  // namespace kedge
