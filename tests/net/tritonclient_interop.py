"""kedge's servers beside NVIDIA's own client: tritonclient.http and its asyncio flavour, plain HTTP for what a client would never send, and
transformers for what the numbers should be. Takes the program kedge."""

import asyncio
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy
import torch
import transformers
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from safetensors.torch import load_file, save_file
from tritonclient.utils import InferenceServerException

import kedge_servers as servers

KEDGE = sys.argv.pop(1)
WIDTH = 48
BATCH_SIZES = (1, 2, 3, 4, 5, 8, 9, 23)  # around one and two forward passes of four rows, and more
SAME = 1e-6  # of our own numbers, which are rewards below 1: a batch of another size may add in another order
PEER = 1e-5  # beside transformers in fp32, which adds in yet another order
SENTENCES = ["hi", "né", "Once upon a time, there was a little girl.", "第一 📈", "x" * 30]

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
largest = {}  # difference seen, by name


def note(name, difference):
    largest[name] = max(largest.get(name, 0), float(difference))
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
    done = subprocess.run([KEDGE, "score", "--model", str(folder), "--device", "cpu", "--threads", "1"], input=given, capture_output=True, text=True,
                          check=True, timeout=servers.CALL_LIMIT_S)
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
            found = self.model.score(self.model.model(input_ids=ids, attention_mask=(ids != servers.PAD).long()).last_hidden_state)[..., 0].numpy()
        values = numpy.zeros((len(rows), width), dtype=numpy.float32)
        for place, row in enumerate(rows):
            values[place, : len(row)] = found[place, : len(row)]
        return values


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.enterClassContext(cls.folder_context())

    @classmethod
    def folder_context(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(temporary.name)
        cls.model = servers.make_reward_model(KEDGE, cls.folder / "reward")
        cls.peer = Peer(cls.model)
        return temporary

    def close_to(self, found, wanted, limit, name):
        self.assertEqual(found.shape, wanted.shape, name)
        self.assertLessEqual(note(name, numpy.abs(found - wanted).max()), limit, name)

    def refused(self, text, call):
        with self.assertRaises(InferenceServerException) as caught:
            call()
        self.assertRegex(str(caught.exception), text)


class RewardServer(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The key of the reference for cutting off padding is taken, and does nothing.
        cls.server = cls.enterClassContext(servers.Server(KEDGE, "reward", f"rm_model_file={cls.model}", "model.encoder_seq_length=96",
                                                          "inference.strip_sequence_length_to_multiple=32"))
        cls.client = cls.enterClassContext(triton.InferenceServerClient(cls.server.url, concurrency=16))

    def rewards(self, named, **options):
        return self.client.infer("reward_model", tensors(named), **options).as_numpy("rewards")

    def test_the_server_tells_what_it_is(self):
        client = self.client
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("reward_model") and client.is_model_ready("reward_model", "1"))
        self.assertFalse(client.is_model_ready("reward") or client.is_model_ready("reward_model", "2"))
        self.assertEqual(client.get_server_metadata()["name"], "kedge")
        self.assertEqual(set(client.get_server_metadata()["extensions"]), {"binary_tensor_data", "model_configuration", "model_repository", "parameters", "statistics"})
        self.assertEqual(client.get_model_metadata("reward_model"), {
            "name": "reward_model", "versions": ["1"], "platform": "python",
            "inputs": [{"name": "sentences", "datatype": "BYTES", "shape": [-1, -1]}, {"name": "tokens", "datatype": "INT64", "shape": [-1, -1]},
                       {"name": "sequence_lengths", "datatype": "INT64", "shape": [-1, -1]}],
            "outputs": [{"name": "rewards", "datatype": "FP32", "shape": [-1, 1]}]})
        config = client.get_model_config("reward_model", "1")
        self.assertEqual(config["max_batch_size"], 9999999)
        self.assertEqual([(one["name"], one["data_type"], one["dims"], one["optional"]) for one in config["input"]],
                         [("sentences", "TYPE_STRING", [-1], True), ("tokens", "TYPE_INT64", [-1], True), ("sequence_lengths", "TYPE_INT64", [-1], True)])
        self.assertEqual(config["dynamic_batching"], {"preferred_batch_size": [4], "max_queue_delay_microseconds": 2000})
        self.assertEqual(config["parameters"]["encoder_seq_length"], {"string_value": "96"})
        self.assertEqual(client.get_model_repository_index(), [{"name": "reward_model", "version": "1", "state": "READY", "reason": ""}])

    def test_statistics_count_rows_and_runs(self):
        before, = self.client.get_inference_statistics("reward_model")["model_stats"]
        self.rewards(token_arrays(servers.ragged_rows(5, 9, 1)))
        after, = self.client.get_inference_statistics()["model_stats"]
        self.assertEqual(after["inference_count"] - before["inference_count"], 5)
        self.assertEqual(after["execution_count"] - before["execution_count"], 1)
        self.assertEqual(after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"], 1)

    def test_all_four_modes_give_the_same_numbers(self):
        rows = servers.ragged_rows(5, WIDTH, 2)
        for kind, named, lines in (("tokens", token_arrays(rows), [{"ids": row} for row in rows]),
                                   ("sentences", sentence_arrays(SENTENCES), [{"text": text} for text in SENTENCES])):
            wanted = scores(self.model, lines)
            for binary_in in (True, False):
                for outputs in (wishes(["rewards"], True), wishes(["rewards"], False), None):
                    with self.subTest(kind=kind, binary_in=binary_in, outputs=outputs and outputs[0]._get_tensor()):
                        result = self.client.infer("reward_model", tensors(named, binary_in), outputs=outputs, request_id="seven")
                        self.assertEqual(result.get_response()["id"], "seven")
                        self.assertEqual("data" in result.get_output("rewards"), outputs is not None and not outputs[0]._get_tensor()["parameters"]["binary_data"])
                        self.close_to(result.as_numpy("rewards"), wanted, SAME, "kedge score")

    def test_rewards_are_those_of_transformers(self):
        for count in BATCH_SIZES:
            rows = servers.ragged_rows(count, WIDTH, 10 + count)
            found = self.rewards(token_arrays(rows))
            self.close_to(found, self.peer.rewards(rows), PEER, "rewards, transformers")
            self.close_to(found, scores(self.model, [{"ids": row} for row in rows]), SAME, "kedge score")
            self.close_to(self.rewards(token_arrays(rows, WIDTH + 20)), found, SAME, "wider")
            alone = numpy.concatenate([self.rewards(token_arrays([row])) for row in rows])
            self.close_to(alone, found, SAME, "alone")
        ids = [self.peer.tokenizer(text, add_special_tokens=False)["input_ids"] for text in SENTENCES]
        self.close_to(self.rewards(sentence_arrays(SENTENCES)), self.peer.rewards(ids), PEER, "sentences, transformers")
        # Longer texts are cut to encoder_seq_length.
        self.close_to(self.rewards(sentence_arrays(["y" * 500])), self.peer.rewards([[ord("y")] * 96]), PEER, "sentences, transformers")

    def test_sentences_win_over_ids(self):
        both = sentence_arrays(SENTENCES[:2]) | token_arrays(servers.ragged_rows(2, 7, 3))
        self.close_to(self.rewards(both), self.rewards(sentence_arrays(SENTENCES[:2])), SAME, "alone")

    def test_many_calls_in_flight(self):
        batches = [servers.ragged_rows(1 + place % 5, 20 + place % 2, 100 + place) for place in range(48)]
        flying = [self.client.async_infer("reward_model", tensors(token_arrays(rows)), request_id=str(place)) for place, rows in enumerate(batches)]
        for place, (result, rows) in enumerate(zip(flying, batches)):
            result = result.get_result(timeout=servers.CALL_LIMIT_S)
            self.assertEqual(result.get_response()["id"], str(place))
            self.close_to(result.as_numpy("rewards"), self.rewards(token_arrays(rows)), SAME, "merged")

    def test_compressed_requests(self):
        rows = servers.ragged_rows(5, WIDTH, 4)
        for algorithm in ("gzip", "deflate"):
            for binary in (True, False):
                for named in (token_arrays(rows), sentence_arrays(SENTENCES)):
                    found = self.client.infer("reward_model", tensors(named, binary), request_compression_algorithm=algorithm, response_compression_algorithm="gzip")
                    self.close_to(found.as_numpy("rewards"), self.rewards(named), SAME, "alone")

    def test_what_is_refused_says_why(self):
        good = token_arrays(servers.ragged_rows(2, 5, 5))
        infer = lambda named, model="reward_model", **options: lambda: self.client.infer(model, tensors(named), **options)
        self.refused(r"^\[404\] no model named rewards$", infer(good, "rewards"))
        self.refused(r"^\[404\] no version 2 of model reward_model$", infer(good, model_version="2"))
        self.refused(r"^\[400\].*weights", infer(good | {"weights": numpy.zeros((2, 1), numpy.float32)}))
        self.refused(r"^\[400\].*loss", infer(good, outputs=wishes(["loss"], True)))
        self.refused(r"^\[400\] wants sentences, or tokens together with sequence_lengths$", infer({"tokens": good["tokens"]}))
        self.refused(r"^\[400\].*tokens.*INT32", infer(good | {"tokens": good["tokens"].astype(numpy.int32)}))
        self.refused(r"^\[404\]", lambda: self.client.get_model_config("rewards"))
        self.refused(r"^\[404\]", lambda: self.client.get_model_metadata("reward_model", "2"))
        self.refused(r"^\[404\]", lambda: self.client.get_inference_statistics("rewards"))
        self.refused(r"^\[404\]", lambda: self.client.load_model("reward_model"))
        self.close_to(self.rewards(good), scores(self.model, [{"ids": row[: length[0]].tolist()} for row, length in zip(good["tokens"], good["sequence_lengths"])]), SAME, "kedge score")

    def test_the_asyncio_client(self):
        batches = [servers.ragged_rows(1 + place % 4, 24, 200 + place) for place in range(24)]

        async def ask():
            async with triton_aio.InferenceServerClient(self.server.url, conn_limit=24) as client:
                self.assertTrue(await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("reward_model"))
                self.assertEqual((await client.get_server_metadata())["name"], "kedge")
                self.assertEqual((await client.get_model_config("reward_model"))["name"], "reward_model")
                self.assertEqual([one["name"] for one in await client.get_model_repository_index()], ["reward_model"])
                self.assertEqual((await client.get_inference_statistics())["model_stats"][0]["name"], "reward_model")
                calls = [client.infer("reward_model", tensors(token_arrays(rows), place % 2 == 0), outputs=wishes(["rewards"], place % 3 == 0),
                                      request_compression_algorithm=(None, "gzip", "deflate")[place % 3]) for place, rows in enumerate(batches)]
                with self.assertRaisesRegex(InferenceServerException, "no model named rewards"):
                    await client.infer("rewards", tensors(token_arrays(batches[0])))
                return await asyncio.wait_for(asyncio.gather(*calls), servers.CALL_LIMIT_S)

        for result, rows in zip(asyncio.run(ask()), batches):
            self.close_to(result.as_numpy("rewards"), self.rewards(token_arrays(rows)), SAME, "merged")

    def malformed(self):
        """(status, what is wrong, body, headers) of calls to reward_model."""
        good = servers.tokens_request([[1, 2, 3], [4, 5]])
        length = "Inference-Header-Content-Length"

        def changed(place, **changes):
            inputs = [dict(one) for one in good["inputs"]]
            inputs[place] |= changes
            return {"inputs": [{key: value for key, value in one.items() if value is not None} for one in inputs]}

        def binary(size, data, header=None, datatype="BYTES", shape=(1, 1), name="sentences"):
            head = json.dumps({"inputs": [{"name": name, "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": size}}]}).encode()
            return head + data, {length: str(len(head)) if header is None else header}

        hello = b"\x02\0\0\0hi"
        tokens, lengths = good["inputs"]
        shared = {"shared_memory_region": "region", "shared_memory_byte_size": 48}
        for status, what, body, *headers in [
            (400, "not JSON", b"{"), (400, "empty", b""), (400, "no object", b"[]"), (400, "two values", b"{}{}"), (400, "not UTF-8", b'{"id":"\xff"}'),
            (400, "deep", b"[" * 100000), (400, "no inputs", {}), (400, "inputs no list", {"inputs": {}}), (400, "input no object", {"inputs": [3]}),
            (400, "id no text", good | {"id": 7}), (400, "outputs no list", good | {"outputs": {}}), (400, "parameters no object", good | {"parameters": 3}),
            (400, "reserved parameter", good | {"parameters": {"triton_x": 1}}),
            (400, "no name", changed(0, name=None)), (400, "name no text", changed(0, name=3)), (400, "no shape", changed(0, shape=None)),
            (400, "shape no list", changed(0, shape="[2,3]")), (400, "negative size", changed(0, shape=[-2, 3])), (400, "huge size", changed(0, shape=[2**62, 2**62])),
            (400, "no datatype", changed(0, datatype=None)), (400, "unknown datatype", changed(0, datatype="INT65")), (400, "no data", changed(0, data=None)),
            (400, "data twice", changed(0, parameters={"binary_data_size": 48})), (400, "too few data", changed(0, data=[1, 2, 3])),
            (400, "texts as numbers", changed(0, data=["1"] * 6)), (400, "fractions", changed(0, data=[1.5] * 6)), (400, "beyond 64 bits", changed(0, data=[2**64] * 6)),
            (400, "header beyond the body", *binary(6, hello, "100000")), (400, "header negative", *binary(6, hello, "-1")), (400, "header no number", *binary(6, hello, "x")),
            (400, "raw form of a model with several inputs", hello, {length: "0"}), (400, "bytes left over", *binary(6, hello + b"x")), (400, "bytes missing", *binary(9, hello)),
            (400, "element beyond its tensor", *binary(6, b"\x09\0\0\0hi")), (400, "size of another shape", *binary(6, hello, shape=(2, 1))),
            (400, "bad UTF-8", *binary(6, b"\x02\0\0\0\xff\xfe")), (400, "an empty text", *binary(4, b"\0\0\0\0")),
            (400, "unknown input", {"inputs": [*good["inputs"], servers.tensor("weights", "INT64", [2, 1], [1, 1])]}), (400, "unknown output", good | {"outputs": [{"name": "loss"}]}),
            (400, "input twice", {"inputs": [tokens, tokens, lengths]}), (400, "input missing", {"inputs": [tokens]}),
            (400, "another type", changed(0, datatype="INT32")), (400, "lengths as fractions", changed(1, datatype="FP32", data=[3.0, 2.0])),
            (400, "rank 1", changed(0, shape=[6])), (400, "rank 3", changed(0, shape=[2, 3, 1])), (400, "two lengths a row", changed(1, shape=[1, 2])),
            (400, "rows disagree", changed(1, shape=[1, 1], data=[3])), (400, "no rows", {"inputs": [tokens | {"shape": [0, 3], "data": []}, lengths | {"shape": [0, 1], "data": []}]}),
            (400, "more rows than max_batch_size", *binary(40000000, bytes(40000000), shape=(10000000, 1))),
            (400, "length 0", changed(1, data=[3, 0])), (400, "length beyond the width", changed(1, data=[4, 2])), (400, "negative length", changed(1, data=[-1, 2])),
            (400, "id beyond the vocabulary", changed(0, data=[1, 2, servers.NUM_IDS, 4, 5, 6])), (400, "negative id", changed(0, data=[-1, 2, 3, 4, 5, 6])),
            (400, "wider than encoder_seq_length", servers.tokens_request([[1] * 97])), (400, "two texts a row", {"inputs": [servers.tensor("sentences", "BYTES", [1, 2], ["a", "b"])]}),
            (501, "shared memory", changed(0, data=None, parameters=shared)), (501, "unknown compression", good, {"Content-Encoding": "br"}),
            (400, "broken gzip", b"not gzip", {"Content-Encoding": "gzip"}),
        ]:
            yield status, what, body if isinstance(body, bytes) else json.dumps(body).encode(), headers[0] if headers else {}

    def test_malformed_requests(self):
        good = json.dumps(servers.tokens_request([[1, 2, 3], [4, 5]]))
        count = 0
        wanted = self.server.infer("reward_model", json.loads(good))["outputs"]
        for status, what, body, headers in self.malformed():
            with self.subTest(what=what):
                found, answered, text = self.server.call("POST", "/v2/models/reward_model/infer", body, headers)
                self.assertEqual(found, status, text[:500])
                self.assertEqual(answered["Content-Type"], "application/json")
                self.assertEqual(list(json.loads(text)), ["error"])
                if what == "unknown compression":
                    self.assertEqual(answered["Accept-Encoding"], "gzip, deflate")
                if "max_batch_size" in what:
                    self.assertIn(b"9999999", text)
                self.assertEqual(self.server.infer("reward_model", json.loads(good))["outputs"], wanted)
                count += 1
        largest["malformed calls"] = count

    def test_wrong_addresses_and_methods(self):
        for status, method, path in [(404, "GET", "/"), (404, "GET", "/v2/"), (404, "GET", "/v2/health"), (404, "GET", "/v2/health/ready/"), (404, "GET", "/v3"),
                                     (404, "GET", "/v2/models/none"), (404, "GET", "/v2/models/none/ready"), (404, "POST", "/v2/models/none/infer"), (404, "POST", "/v2/models/reward_model/infer/"),
                                     (404, "POST", "/v2/models/reward_model/versions/2/infer"), (404, "POST", "/v2/models/reward_model/generate"),
                                     (405, "GET", "/v2/models/reward_model/infer"), (405, "POST", "/v2/models/reward_model/config"), (405, "PUT", "/v2/models/reward_model/infer"),
                                     (405, "POST", "/v2/health/ready"), (405, "DELETE", "/v2"), (405, "GET", "/v2/repository/index"),
                                     (200, "GET", "/v2/models/reward%5Fmodel/ready?x=1")]:
            with self.subTest(method=method, path=path):
                self.assertEqual(self.server.call(method, path)[0], status)


class Merging(Served):
    """Calls wait for company until sixteen rows are there."""

    def setUp(self):
        self.server = self.enterContext(servers.Server(KEDGE, "reward", f"rm_model_file={self.model}", "inference.inference_micro_batch_size=16",
                                                       "inference.max_queue_delay_microseconds=2000000"))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.url, concurrency=8))

    def answers(self, batches):
        flying = [self.client.async_infer("reward_model", tensors(named)) for named in batches]
        return [result.get_result(timeout=servers.CALL_LIMIT_S).as_numpy("rewards") for result in flying]

    def test_calls_of_one_width_are_computed_together_and_others_are_not(self):
        batches = [servers.ragged_rows(2, 12, 300 + place) for place in range(8)]
        found = self.answers([token_arrays(rows) for rows in batches])
        self.assertEqual(self.server.executions("reward_model"), (8, 1))
        for rewards, rows in zip(found, batches):
            self.close_to(rewards, self.peer.rewards(rows), PEER, "merged, transformers")
            self.close_to(rewards, scores(self.model, [{"ids": row} for row in rows]), SAME, "merged")
        different = [token_arrays(servers.ragged_rows(2, width, 400 + width)) for width in (5, 6, 7)] + [sentence_arrays(["hello", "you"])]
        for rewards, named in zip(self.answers(different), different):
            self.assertEqual(rewards.shape, (2, 1))
        self.assertEqual(self.server.executions("reward_model"), (12, 5))


class Full(Served):
    def test_a_full_queue_and_a_server_that_ends_answer_503(self):
        with servers.Server(KEDGE, "reward", f"rm_model_file={self.model}", "inference.queue_limit=1", "inference.inference_micro_batch_size=16",
                            "inference.max_queue_delay_microseconds=60000000") as server:
            request = json.dumps(servers.tokens_request([[1, 2, 3]]))
            answers = []
            waiting = threading.Thread(target=lambda: answers.append(server.call("POST", "/v2/models/reward_model/infer", request)))
            waiting.start()
            servers.wait_until(lambda: server.gauge("kedge_queue_length") == 1)
            status, headers, body = server.call("POST", "/v2/models/reward_model/infer", request)
            self.assertEqual((status, headers["Retry-After"]), (503, "1"), body)
        waiting.join(servers.CALL_LIMIT_S)
        self.assertEqual(answers[0][0], 503)


class NotANumber(Served):
    def test_json_has_no_nan_and_binary_has(self):
        weights = load_file(self.model / "model.safetensors")
        weights["score.weight"][:] = float("nan")
        save_file(weights, self.model / "model.safetensors", {"format": "pt"})
        with servers.Server(KEDGE, "reward", f"rm_model_file={self.model}") as server, triton.InferenceServerClient(server.url) as client:
            inputs = tensors(token_arrays([[1, 2]]))
            self.assertTrue(numpy.isnan(client.infer("reward_model", inputs).as_numpy("rewards")).all())
            self.refused(r"^\[500\]", lambda: client.infer("reward_model", inputs, outputs=wishes(["rewards"], False)))


class Guarded(Served):
    def test_calls_without_the_token_are_refused_whatever_they_ask_for(self):
        (self.folder / "token").write_text("open sesame\n")
        with servers.Server(KEDGE, "reward", f"rm_model_file={self.model}", "--token-file", self.folder / "token") as server, triton.InferenceServerClient(server.url) as client:
            good = tensors(token_arrays([[1, 2]]))
            body = json.dumps(servers.tokens_request([[1, 2]]))
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "open sesame"}, {"Authorization": "Bearer open sesame2"}):
                for method, path in [("GET", "/v2/health/live"), ("GET", "/v2/health/ready"), ("GET", "/v2"), ("GET", "/v2/models/reward_model"), ("GET", "/v2/models/none"),
                                     ("GET", "/v2/models/reward_model/ready"), ("GET", "/v2/models/reward_model/config"), ("GET", "/v2/models/stats"), ("GET", "/metrics"),
                                     ("POST", "/v2/repository/index"), ("POST", "/v2/models/reward_model/infer"), ("GET", "/"), ("DELETE", "/v2")]:
                    status, answered, text = server.call(method, path, body if method == "POST" else None, headers)
                    self.assertEqual((status, answered["WWW-Authenticate"], json.loads(text)), (401, "Bearer", {"error": "unauthorized"}), path)
            self.assertFalse(client.is_server_live() or client.is_server_ready() or client.is_model_ready("reward_model"))
            for call in (client.get_server_metadata, client.get_model_repository_index, lambda: client.infer("reward_model", good)):
                self.refused("unauthorized", call)
            headers = {"Authorization": "Bearer open sesame"}
            self.assertTrue(client.is_server_live(headers=headers) and client.is_server_ready(headers=headers) and client.is_model_ready("reward_model", headers=headers))
            self.assertEqual(client.get_server_metadata(headers=headers)["name"], "kedge")
            self.assertEqual(len(client.get_model_repository_index(headers=headers)), 1)
            self.assertEqual(client.infer("reward_model", good, headers=headers).as_numpy("rewards").shape, (1, 1))


class CriticServer(Served):
    GLOBAL_BATCH = 8
    TRAINING = ("model.optim.lr=1e-2", "model.optim.sched.name=constant", "model.optim.sched.warmup_steps=0", f"model.global_batch_size={GLOBAL_BATCH}", "model.forward_micro_batch_size=4")

    def setUp(self):
        run = tempfile.mkdtemp(dir=self.folder)
        self.server = self.enterContext(servers.Server(KEDGE, "critic", f"pretrained_checkpoint.restore_from_path={self.model}", f"exp_manager.explicit_log_dir={run}",
                                                       "trainer.ppo.strip_sequence_length_to_multiple=32", "model.encoder_seq_length=96", *self.TRAINING))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.url, concurrency=16))
        self.run_folder = pathlib.Path(run)

    def critic(self, named, **options):
        result = self.client.infer("critic_infer", tensors(named), **options)
        return result.as_numpy("values"), result.as_numpy("rewards")

    def train(self, named, **options):
        return self.client.infer("critic_train", tensors(named), **options)

    def train_calls(self):
        return self.client.infer("critic_infer", tensors(token_arrays([[1, 2]]))).get_response()["parameters"]["train_calls"]

    def test_the_server_tells_what_it_is(self):
        client = self.client
        self.assertEqual([one["name"] for one in client.get_model_repository_index()], ["critic_infer", "critic_train", "critic_save", "critic_restore"])
        self.assertEqual({one["name"] for one in client.get_inference_statistics()["model_stats"]}, {"critic_infer", "critic_train", "critic_save", "critic_restore"})
        self.assertEqual(client.get_model_metadata("critic_infer")["outputs"], [{"name": "values", "datatype": "FP32", "shape": [-1, -1]}, {"name": "rewards", "datatype": "FP32", "shape": [-1, -1]}])
        train = client.get_model_config("critic_train")
        self.assertEqual((train.get("max_batch_size"), "dynamic_batching" in train), (0, False))
        self.assertEqual([(one["name"], one["data_type"], one["dims"], "optional" in one) for one in train["input"]],
                         [("tokens", "TYPE_INT64", [-1, -1], False)] + [(name, "TYPE_FP32", [-1, -1], False) for name in ("returns", "prev_values", "mask")])
        self.assertEqual(client.get_model_metadata("critic_save")["inputs"], [{"name": "dummy_var", "datatype": "INT64", "shape": [1]}])

    def test_values_and_rewards_are_those_of_transformers(self):
        with servers.Server(KEDGE, "reward", f"rm_model_file={self.model}") as reward_server, triton.InferenceServerClient(reward_server.url) as reward_client:
            for count in BATCH_SIZES:
                rows = servers.ragged_rows(count, WIDTH, 500 + count)
                for width in (WIDTH, WIDTH + 13):
                    values, rewards = self.critic(token_arrays(rows, width))
                    self.close_to(values, self.peer.values(rows, width), PEER, "values, transformers")
                    self.close_to(rewards, self.peer.rewards(rows), PEER, "rewards, transformers")
                    for place, row in enumerate(rows):
                        self.assertFalse(values[place, len(row) :].any())
                self.close_to(rewards, reward_client.infer("reward_model", tensors(token_arrays(rows))).as_numpy("rewards"), SAME, "the reward server")
                alone = [self.critic(token_arrays([row], WIDTH + 13)) for row in rows]
                self.close_to(numpy.concatenate([one[0] for one in alone]), values, SAME, "alone")
        values, rewards = self.critic(sentence_arrays(SENTENCES))
        ids = [self.peer.tokenizer(text, add_special_tokens=False)["input_ids"] for text in SENTENCES]
        self.close_to(values, self.peer.values(ids, 96), PEER, "values, transformers")
        self.close_to(rewards, self.peer.rewards(ids), PEER, "sentences, transformers")

    def test_all_four_modes_give_the_same_numbers(self):
        rows = servers.ragged_rows(3, 17, 6)
        for named in (token_arrays(rows), sentence_arrays(SENTENCES)):
            wanted = self.critic(named)
            for binary_in in (True, False):
                for binary_out in (True, False):
                    # Outputs come in the order of the declaration, whatever order they are asked for in.
                    result = self.client.infer("critic_infer", tensors(named, binary_in), outputs=wishes(["rewards", "values"], binary_out))
                    self.assertEqual([one["name"] for one in result.get_response()["outputs"]], ["values", "rewards"])
                    self.close_to(result.as_numpy("values"), wanted[0], SAME, "modes")
                    self.close_to(result.as_numpy("rewards"), wanted[1], SAME, "modes")
        only = self.client.infer("critic_infer", tensors(token_arrays(rows)), outputs=wishes(["rewards"], True))
        self.assertIsNone(only.as_numpy("values"))
        batch = servers.train_inputs(3, 9, 1)
        losses = []
        for binary_in, binary_out in ((True, True), (False, False)):
            result = self.client.infer("critic_train", tensors(batch, binary_in), outputs=wishes(["loss_mean"], binary_out))
            self.assertEqual(result.as_numpy("loss_mean").shape, (1,))
            losses.append(result.as_numpy("loss_mean").item())
        self.assertTrue(numpy.isfinite(losses).all())
        compressed = self.train(batch, request_compression_algorithm="gzip")
        self.assertEqual(compressed.get_response()["parameters"]["train_calls"], 3)

    def wanted_loss(self, batch):
        """By the formula, from the values the server gives: every row is a forward pass of its own."""
        num_rows, width = batch["tokens"].shape
        values = self.critic({"tokens": batch["tokens"], "sequence_lengths": numpy.full((num_rows, 1), width)})[0][:, :-1].astype(numpy.float64)
        clipped = batch["prev_values"] + numpy.clip(values - batch["prev_values"], -0.2, 0.2)
        losses = numpy.maximum((clipped - batch["returns"]) ** 2, (values - batch["returns"]) ** 2)
        return numpy.mean([0.5 * row[mask != 0].mean() for row, mask in zip(losses, batch["mask"])])

    def test_training_changes_values_and_not_rewards(self):
        rows = servers.ragged_rows(5, WIDTH, 7)
        values, rewards = self.critic(token_arrays(rows))
        for call in range(10):
            batch = servers.train_inputs(self.GLOBAL_BATCH - call % 2 * 3, 12, 20 + call)  # a whole batch, or one that is filled up
            wanted = self.wanted_loss(batch)
            result = self.train(batch)
            self.assertEqual(result.get_response()["parameters"]["train_calls"], call + 1)
            found = result.as_numpy("loss_mean")
            self.assertLess(note("loss", abs(found.item() - wanted) / wanted), 1e-5)
        new_values, new_rewards = self.critic(token_arrays(rows))
        self.assertTrue(numpy.array_equal(new_rewards, rewards))
        self.assertGreater(numpy.abs(new_values - values).max(), 0.01)
        self.assertEqual(self.server.executions("critic_train"), (10, 10))

    def test_saving(self):
        self.train(servers.train_inputs(3, 9, 2))
        named = {"dummy_var": numpy.zeros(1, numpy.int64)}
        for options in ({}, {"outputs": wishes(["status"], False)}, {"parameters": {"actor_step": 7, "request_key": "a"}}):
            self.assertEqual(self.client.infer("critic_save", tensors(named), **options).as_numpy("status").tolist(), [0])
        status, headers, body = self.server.call("POST", "/v2/models/critic_save/infer", bytes(8), {"Inference-Header-Content-Length": "0"})  # the raw form
        self.assertEqual((status, body[int(headers["Inference-Header-Content-Length"]) :]), (200, bytes(8)))
        self.assertTrue(list(self.run_folder.glob("checkpoints/*")))
        self.refused(r"^\[400\].*dummy_var", lambda: self.client.infer("critic_save", tensors({"dummy_var": numpy.zeros(2, numpy.int64)})))

    def test_a_key_makes_a_second_call_the_first(self):
        batch = servers.train_inputs(4, 9, 3)
        replies = [self.train(batch, parameters={"request_key": key}) for key in ("x", "x", "y")]
        self.assertEqual(replies[0].as_numpy("loss_mean"), replies[1].as_numpy("loss_mean"))
        self.assertEqual([one.get_response()["parameters"]["train_calls"] for one in replies], [1, 1, 2])

    def test_a_train_call_whose_sender_is_gone_is_carried_out_once(self):
        batch = servers.train_inputs(4, 9, 4)
        body, header_length = triton.InferenceServerClient.generate_request_body(tensors(batch))
        head = f"POST /v2/models/critic_train/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {header_length}\r\nContent-Length: {len(body)}\r\n\r\n"
        for call in range(1, 6):
            with socket.create_connection(("127.0.0.1", self.server.port), servers.CALL_LIMIT_S) as connection:
                connection.sendall(head.encode() + body)
            servers.wait_until(lambda: self.train_calls() >= call)
            self.assertEqual(self.train_calls(), call)
        with socket.create_connection(("127.0.0.1", self.server.port), servers.CALL_LIMIT_S) as connection:
            connection.sendall(head.encode() + body[:-1])  # not all of it: nothing to carry out
        self.assertEqual(self.train(batch).get_response()["parameters"]["train_calls"], 6)
        self.assertEqual(self.server.executions("critic_train")[1], 6)

    def test_malformed_train_calls_change_nothing(self):
        good = servers.train_inputs(2, 5, 5)
        changed = lambda **changes: {name: array for name, array in (good | changes).items() if array is not None}
        infinite = good["returns"].copy()
        infinite[0, 0] = numpy.inf
        for what, named in {"no mask": changed(mask=None), "INT32": changed(tokens=good["tokens"].astype(numpy.int32)), "as wide as tokens": changed(returns=numpy.zeros((2, 5), numpy.float32)),
                            "rows": changed(mask=good["mask"][:1]), "one token": {"tokens": good["tokens"][:, :1]} | {name: numpy.zeros((2, 0), numpy.float32) for name in ("returns", "prev_values", "mask")},
                            "no rows": {name: array[:0] for name, array in good.items()}, "rank": changed(tokens=good["tokens"].reshape(-1)), "not finite": changed(returns=infinite),
                            "vocabulary": changed(tokens=good["tokens"] + 1000), "too wide": servers.train_inputs(1, 97, 6), "one more": changed(extra=good["mask"])}.items():
            with self.subTest(what=what):
                self.refused(r"^\[400\]", lambda: self.train(named))
        self.assertEqual(self.train_calls(), 0)
        self.assertEqual(self.train(good).get_response()["parameters"]["train_calls"], 1)

    def test_without_rewards(self):
        with servers.Server(KEDGE, "critic", f"pretrained_checkpoint.restore_from_path={self.model}", f"exp_manager.explicit_log_dir={self.run_folder}/alone",
                            "trainer.ppo.combine_rm_and_critic_server=false") as server, triton.InferenceServerClient(server.url) as client:
            rows = servers.ragged_rows(3, 9, 8)
            self.assertEqual([one["name"] for one in client.get_model_config("critic_infer")["output"]], ["values"])
            result = client.infer("critic_infer", tensors(token_arrays(rows)))
            self.assertEqual([one["name"] for one in result.get_response()["outputs"]], ["values"])
            self.close_to(result.as_numpy("values"), self.peer.values(rows, 9), PEER, "values, transformers")


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    for name, value in sorted(largest.items()):
        print(f"largest, {name}: {value:.3g}")
    sys.exit(not program.result.wasSuccessful())
