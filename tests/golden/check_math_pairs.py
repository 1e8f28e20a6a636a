#!/usr/bin/env python3
"""Compares tests/reward/math_pairs.jsonl with the math-verify package (pip install math-verify; written with 0.9.0).

Prints every pair on which the two disagree. A disagreement is explained in the pair's "math_verify_differs"; the exit code is 1 if one is
not, or if an explained pair agrees. The test of kedge's own verdicts is tests/reward/math/math_answer_test.cpp, which needs no Python.
"""
import json
import logging
import sys
from pathlib import Path

from math_verify import parse, verify

PAIRS = Path(__file__).resolve().parent.parent / "reward" / "math_pairs.jsonl"


def peer_verdict(truth, response):
    marked = "boxed" in truth or "####" in truth
    return verify(parse(truth if marked else "\\boxed{" + truth + "}"), parse(response))


def main():
    logging.disable(logging.CRITICAL)
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    num_explained = num_wrong = 0
    for number, pair in enumerate(pairs, 1):
        differs = peer_verdict(pair["truth"], pair["response"]) != pair["expected"]
        reason = pair.get("math_verify_differs")
        num_explained += differs and reason is not None
        if differs:
            print(f"{PAIRS.name}:{number}: truth {pair['truth']!r}, response {pair['response']!r}: kedge says {pair['expected']}; "
                  f"{reason or 'NOT EXPLAINED'}")
        elif reason is not None:
            print(f"{PAIRS.name}:{number}: agrees, but has an explanation: {reason}")
        num_wrong += differs != (reason is not None)
    print(f"{len(pairs)} pairs, {num_explained} explained differences, {num_wrong} to look at")
    return 1 if num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
