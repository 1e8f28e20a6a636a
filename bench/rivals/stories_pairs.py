"""Preference pairs for a reward model of the stories job, from answers that `kedge generate --samples` wrote, ranked by the lexicon
(the sum without bounds, which many of the longer answers would share).

    stories_pairs.py ANSWERS.jsonl LEXICON OUT_FOLDER

The best of a prompt's answers is paired with the worst, the second with the last but one, and so on, where they differ by a point at
least. Writes train.jsonl, and validation.jsonl with the pairs of every eighth prompt, {"prompt", "chosen", "rejected"} a line. Prints one
JSON line with the counts.
"""

import collections
import json
import pathlib
import sys

import lexicon
import rival_data


def pairs_of(prompt, answers, score):
    ranked = sorted(answers, key=score)
    for worse, better in zip(ranked[: len(ranked) // 2], reversed(ranked)):
        if score(better) - score(worse) >= 1:
            yield dict(prompt=prompt, chosen=better, rejected=worse)


def main():
    answers_file, lexicon_file, out = sys.argv[1:]
    score = lexicon.Lexicon(lexicon_file).sum
    answers = collections.defaultdict(list)
    prompts = {}
    for row in rival_data.read_rows(answers_file):
        answers[row["index"]].append(row["response"])
        prompts[row["index"]] = row["text"]
    files = dict(train=[], validation=[])
    for index, prompt in prompts.items():
        files["validation" if index % 8 == 0 else "train"] += pairs_of(prompt, answers[index], score)
    for name, pairs in files.items():
        (pathlib.Path(out) / f"{name}.jsonl").write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs), "utf-8")
    print(json.dumps(dict(answers=sum(map(len, answers.values())), **{name: len(pairs) for name, pairs in files.items()})))


if __name__ == "__main__":
    main()
