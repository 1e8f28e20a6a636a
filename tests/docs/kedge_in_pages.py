"""Stands as `kedge` on the PATH of the commands of pages: runs the program under test with the same words, and behind them overrides that
make trainings and servers small. A finished run of fixtures.py makes room for a run of the page's own in the same folder."""
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import fixtures  # noqa: E402

TRAINERS = ("sft", "rm", "ppo", "reinforce", "rs")


def make_room(words):
    for word in words:
        key, _, name = word.partition("=")
        run = Path(name)
        if key.lstrip("+") == "exp_manager.explicit_log_dir" and (run / fixtures.PREPARED).exists():
            run.unlink() if run.is_symlink() else shutil.rmtree(run)


def shortened(words):
    asks = {"-h", "--help"} & set(words)
    if words and words[0] in TRAINERS and not asks:
        more = fixtures.training(words[0], 2, 2)
        if any(word.startswith("local_critic.") for word in words):
            more += ["local_critic.model.encoder_seq_length=192", "local_critic.model.global_batch_size=4", "local_critic.model.micro_batch_size=4"]
        make_room(words)
        return [*words, *more]
    if words[:1] == ["serve"] and not asks:
        ports = dict(pair.split("=") for pair in os.environ["KEDGE_PAGE_PORTS"].split())
        more, port = fixtures.serving(words[1], ports)
        make_room(words)
        return [*words, *more, *([] if any(word.partition("=")[0] == port.partition("=")[0] for word in words) else [port])]
    return words


if __name__ == "__main__":
    os.execv(os.environ["KEDGE_PROGRAM"], [os.environ["KEDGE_PROGRAM"], *shortened(sys.argv[1:])])
