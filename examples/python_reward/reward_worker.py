#!/usr/bin/env python3
"""Serves a Python reward function to kedge, over standard input and output.

    reward_worker.py FILE.py:FUNCTION        or  package.module:FUNCTION

The function has the signature that TRL's trainers call:

    def reward(prompts, completions, **kwargs) -> list[float | None]

`prompts` and `completions` are texts; where a row's prompt is a conversation (its "messages", or a "prompt" that is a list), they are that
list and a list of one assistant message. Every other column of the data arrives as a list by its name, and `completion_ids` too. Keyword
arguments that the function does not take are left out. None, and a number that is not finite, is a row without a reward. What is printed
goes to standard error, which kedge logs. The lines are described in docs/rewards.md.
"""
import asyncio
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import traceback
from pathlib import Path

NOT_COLUMNS = {"prompt", "prompts", "completion", "completions", "completion_ids"}


def load(name):
    place, _, function = name.rpartition(":")
    if not place:
        sys.exit(f"{name}: expected FILE.py:FUNCTION")
    if place.endswith(".py"):
        path = Path(place).resolve()
        sys.path.insert(0, str(path.parent))  # so that it can import its neighbours
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    if not callable(getattr(module, function, None)):
        sys.exit(f"{place} has no function {function}")
    return getattr(module, function)


def conversation(row):
    """The messages that a row asks with, or None where it asks with text."""
    for key in ("messages", "prompt"):
        if isinstance(row.get(key), list):
            return row[key]
    return None


def arguments(rollouts):
    rows = [rollout.get("row") or {} for rollout in rollouts]
    chats = [conversation(row) for row in rows]
    prompts = [rollout["prompt"] if chat is None else chat for rollout, chat in zip(rollouts, chats)]
    completions = [
        rollout["response"] if chat is None else [{"role": "assistant", "content": rollout["response"]}]
        for rollout, chat in zip(rollouts, chats)
    ]
    columns = {key: None for row in rows for key in row if key not in NOT_COLUMNS}  # in their order
    named = {key: [row.get(key) for row in rows] for key in columns}
    return {"prompts": prompts, "completions": completions, "completion_ids": [rollout["ids"] for rollout in rollouts], **named}


def taken(function, keywords):
    parameters = inspect.signature(function).parameters
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values()):
        return keywords
    return {key: value for key, value in keywords.items() if key in parameters}


def as_reward(value):
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else {"error": f"the reward function gave {number}"}


def rewards_of(function, rollouts):
    rewards = function(**taken(function, arguments(rollouts)))
    if inspect.isawaitable(rewards):
        rewards = asyncio.run(rewards)
    rewards = [as_reward(value) for value in rewards]
    if len(rewards) != len(rollouts):
        raise ValueError(f"{len(rewards)} rewards for {len(rollouts)} completions")
    return rewards


def answer(function, request):
    rollouts = request.get("rollouts", [request])
    try:
        rewards = rewards_of(function, rollouts)
    except Exception as error:  # one row's trouble must not end the process
        traceback.print_exc()
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    if "rollouts" in request:
        return {"id": request["id"], "rewards": rewards}
    reward = rewards[0]
    return {"id": request["id"], **(reward if isinstance(reward, dict) else {"reward": reward})}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed, also by libraries, is not a reply
    function = load(sys.argv[1])
    for line in sys.stdin.buffer:
        replies.write(json.dumps(answer(function, json.loads(line)), allow_nan=False) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
