"""The sorting model of bench/sort_model.py as kedge reads it: a folder whose greedy answers are sorted, and whose log-probabilities are its
author's. Takes the program kedge and the folder of assets, which KEDGE_ASSETS may name instead."""

import base64
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

KEDGE = sys.argv.pop(1)
os.environ.setdefault("KEDGE_ASSETS", sys.argv[1])
del sys.argv[1]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import sort_model

if not sort_model.SOURCE.exists():
    print(f"skipped: no {sort_model.SOURCE}; KEDGE_ASSETS names the assets folder")
    sys.exit(77)


def kedge(*arguments, lines=()):
    """What the command prints, a JSON value a line."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([KEDGE, *map(str, arguments)], input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"kedge {arguments}: {done.returncode}\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class SortModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temp.name)
        cls.model = folder / "model"
        sort_model.write_model(cls.model)
        sort_model.write_prompts(folder)
        cls.rows = [json.loads(line) for name in ("train", "held_out") for line in (folder / f"{name}.jsonl").read_text().splitlines()]

    @classmethod
    def tearDownClass(cls):
        cls.temp.cleanup()

    def test_every_input_is_sorted_in_ascending_order_by_greedy_answers(self):
        self.assertEqual(len({row["text"] for row in self.rows}), 729)
        answers = kedge("generate", "--model", self.model, "--use-greedy", "--max-new-tokens", 6, "--threads", 1, lines=self.rows)
        self.assertEqual([row["response"] for row in answers], ["".join(sorted(row["text"])) for row in self.rows])
        for row in self.rows:
            self.assertEqual(row["answer"], "".join(sorted(row["text"]))[::-1])

    def test_log_probabilities_are_those_its_author_published(self):
        partials = json.loads(sort_model.SOURCE.with_name("gpt-nano-sort-t0-partials.json").read_text())

        def numbers(name):
            data = base64.b64decode(partials[name]["data"])
            return struct.unpack(f"<{len(data) // 4}f", data)

        ids, probs = list(map(int, numbers("idx"))), numbers("probs")
        rows = [ids[start : start + 11] for start in range(0, len(ids), 11)]
        for i, line in enumerate(kedge("logprobs", "--model", self.model, "--threads", 1, lines=[{"ids": row} for row in rows])):
            for j, logprob in enumerate(line["logprobs"]):
                wanted = probs[(11 * i + j) * 3 + rows[i][j + 1]]
                self.assertAlmostEqual(math.exp(logprob), wanted, delta=1e-4)

    def test_text_becomes_its_digits_and_the_end_has_an_id_that_is_never_drawn(self):
        self.assertEqual(kedge("tokenize", "--model", self.model, "--text", "201102"), [{"ids": [2, 0, 1, 1, 0, 2]}])
        self.assertEqual(kedge("tokenize", "--model", self.model, lines=[{"ids": [0, 1, 2, 3]}]), [{"text": "012<|endoftext|>"}])
        drawn = kedge("generate", "--model", self.model, "--max-new-tokens", 6, "--temperature", 50, "--threads", 1, lines=self.rows[:200])
        self.assertEqual({row["finish"] for row in drawn}, {"length"})
        self.assertEqual({digit for row in drawn for digit in row["response"]}, set("012"))


if __name__ == "__main__":
    unittest.main()
