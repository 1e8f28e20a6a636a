"""Shared by the tests of kedge's servers with real clients: small models, kedge serve, and rows to ask about. Needs only numpy."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import threading
import time

import numpy

PAD, NUM_IDS = 256, 259  # of the tokenizer below: a byte is its own id, <pad>, <bos> and <eos> follow
START_LIMIT_S, STOP_LIMIT_S, CALL_LIMIT_S = 60, 60, 120


def byte_letters():
    """How byte-level tokenizers spell the bytes 0 to 255."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    spelled = {byte: chr(byte) for byte in plain} | {byte: chr(256 + place) for place, byte in enumerate(others)}
    return [spelled[byte] for byte in range(256)]


def write_tokenizer(folder):
    folder.mkdir(parents=True)
    special = {"<pad>": 256, "<bos>": 257, "<eos>": 258}
    vocab = {letter: byte for byte, letter in enumerate(byte_letters())} | special
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [{"id": id, "content": text, **flags} for text, id in special.items()],
                 "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))


def make_reward_model(kedge, folder, *flags):
    """A random reward model over bytes; returns its folder."""
    folder = pathlib.Path(folder)
    write_tokenizer(folder / "tokenizer")
    command = [kedge, "init", folder / "model", "--shape", "tiny", "--num-labels", "1", "--tokenizer", folder / "tokenizer", *flags]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=CALL_LIMIT_S)
    return folder / "model"


def random_rows(lengths, seed):
    """Lists of ids without special ones."""
    random = numpy.random.default_rng(seed)
    return [random.integers(0, 256, length).tolist() for length in lengths]


def ragged_rows(count, width, seed):
    """Rows of all lengths up to the width, the first of them as wide as that."""
    random = numpy.random.default_rng(seed)
    return random_rows([width, *random.integers(1, width + 1, count - 1)], seed + 1)


def padded(rows, width, seed=0):
    """(tokens, sequence_lengths) as a client sends them; what stands behind a row's end means nothing, so it is drawn at random."""
    tokens = numpy.random.default_rng(seed).integers(0, NUM_IDS, (len(rows), width), dtype=numpy.int64)
    for place, row in enumerate(rows):
        tokens[place, : len(row)] = row
    return tokens, numpy.array([[len(row)] for row in rows], dtype=numpy.int64)


def train_inputs(num_rows, width, seed):
    """What critic_train takes: tokens, returns, prev_values, mask."""
    random = numpy.random.default_rng(seed)
    numbers = lambda: random.normal(size=(num_rows, width - 1)).astype(numpy.float32)
    mask = random.integers(0, 2, (num_rows, width - 1)).astype(numpy.float32)
    mask[:, 0] = 1  # a loss in every row
    return {"tokens": random.integers(0, 256, (num_rows, width), dtype=numpy.int64), "returns": numbers(), "prev_values": numbers(), "mask": mask}


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": list(shape), "data": data}


def tokens_request(rows, width=None):
    """A request in JSON, as people write it."""
    tokens, lengths = padded(rows, width or max(map(len, rows)))
    return {"inputs": [tensor("tokens", "INT64", tokens.shape, tokens.tolist()), tensor("sequence_lengths", "INT64", lengths.shape, lengths.tolist())]}


class Server:
    """kedge serve with these arguments, on a port that was free, from its being ready to the end of the block."""

    def __init__(self, kedge, kind, *arguments):
        port_key = {"reward": "inference.port", "critic": "trainer.ppo.port"}[kind]
        command = [kedge, "serve", kind, "trainer.accelerator=cpu", "trainer.threads=1", f"{port_key}=0", *arguments]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines, self.port, self.is_ready = [], None, threading.Event()
        self.reader = threading.Thread(target=self.read_log)
        self.reader.start()

    def read_log(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/v2/models/", line):
                self.port = int(found[1])
            if f"kill -SIGINT {self.process.pid}" in line:
                self.is_ready.set()
        self.is_ready.set()  # it has ended

    def __enter__(self):
        self.is_ready.wait(START_LIMIT_S)
        if self.port is None or self.process.poll() is not None:
            self.kill()
            raise AssertionError(f"kedge serve did not start:\n{self.log()}")
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(STOP_LIMIT_S)
        finally:
            self.kill()
        if code != 0:
            raise AssertionError(f"kedge serve ended with {code}:\n{self.log()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()

    def token_file(self):
        """Of the token that a critic makes for calls that change it."""
        return pathlib.Path(re.search(r"need the token in (\S+);", self.log())[1])

    def log(self):
        return "".join(self.lines)

    @property
    def url(self):
        return f"127.0.0.1:{self.port}"

    def call(self, method, path, body=None, headers=None, limit_s=CALL_LIMIT_S):
        """(status, headers, body) of one plain HTTP call."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit_s)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def infer(self, model, request, limit_s=CALL_LIMIT_S):
        """The reply to a request in JSON."""
        status, _, body = self.call("POST", f"/v2/models/{model}/infer", json.dumps(request), limit_s=limit_s)
        if status != 200:
            raise AssertionError(f"{model}: {status}: {body!r}")
        return json.loads(body)

    def statistics(self, model):
        return json.loads(self.call("GET", f"/v2/models/{model}/stats")[2])["model_stats"][0]

    def executions(self, model):
        """(calls answered, runs of the model) so far."""
        stats = self.statistics(model)
        return stats["inference_stats"]["success"]["count"], stats["execution_count"]

    def gauge(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.call("GET", "/metrics")[2].decode(), re.M)[1])


def wait_until(is_so, limit_s=60):
    end = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.02)
