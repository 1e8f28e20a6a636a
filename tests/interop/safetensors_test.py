"""Our reader and writer beside the safetensors package: its files come back with equal tensors and metadata, and what it refuses we
refuse. Takes the program copy_safetensors."""

import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy
from safetensors import SafetensorError, TensorSpec, deserialize, safe_open, serialize_file
from safetensors.numpy import load_file, save_file

NUM_BROKEN = 4000
DTYPES = ["float32", "float16", "bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float64"]
SHAPES = [(), (1,), (0,), (3,), (2, 5), (4, 0, 2), (2, 1, 3, 2), (1000,)]


def framed(header, data=b"", length=None):
    """A file from a header, as JSON text or as what is to become it."""
    if not isinstance(header, (bytes, str)):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def tensors(file):
    """Name -> (dtype, shape, bytes), as the package reads them."""
    return {name: (info["dtype"], info["shape"], bytes(info["data"])) for name, info in deserialize(file.read_bytes())}


def metadata(file):
    with safe_open(file, "numpy") as opened:
        return opened.metadata()


def accepted(file):
    try:
        with safe_open(file, "numpy") as opened:
            opened.keys()
        return True
    except (SafetensorError, OSError):
        return False


def broken_files(seed):
    """Files near a good one: headers with a value replaced, bytes changed, ends cut off or added."""
    rng = random.Random(seed)
    values = [0, 1, 2, 4, 8, 12, -1, 2**31, 2**63, 2**64, 1.0, 1.5, None, True, "", "F32", "F99", [], [1], [0, 4], [4, 0], [0, 4, 8], {}, {"a": "b"}, {"a": 1}]
    for _ in range(NUM_BROKEN):
        header = {
            "__metadata__": {"format": "pt"},
            "a": entry("F32", [1], 0, 4),
            "b": entry("BF16", [2, 1], 4, 8),
            "c": entry("BOOL", [0], 8, 8),
            "d": entry("I64", [], 8, 16),
        }
        data = bytes(range(16))
        for _ in range(rng.randint(1, 2)):
            name = rng.choice(list(header))
            what = rng.randrange(6)
            if what == 0:
                header[name] = rng.choice(values)
            elif what == 1 and isinstance(header[name], dict) and header[name]:
                header[name][rng.choice(list(header[name]))] = rng.choice(values)
            elif what == 2 and isinstance(header[name], dict) and header[name]:
                del header[name][rng.choice(list(header[name]))]
            elif what == 3 and isinstance(header[name], dict) and isinstance(header[name].get("data_offsets"), list):
                header[name]["data_offsets"] = [offset + rng.choice([-8, -4, 0, 4, 8]) for offset in header[name]["data_offsets"] if isinstance(offset, int)]
            elif what == 4:
                data = data[: rng.randint(0, 16)] + bytes(rng.choice([0, 0, 1, 4]))
        file = framed(header, data)
        if rng.random() < 0.3:
            position = rng.randrange(len(file))
            file = file[:position] + bytes([rng.randrange(256)]) + file[position + 1 :]
        if rng.random() < 0.1:
            file = file[: rng.randrange(len(file))]
        yield file


class Safetensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.program = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.program.stdin.close()
        cls.program.stdout.close()
        assert cls.program.wait() == 0
        cls.temporary.cleanup()

    def copy(self, file):
        """What we say of the file, and the file that we make of it."""
        to = file.with_suffix(".copy")
        to.unlink(missing_ok=True)
        self.program.stdin.write(json.dumps({"from": str(file), "to": str(to)}) + "\n")
        self.program.stdin.flush()
        return json.loads(self.program.stdout.readline()), to

    def put(self, content):
        file = self.folder / "file.safetensors"
        file.write_bytes(content)
        return file

    def test_arrays_of_every_kind_come_back(self):
        rng = numpy.random.default_rng(1)
        arrays = {f"{dtype}{shape}": numpy.asarray(rng.random(shape) * 100).astype(dtype) for dtype in DTYPES for shape in SHAPES}
        file = self.folder / "arrays.safetensors"
        for said in (None, {"format": "pt"}, {"format": "np", "Größe": "奖励 \" \\ \n\t\x7f", "": ""}):
            save_file(arrays, file, metadata=said)
            reply, copied = self.copy(file)
            self.assertEqual(set(reply.get("names", reply)), set(arrays))
            back = load_file(copied)
            self.assertEqual(set(back), set(arrays))
            for name, array in arrays.items():
                self.assertEqual((back[name].dtype, back[name].shape, back[name].tobytes()), (array.dtype, array.shape, array.tobytes()), name)
            self.assertEqual(metadata(copied), said)

    def test_types_that_numpy_lacks_come_back(self):
        shapes = {"bfloat16": ([3, 2], 12), "float8_e4m3fn": ([5], 5), "float8_e5m2": ([1, 2], 2), "float8_e8m0fnu": ([2], 2), "complex64": ([2], 16)}
        held = {name: numpy.arange(size, dtype="uint8") for name, (_, size) in shapes.items()}
        given = {name: TensorSpec(dtype=name, shape=shape, data_ptr=held[name].ctypes.data, data_len=size) for name, (shape, size) in shapes.items()}
        file = self.folder / "types.safetensors"
        serialize_file(given, file)
        reply, copied = self.copy(file)
        self.assertEqual(set(reply.get("names", reply)), set(shapes))
        self.assertEqual(tensors(copied), tensors(file))
        self.assertEqual({name: data for name, (_, _, data) in tensors(copied).items()}, {name: array.tobytes() for name, array in held.items()})

    def test_our_data_begins_at_a_multiple_of_eight(self):
        for size in range(1, 17):
            file = self.folder / "aligned.safetensors"
            save_file({"n" * size: numpy.zeros(3, "float32")}, file)
            _, copied = self.copy(file)
            self.assertEqual(struct.unpack("<Q", copied.read_bytes()[:8])[0] % 8, 0)
            self.assertTrue(accepted(copied))

    def test_malformed_files_are_refused_by_both(self):
        good = {"a": entry("F32", [2], 0, 8)}
        eight = bytes(8)
        self.assertIn("names", self.copy(self.put(framed(good, eight)))[0])
        malformed = {
            "nothing": b"",
            "seven bytes": bytes(7),
            "no header": bytes(8),
            "a header beyond the file": framed(good, eight, length=4096),
            "a header bomb": framed(good, eight, length=100_000_001),
            "the largest length": framed(good, eight, length=2**64 - 1),
            "not JSON": framed("{a}", eight),
            "not UTF-8": framed(b'{"\xff": 1}', eight),
            "a list": framed("[]"),
            "bytes behind the object": framed(json.dumps(good) + "x", eight),
            "no dtype": framed({"a": {"shape": [2], "data_offsets": [0, 8]}}, eight),
            "an unknown dtype": framed({"a": entry("F33", [2], 0, 8)}, eight),
            "a negative size": framed({"a": entry("F32", [-2], 0, 8)}, eight),
            "sizes that overflow": framed({"a": entry("F32", [2**32, 2**32], 0, 0)}),
            "sizes that overflow before a zero": framed({"a": entry("F32", [2**40, 2**40, 0], 0, 0)}),
            "bits that overflow": framed({"a": entry("F32", [2**62], 0, 0)}),
            "a shape unlike the bytes": framed({"a": entry("F32", [3], 0, 8)}, eight),
            "half a byte": framed({"a": entry("F4", [1], 0, 1)}, bytes(1)),
            "offsets in the wrong order": framed({"a": entry("F32", [2], 8, 0)}, eight),
            "three offsets": framed({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 8]}}, eight),
            "offsets beyond the data": framed({"a": entry("F32", [4], 0, 16)}, eight),
            "truncated": framed(good, bytes(7)),
            "bytes after the last tensor": framed(good, bytes(9)),
            "a hole in front": framed({"a": entry("F32", [1], 4, 8)}, eight),
            "a hole between": framed({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)),
            "an overlap": framed({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
            "the same bytes twice": framed({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 0, 8)}, eight),
            "metadata of numbers": framed({"__metadata__": {"a": 1}}),
            "metadata in a list": framed({"__metadata__": ["a"]}),
        }
        for name, content in malformed.items():
            file = self.put(content)
            reply, copied = self.copy(file)
            self.assertFalse(accepted(file), name)
            self.assertIn(str(file), reply.get("error", ""), name)
            self.assertFalse(copied.exists(), name)

    def test_what_the_format_forbids_and_the_package_lets_pass_we_refuse(self):
        good = json.dumps(entry("F32", [2], 0, 8))
        for header in (f' {{"a": {good}}}', f'{{"a": {good}, "a": {good}}}'):
            file = self.put(framed(header, bytes(8)))
            self.assertTrue(accepted(file), header)
            self.assertIn("error", self.copy(file)[0], header)

    def test_what_the_package_refuses_we_refuse(self):
        refused, both = 0, 0
        for content in broken_files(7):
            file = self.put(content)
            reply, copied = self.copy(file)
            if not accepted(file):
                refused += 1
                self.assertIn("error", reply, content)
            elif "error" not in reply:
                both += 1
                self.assertTrue(accepted(copied), content)
                self.assertEqual(tensors(copied), tensors(file), content)
        self.assertGreater(refused, NUM_BROKEN / 3)
        self.assertGreater(both, NUM_BROKEN / 50)
        print(f"{NUM_BROKEN} files, {refused} refused by the package and by us, {both} read by both")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
