#!/usr/bin/env python3
"""Serves a Python reward function to kedge, over standard input and output.

    reward_worker.py FILE.py:FUNCTION [SIGNATURE]        or  package.module:FUNCTION [SIGNATURE]

The function is called as its trainer calls it. SIGNATURE says which one that is; by default the names of its parameters do.

    trl        def reward(prompts, completions, **kwargs) -> list[float | None]
    verl       def compute_score(data_source, solution_str, ground_truth, extra_info=None) -> float | {"score": float, ...}
    openrlhf   def reward_func(queries, prompts, labels) -> list or tensor | {"rewards": ..., "extra_logs": {...}}

trl: `prompts` and `completions` are texts; where a row's prompt is a conversation (its "messages", or a "prompt" that is a list), they are
that list and a list of one assistant message. Every other column of the data arrives as a list by its name, and `completion_ids` too.
What a function gives to a parameter `log_metric` is logged; `log_extra` is accepted and ignored.
verl: called once per response. `ground_truth` is the row's reward_model.ground_truth, or its answer. Numbers next to "score" are logged.
openrlhf: `queries` are prompts and responses together, `labels` the rows' label or answer. Lists in "extra_logs" are logged.
Keyword arguments that a function does not take are left out. None, and a number that is not finite, is a row without a reward. What is
printed goes to standard error, which kedge logs. The lines are described in docs/rewards.md.
"""
import asyncio
import functools
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
ANSWERS = ("answer", "reward_model.ground_truth", "ground_truth", "solution")  # as kedge looks for it


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
    asked = next((row[key] for key in ("text", "prompt", "messages") if key in row), None)  # the order in which kedge looks
    return asked if isinstance(asked, list) else None


def field(row, path):
    value = row
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def right_answer(row, *first):
    """The first of these fields that the row has, then the usual ones."""
    return next((value for value in (field(row, path) for path in (*first, *ANSWERS)) if value is not None), None)


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


def as_reward(value, parts=None):
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        return {"error": f"the reward function gave {number}"}
    return {"reward": number, "parts": parts} if parts else number


def as_parts(values):
    """Those that are numbers; truth values count as 1 and 0."""
    numbers = {str(name): float(value) for name, value in values.items() if isinstance(value, (bool, int, float))}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def as_list(values):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]


def finished(result):
    return asyncio.run(awaited(result)) if inspect.isawaitable(result) else result


async def awaited(result):
    return await result


def trl_rewards(function, rollouts):
    logged = {}
    logs = {"log_metric": logged.__setitem__, "log_extra": lambda column, values: None}
    named = {name: log for name, log in logs.items() if name in inspect.signature(function).parameters}
    values = as_list(finished(function(**taken(function, arguments(rollouts)), **named)))
    return [as_reward(value, as_parts(logged)) for value in values]


def verl_rewards(function, rollouts):
    rewards = []
    for rollout in rollouts:
        row = rollout.get("row") or {}
        keywords = {
            "data_source": row.get("data_source"),
            "solution_str": rollout["response"],
            "ground_truth": right_answer(row, "reward_model.ground_truth"),
            "extra_info": row.get("extra_info") or {},
        }
        score = finished(function(**taken(function, keywords)))
        if isinstance(score, dict):
            rewards.append(as_reward(score["score"], as_parts({name: value for name, value in score.items() if name != "score"})))
        else:
            rewards.append(as_reward(score[0] if isinstance(score, (list, tuple)) else score))
    return rewards


def openrlhf_rewards(function, rollouts):
    rows = [rollout.get("row") or {} for rollout in rollouts]
    prompts = [rollout["prompt"] for rollout in rollouts]
    queries = [rollout["prompt"] + rollout["response"] for rollout in rollouts]
    result = finished(function(queries, prompts, [right_answer(row, "label") for row in rows]))
    logs = {}
    if isinstance(result, dict):
        logs = {name: as_list(values) for name, values in (result.get("extra_logs") or {}).items()}
        result = result["rewards"]
    rewards = as_list(result)
    return [as_reward(value, as_parts({name: values[i] for name, values in logs.items() if len(values) == len(rewards)})) for i, value in enumerate(rewards)]


CALLS = {"trl": trl_rewards, "verl": verl_rewards, "openrlhf": openrlhf_rewards}


def signature_of(function):
    names = inspect.signature(function).parameters
    if "solution_str" in names:
        return "verl"
    return "openrlhf" if "queries" in names else "trl"


def rewards_of(call, rollouts):
    rewards = call(rollouts)
    if len(rewards) != len(rollouts):
        raise ValueError(f"{len(rewards)} rewards for {len(rollouts)} completions")
    return rewards


def answer(call, request):
    rollouts = request.get("rollouts", [request])
    try:
        rewards = rewards_of(call, rollouts)
    except Exception as error:  # one row's trouble must not end the process
        traceback.print_exc()
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    if "rollouts" in request:
        return {"id": request["id"], "rewards": rewards}
    reward = rewards[0]
    return {"id": request["id"], **(reward if isinstance(reward, dict) else {"reward": reward})}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if len(sys.argv) == 3 and sys.argv[2] not in CALLS:
        sys.exit(f"{sys.argv[2]}: no such signature; there are {', '.join(CALLS)}")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed, also by libraries, is not a reply
    function = load(sys.argv[1])
    rewards = CALLS[sys.argv[2] if len(sys.argv) == 3 else signature_of(function)]
    for line in sys.stdin.buffer:
        replies.write(json.dumps(answer(functools.partial(rewards, function), json.loads(line)), allow_nan=False) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
