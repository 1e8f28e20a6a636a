#!/usr/bin/env python3
"""The numbers that lexicon_test.cpp and number_answer_test.cpp expect of real files, worked by other means.

    tests/algo/lexicon_sums.py ASSETS

Prints the size of the lexicon, and for each file of texts the number of texts, the sum of their scores and the first three; then the sum of all answers of the maths problems.
"""
import functools
import json
import operator
import re
import sys
from pathlib import Path

assets = Path(sys.argv[1])
lexicon = {}
for line in (assets / "reward/vader/vader_lexicon.txt").read_text().split("\n"):
    if line:
        word, value = line.split("\t")[:2]
        lexicon[word] = float(value)
print("words", len(lexicon))


def add(numbers):  # from left to right; sum() of newer Pythons compensates what is lost
    return functools.reduce(operator.add, numbers, 0.0)


def score(text):
    return add(lexicon.get(word, 0.0) for word in re.findall("[a-z]+(?:'[a-z]+)*", text.lower()))


for name in ["movieReviewSnippets", "tweets"]:
    lines = (assets / f"reward/vader/{name}_GroundTruth.txt").read_bytes().decode(errors="replace").split("\n")
    scores = [score(line.split("\t", 2)[2]) for line in lines if line.count("\t") >= 2]
    print(name, len(scores), repr(add(scores)), scores[:3])

answers = [json.loads(line)["answer"] for line in (assets / "prompts/gsm8k/test.jsonl").read_text().split("\n") if line]
print("gsm8k", len(answers), sum(float(answer.split("####")[1].replace(",", "")) for answer in answers))
