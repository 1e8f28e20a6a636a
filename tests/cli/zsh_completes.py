"""What zsh makes of a line when the completion key is pressed, at a terminal of its own.

    zsh_completes.py SCRIPT LINE WANTED [LINE WANTED ...]      exit 1 where a line becomes another
"""
import os
import pty
import select
import sys
import time

END = 30  # seconds for everything


def main(script, lines):
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PS1="> ", HOME=os.getcwd(), ZDOTDIR=os.getcwd())
        os.execvp("zsh", ["zsh", "-f", "-i"])
    heard = b""
    deadline = time.time() + END

    def wait_for(mark):
        nonlocal heard
        while mark not in heard:
            if time.time() > deadline:
                sys.exit(f"zsh: no {mark!r} in {heard!r}")
            if select.select([terminal], [], [], 0.1)[0]:
                heard += os.read(terminal, 65536)

    def tell(text):
        os.write(terminal, text.encode())

    # A widget of ours prints the line as it is, so that what a terminal does with it does not matter.
    tell("autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste 2>/dev/null\n")
    tell(f"source {script}\n")
    tell("tell() { print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N tell; bindkey '^X' tell; echo rea''dy\n")
    wait_for(b"ready\r\n")
    wrong = 0
    for line, wanted in lines:
        heard = b""
        tell(line + "\t\x18")
        wait_for(b">>")
        found = heard[heard.index(b"<<") + 2 : heard.rindex(b">>")].decode()
        if found != wanted:
            print(f"zsh: '{line}' became '{found}', wanted '{wanted}'")
            wrong += 1
    tell("exit\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return wrong


if __name__ == "__main__":
    arguments = sys.argv[2:]
    sys.exit(main(sys.argv[1], list(zip(arguments[::2], arguments[1::2]))) > 0)
