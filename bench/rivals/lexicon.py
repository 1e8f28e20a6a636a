"""The reward of the stories job, as kedge's rule `lexicon` defines it (docs/rewards.md): the sum of the values of an answer's words, held
within [-10, 10]."""

import re

WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
BOUND = 10.0


class Lexicon:
    """A file with lines of a word, a tab, its value and anything more; for a word that occurs twice, the last counts."""

    def __init__(self, path):
        self.values = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.strip():
                    word, value = line.split("\t")[:2]
                    self.values[word] = float(value)

    def sum(self, text):
        return sum(self.values.get(word, 0.0) for word in WORD.findall(text.lower()))

    def __call__(self, text):
        return min(max(self.sum(text), -BOUND), BOUND)
