"""What the program itself says there is: commands and their flags (kedge --help), configuration keys (kedge config NAME --json), and the
numbers that runs wrote (metrics.jsonl). tools/check_docs holds the pages against it."""
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product

FREE = re.compile(r"any\b|map of ")  # types of keys below which everything is said by the user
SOURCES = ("reward.sources", "reward.watch")  # maps of sections: NAME, then a key of the configuration reward_source
# Which configuration the overrides of a command belong to; of others, any.
CONFIG_OF = {"sft": "sft", "rm": "rm", "dpo": "dpo", "kto": "kto", "ppo": "ppo", "reinforce": "reinforce", "rs": "rs", "serve reward": "serve_reward", "serve critic": "serve_critic"}
# Names of NeMo-Aligner's programs, which the program takes for its own commands.
ALIASES = {"train_gpt_sft": "sft", "train_reward_model": "rm", "train_gpt_dpo": "dpo", "train_gpt_kto": "kto",
           "train_gpt_ppo_actor": "ppo", "train_gpt_reinforce_actor": "reinforce",
           "train_gpt_rs_actor": "rs", "serve_reward_model": "serve reward", "serve_ppo_critic": "serve critic"}
# Numbers that only some runs have, and when.
SOMETIMES = {
    "train/skipped": "where a row is too long",
    "validation/skipped": "where a row is too long",
    "train/skipped_updates": "where gradients were not finite",
    "train_optim/skipped_updates": "where gradients were not finite",
    "train_rollouts/failed_rewards": "where an answer got no reward",
    "val_rollouts/failed_rewards": "where an answer got no reward",
}


def without_alias(words):
    return [*ALIASES[words[0]].split(), *words[1:]] if words and words[0] in ALIASES else words


def is_placeholder(component):
    """A, NAME, ALGORITHM: any component. (Keys are written small.)"""
    return component.isupper()


def same(pattern, component):
    return pattern == component or is_placeholder(pattern)


def opens(path, key):
    """Is every component of `path` the one of `key` at its place?"""
    return len(path) <= len(key) and all(same(ours, theirs) for ours, theirs in zip(path, key))


def expanded(text):
    """a.{b,c}.d gives a.b.d and a.c.d."""
    parts = re.split(r"\{([^{}]*)\}", text)
    return ["".join(choice) for choice in product(*[part.split(",") if i % 2 else [part] for i, part in enumerate(parts)])]


class Schema:
    """The keys of one configuration, as lists of components."""

    def __init__(self, rows):
        self.keys = [row["key"].split(".") for row in rows]
        self.free = [row["key"].split(".") for row in rows if FREE.match(row.get("type", "")) or "type" not in row]

    def has(self, path, source=None):
        """Is `path` a key, a section, or inside of what the user names?"""
        if any(opens(path, key) for key in self.keys):
            return True
        for key in self.free:
            if len(path) > len(key) and opens(path[:len(key)], key):
                below = path[len(key) + 1:]
                if ".".join(key) not in SOURCES or source is None or not below or source.has(below):
                    return True
        return False

    def has_part(self, path, source=None):
        """The same for a part of a longer key: micro_batch_size, sched.name."""
        for key in self.keys:
            for begin in range(len(key)):
                if opens(path, key[begin:]):
                    return True
        for key in self.free:
            for begin in range(len(key)):
                tail = key[begin:]
                if len(path) > len(tail) and opens(path[:len(tail)], tail):
                    below = path[len(tail) + 1:]
                    if ".".join(key) not in SOURCES or source is None or not below or source.has(below):
                        return True
        return False


class Program:
    def __init__(self, kedge, metrics_files=()):
        self.kedge = kedge
        overview = self.says("--help")
        listed = re.findall(r"^  ([a-z]+) +\S", overview, re.M)
        self.commands = [name for name in listed if name not in ("kedge", "source")]  # those begin the overview's examples
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.help = dict(zip(self.commands, pool.map(lambda name: self.says("help", name), self.commands)))
        self.flags = {name: set(re.findall(r"--[a-z][a-z0-9-]*", text)) | {"--help"} for name, text in self.help.items()}
        names = re.findall(r"^  ([a-z_]+) +\S", self.help["config"].split("Configurations")[-1], re.M)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            lines = pool.map(lambda name: self.says("config", name, "--json").splitlines(), names)
        self.schemas = {name: Schema([json.loads(line) for line in its]) for name, its in zip(names, lines)}
        self.source = self.schemas.pop("reward_source", None)
        self.metrics = set(SOMETIMES)
        for path in metrics_files:
            with open(path) as lines:
                for line in lines:
                    self.metrics.update(name for name in json.loads(line) if "/" in name)

    def says(self, *arguments):
        return subprocess.run([self.kedge, *arguments], capture_output=True, text=True, check=True).stdout

    def sections(self):
        return {key[0] for schema in self.schemas.values() for key in schema.keys}

    def has_key(self, text, config=None):
        """A complete key of one configuration, or of any."""
        schemas = [self.schemas[config]] if config in self.schemas else self.schemas.values()
        return all(any(schema.has(key.split("."), self.source) for schema in schemas) for key in expanded(text))

    def has_part(self, text):
        return all(any(schema.has_part(key.split("."), self.source) for schema in [*self.schemas.values(), self.source] if schema)
                   for key in expanded(text))

    def key_names(self):
        return sorted({".".join(key) for schema in [*self.schemas.values(), self.source] if schema for key in schema.keys})

    def key_tails(self):
        return sorted({key[-1] for schema in [*self.schemas.values(), self.source] if schema for key in schema.keys})

    def has_flag(self, command, flag):
        flags = self.flags[command] if command else set().union(*self.flags.values())
        return flag in flags or (flag.startswith("--no-") and "--" + flag[5:] in flags)

    def has_metric(self, name):
        """timers/generate; timers/ and val_rollouts/... for a group; rewards/NAME and watch/NAME, by whatever name a source has."""
        if name.endswith(("/", "...")):
            return any(metric.startswith(name.rstrip(".")) for metric in self.metrics)
        parts = name.split("/")
        pattern = ["[^/]+" if is_placeholder(part) or before in ("rewards", "watch") else re.escape(part) for before, part in zip(["", *parts], parts)]
        return any(re.fullmatch("/".join(pattern), metric) for metric in self.metrics)
