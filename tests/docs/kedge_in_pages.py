"""Stands as `kedge` on the PATH of the commands of pages: runs the program under test with the same words, and behind them overrides that
make trainings and servers small. A finished run of fixtures.py makes room for a run of the page's own in the same folder."""
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(os.path.realpath(__file__)).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools")]
import fixtures  # noqa: E402
from doc_program import without_alias  # noqa: E402

TRAINERS = ("sft", "rm", "dpo", "kto", "ppo", "reinforce", "grpo", "rloo", "rs")
MOST_STEPS = 10  # a page may ask for so many; of more, two are made


def make_room(words):
    for word in words:
        key, _, name = word.partition("=")
        run = Path(name)
        if key.lstrip("+") == "exp_manager.explicit_log_dir" and (run / fixtures.PREPARED).exists():
            run.unlink() if run.is_symlink() else shutil.rmtree(run)


def ports_of_servers(words, ports):
    """Where the run finds its servers, if it takes the usual ports for granted."""
    keys = {}
    if words[0] == "ppo" and not any(word.startswith("local_critic.") for word in words):
        keys["remote_critic_rm.critic.port"] = ports["5556"]
    if "~reward.sources" in words and words[0] in ("reinforce", "grpo", "rloo", "rs"):
        keys["remote_rm.port"] = ports["5555"]
    return [f"{key}={port}" for key, port in keys.items() if not gives(words, key)]


def gives(words, key):
    return any(word.lstrip("+").partition("=")[0] == key for word in words)


def steps_of(words):
    given = [word.partition("=")[2] for word in words if gives([word], f"trainer.{words[0]}.max_steps")]
    return int(given[-1]) if given and given[-1].isdigit() and int(given[-1]) <= MOST_STEPS else 2


def shortened(words):
    words = without_alias(words)
    if not words or words[0] not in (*TRAINERS, "serve") or {"-h", "--help"} & set(words):
        return words
    make_room(words)
    ports = dict(pair.split("=") for pair in os.environ["KEDGE_PAGE_PORTS"].split())
    if words[0] == "serve":
        more, port = fixtures.serving(words[1], ports)
        return [*words, *more, *([] if gives(words, port.partition("=")[0]) else [port])]
    more = [*fixtures.training(words[0], steps_of(words), 2), *ports_of_servers(words, ports)]
    if any(word.startswith("local_critic.") for word in words):
        more += fixtures.LOCAL_CRITIC
    return [*words, *more]


if __name__ == "__main__":
    os.execv(os.environ["KEDGE_PROGRAM"], [os.environ["KEDGE_PROGRAM"], *shortened(sys.argv[1:])])
