"""Reads the event files of write_events with TensorBoard's own readers and compares every value, step and text.

EventAccumulator is what scripts use; PluginEventAccumulator is what the tensorboard command itself serves from.
"""

import html.parser
import math
import struct
import subprocess
import sys
import tempfile
import unittest

from tensorboard import plugin_util
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util

KEEP_ALL = {"scalars": 0, "tensors": 0}


def float32(value):
    """The nearest 32-bit float; beyond their range an infinity."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def read(folder):
    return event_accumulator.EventAccumulator(folder, size_guidance=KEEP_ALL).Reload()


def read_as_the_program_does(folder):
    return plugin_event_accumulator.EventAccumulator(folder, size_guidance=KEEP_ALL).Reload()


def scalars(reader, tag):
    return [(event.step, event.value) for event in reader.Scalars(tag)]


def texts(reader, tag):
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto).item().decode()) for event in reader.Tensors(tag)]


def numbers(reader, tag):
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto).item()) for event in reader.Tensors(tag)]


class Cells(html.parser.HTMLParser):
    """The text of each table cell of a page, and the tags that stand in it."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.tags, self.in_cell = [], set(), False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True
        if tag == "br":
            self.rows[-1][-1] += "\n"

    def handle_endtag(self, tag):
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.in_cell:
            self.rows[-1][-1] += data


class TensorBoard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        subprocess.run([sys.argv[1], cls.folder], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return f"{self.folder}/{name}"

    def test_every_scalar_comes_back(self):
        reader = read(self.path("values"))
        steps = range(10000)
        self.assertEqual(scalars(reader, "train/loss"), [(step, 0.5 * step - 1000) for step in steps])
        self.assertEqual(scalars(reader, "Größe/奖励 📈"), [(step, -step) for step in steps])
        self.assertEqual(scalars(reader, "train/thirds"), [(step, float32(step / 3)) for step in steps])
        self.assertEqual(scalars(reader, "far"), [(2**31, 31), (2**32, 32), (2**40, 40)])
        self.assertEqual(scalars(reader, "same_step"), [(7, 0), (7, 1), (7, 2)])
        self.assertEqual(scalars(reader, "not\ufffdutf8"), [(0, 1)])
        self.assertEqual(len(reader.Tags()["scalars"]), 7)

    def test_extreme_numbers_come_back(self):
        found = scalars(read(self.path("values")), "extremes")
        wanted = [-1.5, 1e-45, 3.4028234663852886e38, 0.1, 0.0, -0.0, 1e-50, 1e300, math.nan, math.inf, -math.inf]
        self.assertEqual([step for step, _ in found], list(range(len(wanted))))
        for (_, value), expected in zip(found, wanted):
            self.assertEqual(struct.pack("f", value), struct.pack("f", float32(expected)), expected)

    def test_the_program_itself_sees_the_same_scalars(self):
        reader = read_as_the_program_does(self.path("values"))
        self.assertEqual(numbers(reader, "train/loss"), [(step, 0.5 * step - 1000) for step in range(10000)])
        self.assertEqual(reader.SummaryMetadata("train/loss").plugin_data.plugin_name, "scalars")

    def test_every_text_comes_back(self):
        for reader in (read(self.path("texts")), read_as_the_program_does(self.path("texts"))):
            wanted = [(step, f"# step {step}\n\n奖励: *{step}*") for step in range(300)]
            self.assertEqual(texts(reader, "config"), wanted)
            self.assertEqual(texts(reader, "broken"), [(5, "cut in a character: \ufffd")])
            self.assertEqual(reader.SummaryMetadata("config").plugin_data.plugin_name, "text")

    def test_a_sample_table_shows_the_text_as_it_is(self):
        (step, markdown), = texts(read(self.path("texts")), "table/train_rollouts")
        self.assertEqual(step, 3)
        page = Cells(plugin_util.markdown_to_safe_html(markdown))
        self.assertEqual(page.rows, [
            ["step", "prompt", "response", "reward", "finish"],
            ["3", "What is 2 * 3 * 4?", "24", "1.5", "stop"],
            ["3", "a | b\n`code` **bold** _em_ [link](http://x) <script>alert(1)</script> &amp; \\", "第一\n第二\n\n# no title", "-0.25", ""],
            ["3", "", "", "0.0", ""],
        ])
        self.assertEqual(page.tags, {"table", "thead", "tbody", "tr", "th", "td", "br"})

    def test_a_resumed_run_replaces_what_the_killed_one_wrote_after_the_checkpoint(self):
        wanted = [(step, 1 if step < 100 else 2) for step in range(200)]
        self.assertEqual(scalars(read(self.path("resumed")), "train/loss"), wanted)
        program = read_as_the_program_does(self.path("resumed"))
        self.assertEqual(numbers(program, "train/loss"), wanted)
        self.assertEqual(texts(program, "table/train_rollouts"),
                         [(step, "first" if step < 100 else "second") for step in range(0, 200, 20)])

    def test_a_validation_before_the_checkpoint_is_kept(self):
        # Only whole steps can be forgotten, so step 100 of the killed run stays beside the new one.
        wanted = [(step, 1) for step in range(101)] + [(step, 2) for step in range(100, 200)]
        reader = read(self.path("resumed_after_validation"))
        self.assertEqual(scalars(reader, "train/loss"), wanted)
        self.assertEqual(scalars(reader, "val/loss"), [(100, 10)])
        program = read_as_the_program_does(self.path("resumed_after_validation"))
        self.assertEqual(numbers(program, "train/loss"), wanted)
        self.assertEqual(numbers(program, "val/loss"), [(100, 10)])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
