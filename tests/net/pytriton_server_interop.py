"""Our client beside a real PyTriton server: a reward function and a train function in Python, called by call_model, which this takes."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy

from kedge_servers import ragged_rows, tensor, tokens_request, wait_until

BAD, SLOW = 666, 777  # first ids of a row that makes the function fail, or wait
SLOW_S = 5
LIMIT_S = 120


def serve(port, folder):
    """Serves until it is killed."""
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig

    num_trained = 0

    def wait_if_slow(tokens):
        if tokens[0, 0] == SLOW:
            (folder / "slow").write_text("")
            time.sleep(SLOW_S)

    def reward(requests):
        answers = []
        for request in requests:
            if "sentences" in request:
                rewards = [[len(text)] for text in request["sentences"][:, 0]]
            else:
                tokens, lengths = request["tokens"], request["sequence_lengths"]
                wait_if_slow(tokens)
                if tokens[0, 0] == BAD:
                    raise ValueError("no such row\n" * 2000)
                rewards = [[row[: length[0]].sum() / 8] for row, length in zip(tokens, lengths)]
            answers.append({"rewards": numpy.array(rewards, dtype=numpy.float32)})
        return answers

    def train(requests):
        nonlocal num_trained
        request, = requests
        wait_if_slow(request["tokens"])
        num_trained += 1
        # Of another type than declared: PyTriton makes FP32 of it.
        return [{"loss_mean": numpy.array([float((request["tokens"][:, 1:] * request["mask"]).sum())]), "train_calls": numpy.array([num_trained])}]

    rows = lambda name, dtype: Tensor(name=name, dtype=dtype, shape=(-1,), optional=True)
    with Triton(config=TritonConfig(http_address="127.0.0.1", http_port=port, allow_grpc=False, allow_metrics=False), workspace=folder / "workspace") as triton:
        triton.bind(
            model_name="reward_model", infer_func=reward,
            inputs=[rows("sentences", bytes), rows("tokens", numpy.int64), rows("sequence_lengths", numpy.int64)],
            outputs=[Tensor(name="rewards", dtype=numpy.float32, shape=(1,))],
            config=ModelConfig(max_batch_size=64, batcher=DynamicBatcher(max_queue_delay_microseconds=5000, preferred_batch_size=[8])))
        triton.bind(
            model_name="critic_train", infer_func=train,
            inputs=[Tensor(name="tokens", dtype=numpy.int64, shape=(-1, -1)), Tensor(name="mask", dtype=numpy.float32, shape=(-1, -1))],
            outputs=[Tensor(name="loss_mean", dtype=numpy.float32, shape=(1,)), Tensor(name="train_calls", dtype=numpy.int64, shape=(1,))],
            config=ModelConfig(batching=False))
        triton.serve()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class PyTritonServer:
    """The functions above in processes of their own, which can be killed."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    def start(self):
        self.log = open(self.folder / "server.log", "ab")
        command = [sys.executable, __file__, "serve", str(self.port), str(self.folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def processes(self):
        """(id, command line) of all that belong to it."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getpgid(int(folder.name)) == self.process.pid:
                    yield int(folder.name), (folder / "cmdline").read_bytes()
            except (ProcessLookupError, FileNotFoundError):
                pass  # it has ended meanwhile

    def kill(self):
        """All of it at once, as a machine that fails, but for the process that Python keeps to clean up shared memory."""
        if self.process is None:
            return
        killed = [process for process, command in self.processes() if b"resource_tracker" not in command]
        for process in killed:
            with contextlib.suppress(ProcessLookupError):  # it ended with the one killed before
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not any(True for _ in self.processes()))
        for process in killed:  # Triton's own
            for path in pathlib.Path("/dev/shm").glob(f"pytrtion{process}-*"):
                path.unlink()
        shutil.rmtree(self.folder / "workspace", ignore_errors=True)
        self.log.close()
        self.process = None

    def has_begun_a_slow_call(self):
        return (self.folder / "slow").exists()

    def forget_slow_calls(self):
        (self.folder / "slow").unlink(missing_ok=True)


class Client:
    """call_model: one question after another."""

    def __init__(self, port, limit_s=LIMIT_S):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([PROGRAM, "127.0.0.1", str(port), str(limit_s)], text=True, **pipes)
        self.warnings = []
        self.reader = threading.Thread(target=lambda: self.warnings.extend(self.process.stderr))
        self.reader.start()
        self.watchdog = threading.Timer(3 * LIMIT_S, self.process.kill)
        self.watchdog.start()

    def ask(self, question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return self.answer()

    def start_asking(self, question):
        print(json.dumps(question), file=self.process.stdin, flush=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("call_model ended: " + "".join(self.warnings))
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        finally:
            self.watchdog.cancel()
            self.process.kill()
            self.process.wait()
            self.reader.join()
            self.process.stdout.close()
            self.process.stderr.close()


def reward_call(rows, width=None, datatype="INT64"):
    request = {"model": "reward_model", **tokens_request(rows, width)}
    request["inputs"][0]["datatype"] = datatype
    return request


def text_call(texts):
    return {"model": "reward_model", "inputs": [tensor("sentences", "BYTES", [len(texts), 1], texts)]}


def train_call(rows):
    width = len(rows[0])
    return {"model": "critic_train", "by_key": True, "parameters": {"request_key": "k"},
            "inputs": [tensor("tokens", "INT64", [len(rows), width], rows), tensor("mask", "FP32", [len(rows), width - 1], [1.0] * (len(rows) * (width - 1)))]}


def rewards(rows):
    return [tensor("rewards", "FP32", [len(rows), 1], [sum(row) / 8 for row in rows])]  # eighths are exact


class RealServer(unittest.TestCase):
    """In the order of their names, since a server takes seconds to start."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.server = PyTritonServer(cls.folder)
        cls.addClassCleanup(cls.server.kill)
        cls.client = Client(cls.server.port)
        cls.addClassCleanup(cls.client.close)

    def calls(self, *calls):
        return self.client.ask({"calls": calls})["replies"]

    def trained(self, reply):
        """(loss_mean, train_calls) of a reply."""
        self.assertNotIn("error", reply)
        return tuple(one["data"][0] for one in reply["outputs"])

    def test_1_a_server_that_is_not_there_yet_is_waited_for(self):
        self.client.start_asking({"config": "reward_model"})
        self.server.start()
        found = self.client.answer()
        self.assertFalse(found["is_kedge"], found)
        config = found["config"]
        self.assertEqual((config["name"], config["max_batch_size"]), ("reward_model", 64))
        self.assertEqual([(one["name"], one["data_type"], one["dims"], one["optional"]) for one in config["input"]],
                         [("sentences", "TYPE_STRING", [-1], True), ("tokens", "TYPE_INT64", [-1], True), ("sequence_lengths", "TYPE_INT64", [-1], True)])
        self.assertEqual([(one["name"], one["data_type"], one["dims"]) for one in config["output"]], [("rewards", "TYPE_FP32", [1])])
        train = self.client.ask({"config": "critic_train"})["config"]
        self.assertEqual((train["max_batch_size"], [one["dims"] for one in train["input"]]), (0, [[-1, -1], [-1, -1]]))
        self.assertEqual([one["name"] for one in train["output"]], ["loss_mean", "train_calls"])

    def test_2_many_calls_at_once(self):
        batches = [ragged_rows(1 + place % 9, 10 + place % 2, place) for place in range(60)]
        texts = [["a" * place, "né 📈"] for place in range(20)]
        replies = self.calls(*map(reward_call, batches), *map(text_call, texts))
        self.assertEqual([one["outputs"] for one in replies[:60]], [rewards(rows) for rows in batches])
        self.assertEqual([one["outputs"][0]["data"] for one in replies[60:]], [[len(text.encode()) for text in pair] for pair in texts])

    def test_3_train_calls(self):
        self.assertEqual([self.trained(self.calls(train_call([[1, 2, 3], [4, 5, 6]]))[0]) for _ in range(3)], [(16, 1), (16, 2), (16, 3)])  # a key means nothing to it

    def test_4_failures_are_errors_with_all_of_their_text(self):
        strange = {"model": "reward_model", "inputs": [tensor("rows", "INT64", [1, 1], [1])]}
        failed, good, unknown, wrong = self.calls(reward_call([[BAD, 1]]), reward_call([[1, 2, 3, 4]]), strange, reward_call([[1, 2, 3]], datatype="INT32"))
        self.assertEqual(failed["status"], 500, failed)
        self.assertIn(f"reward_model of the peer 127.0.0.1:{self.server.port}: HTTP 500: ", failed["error"])
        self.assertIn("Traceback", failed["error"])
        self.assertEqual(failed["error"].count("no such row\n"), 2000)
        self.assertEqual(good["outputs"], rewards([[1, 2, 3, 4]]))
        self.assertEqual(unknown["status"], 400, unknown)
        self.assertIn("rows", unknown["error"])
        self.assertEqual(wrong["status"], 400, wrong)
        self.assertIn("INT32", wrong["error"])
        short = Client(self.server.port, 2)
        try:
            self.assertIn("its model none was not ready within", short.ask({"config": "none"})["error"])
        finally:
            short.close()

    def test_5_a_server_that_is_killed_and_started_again(self):
        batches = [[[SLOW, 1]], *([[place, 2]] for place in range(20))]
        self.client.start_asking({"calls": list(map(reward_call, batches))})
        wait_until(self.server.has_begun_a_slow_call)
        self.server.kill()
        self.server.start()
        # What was under way is sent again, once the server has its models.
        self.assertEqual([one.get("outputs", one) for one in self.client.answer()["replies"]], list(map(rewards, batches)))
        self.server.forget_slow_calls()

    def test_6_a_call_that_must_not_be_repeated_is_not(self):
        self.client.start_asking({"calls": [train_call([[SLOW, 2, 3]])]})
        wait_until(self.server.has_begun_a_slow_call)
        self.server.kill()
        self.server.start()
        reply, = self.client.answer()["replies"]
        self.assertIsNone(reply["status"])
        self.assertIn("it is unknown whether the call was executed", reply["error"])
        # The new server has been told nothing before this, which never reached the old one and so may be sent again and again.
        self.assertEqual(self.trained(self.calls(train_call([[1, 2, 3]]))[0]), (5, 1))
        self.assertTrue(any("is unreachable" in line or "is not ready" in line for line in self.client.warnings), self.client.warnings)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        PROGRAM = sys.argv.pop(1)
        unittest.main(verbosity=2)
