"""Shared by the tests of kedge's servers with tritonclient: its calls, and what the numbers should be by kedge score and transformers."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch
import transformers
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import kedge_servers as servers

KEDGE = sys.argv.pop(1)
BATCH_SIZES = (1, 2, 3, 4, 5, 8, 9, 23)  # around one and two forward passes of four rows, and more
SAME = 1e-6  # of our own numbers, which are rewards below 1: a batch of another size may add in another order
PEER = 1e-5  # beside transformers in fp32, which adds in yet another order
SENTENCES = ["hi", "né", "Once upon a time, there was a little girl.", "第一 📈", "x" * 30]

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
figures = {}  # what was measured, by name


def note(name, difference):
    name = f"largest difference, {name}"
    figures[name] = max(figures.get(name, 0), float(difference))
    return difference


def tensors(named, binary=True):
    """A dictionary of arrays as inputs of a call."""
    inputs = []
    for name, array in named.items():
        datatype = {"int64": "INT64", "int32": "INT32", "float32": "FP32", "object": "BYTES"}[str(array.dtype)]
        inputs.append(triton.InferInput(name, list(array.shape), datatype))
        inputs[-1].set_data_from_numpy(array, binary_data=binary)
    return inputs


def token_arrays(rows, width=None):
    tokens, lengths = servers.padded(rows, width or max(map(len, rows)))
    return {"tokens": tokens, "sequence_lengths": lengths}


def sentence_arrays(texts):
    return {"sentences": numpy.array([[text.encode()] for text in texts], dtype=object)}


def wishes(names, binary):
    return [triton.InferRequestedOutput(name, binary_data=binary) for name in names]


def scores(folder, lines):
    """What kedge score gives for the lines."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    command = [KEDGE, "score", "--model", str(folder), "--device", "cpu", "--threads", "1"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=servers.CALL_LIMIT_S)
    return numpy.array([[json.loads(line)["reward"]] for line in done.stdout.splitlines()], dtype=numpy.float32)


class Peer:
    """The same folder in transformers."""

    def __init__(self, folder):
        self.model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
        self.model.config.pad_token_id = servers.PAD
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def padded(self, rows):
        width = max(map(len, rows))
        return torch.tensor([row + [servers.PAD] * (width - len(row)) for row in rows])

    def rewards(self, rows):
        ids = self.padded(rows)
        with torch.no_grad():
            return self.model(input_ids=ids, attention_mask=(ids != servers.PAD).long()).logits.numpy()

    def values(self, rows, width):
        """The head at every token, and zeros behind a row's end."""
        ids = self.padded(rows)
        with torch.no_grad():
            states = self.model.model(input_ids=ids, attention_mask=(ids != servers.PAD).long()).last_hidden_state
            found = self.model.score(states)[..., 0].numpy()
        values = numpy.zeros((len(rows), width), dtype=numpy.float32)
        for place, row in enumerate(rows):
            values[place, : len(row)] = found[place, : len(row)]
        return values


class Served(unittest.TestCase):
    """With a reward model to serve."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = servers.make_reward_model(KEDGE, cls.folder / "reward")
        cls.peer = Peer(cls.model)

    def close_to(self, found, wanted, limit, name):
        self.assertEqual(found.shape, wanted.shape, name)
        self.assertLessEqual(note(name, numpy.abs(found - wanted).max()), limit, name)

    def refused(self, text, call):
        with self.assertRaises(InferenceServerException) as caught:
            call()
        self.assertRegex(str(caught.exception), text)


def main():
    """Runs the tests of the script, and tells what was measured."""
    program = unittest.main(module="__main__", verbosity=2, exit=False)
    for name, value in sorted(figures.items()):
        print(f"{name}: {value:.3g}")
    sys.exit(not program.result.wasSuccessful())
