"""What kedge's servers refuse, by plain HTTP and as tritonclient shows it: malformed calls, wrong addresses, callers without the token, and calls
that come at a bad moment. After each the server goes on. Takes the program kedge."""

import json
import threading

import numpy
import tritonclient.http as triton
from safetensors.torch import load_file, save_file

import kedge_servers as servers
from kedge_servers import tensor
from triton_peers import KEDGE, Served, figures, main, tensors, token_arrays, wishes

LENGTH = "Inference-Header-Content-Length"
GOOD = servers.tokens_request([[1, 2, 3], [4, 5]])
TOKENS, LENGTHS = GOOD["inputs"]
SHARED = {"shared_memory_region": "region", "shared_memory_byte_size": 48}
HELLO = b"\x02\0\0\0hi"


def changed(place, **changes):
    """The good request with something else in one of its inputs; None: left out."""
    inputs = [dict(one) for one in GOOD["inputs"]]
    inputs[place] |= changes
    return {"inputs": [{key: value for key, value in one.items() if value is not None} for one in inputs]}


def binary(size, data, header_length=None, shape=(1, 1)):
    """(body, headers) of a request with texts behind its JSON."""
    parameters = {"binary_data_size": size}
    head = json.dumps({"inputs": [{"name": "sentences", "datatype": "BYTES", "shape": shape, "parameters": parameters}]}).encode()
    return head + data, {LENGTH: str(len(head)) if header_length is None else header_length}


MALFORMED = [  # status, what is wrong, body, headers
    (400, "not JSON", b"{"),
    (400, "empty", b""),
    (400, "no object", b"[]"),
    (400, "two values", b"{}{}"),
    (400, "not UTF-8", b'{"id":"\xff"}'),
    (400, "deep", b"[" * 100000),
    (400, "no inputs", {}),
    (400, "inputs no list", {"inputs": {}}),
    (400, "input no object", {"inputs": [3]}),
    (400, "id no text", GOOD | {"id": 7}),
    (400, "outputs no list", GOOD | {"outputs": {}}),
    (400, "parameters no object", GOOD | {"parameters": 3}),
    (400, "reserved parameter", GOOD | {"parameters": {"triton_x": 1}}),
    (400, "no name", changed(0, name=None)),
    (400, "name no text", changed(0, name=3)),
    (400, "no shape", changed(0, shape=None)),
    (400, "shape no list", changed(0, shape="[2,3]")),
    (400, "negative size", changed(0, shape=[-2, 3])),
    (400, "huge size", changed(0, shape=[2**62, 2**62])),
    (400, "no datatype", changed(0, datatype=None)),
    (400, "unknown datatype", changed(0, datatype="INT65")),
    (400, "no data", changed(0, data=None)),
    (400, "data twice", changed(0, parameters={"binary_data_size": 48})),
    (400, "too few data", changed(0, data=[1, 2, 3])),
    (400, "texts as numbers", changed(0, data=["1"] * 6)),
    (400, "fractions", changed(0, data=[1.5] * 6)),
    (400, "beyond 64 bits", changed(0, data=[2**64] * 6)),
    (400, "header beyond the body", *binary(6, HELLO, "100000")),
    (400, "header negative", *binary(6, HELLO, "-1")),
    (400, "header no number", *binary(6, HELLO, "x")),
    (400, "raw form of a model with several inputs", HELLO, {LENGTH: "0"}),
    (400, "bytes left over", *binary(6, HELLO + b"x")),
    (400, "bytes missing", *binary(9, HELLO)),
    (400, "element beyond its tensor", *binary(6, b"\x09\0\0\0hi")),
    (400, "size of another shape", *binary(6, HELLO, shape=(2, 1))),
    (400, "bad UTF-8", *binary(6, b"\x02\0\0\0\xff\xfe")),
    (400, "an empty text", *binary(4, b"\0\0\0\0")),
    (400, "unknown input", {"inputs": [*GOOD["inputs"], tensor("weights", "INT64", [2, 1], [1, 1])]}),
    (400, "unknown output", GOOD | {"outputs": [{"name": "loss"}]}),
    (400, "input twice", {"inputs": [TOKENS, TOKENS, LENGTHS]}),
    (400, "input missing", {"inputs": [TOKENS]}),
    (400, "another type", changed(0, datatype="INT32")),
    (400, "lengths as fractions", changed(1, datatype="FP32", data=[3.0, 2.0])),
    (400, "rank 1", changed(0, shape=[6])),
    (400, "rank 3", changed(0, shape=[2, 3, 1])),
    (400, "two lengths a row", changed(1, shape=[1, 2])),
    (400, "rows disagree", changed(1, shape=[1, 1], data=[3])),
    (400, "no rows", {"inputs": [TOKENS | {"shape": [0, 3], "data": []}, LENGTHS | {"shape": [0, 1], "data": []}]}),
    (400, "more rows than 9999999", *binary(40000000, bytes(40000000), shape=(10000000, 1))),
    (400, "length 0", changed(1, data=[3, 0])),
    (400, "length beyond the width", changed(1, data=[4, 2])),
    (400, "negative length", changed(1, data=[-1, 2])),
    (400, "id beyond the vocabulary", changed(0, data=[1, 2, servers.NUM_IDS, 4, 5, 6])),
    (400, "negative id", changed(0, data=[-1, 2, 3, 4, 5, 6])),
    (400, "wider than encoder_seq_length", servers.tokens_request([[1] * 97])),
    (400, "two texts a row", {"inputs": [tensor("sentences", "BYTES", [1, 2], ["a", "b"])]}),
    (501, "shared memory", changed(0, data=None, parameters=SHARED)),
    (501, "unknown compression", GOOD, {"Content-Encoding": "br"}),
    (400, "broken gzip", b"not gzip", {"Content-Encoding": "gzip"}),
]

ADDRESSES = [
    (404, "GET", "/"),
    (404, "GET", "/v2/"),
    (404, "GET", "/v2/health"),
    (404, "GET", "/v2/health/ready/"),
    (404, "GET", "/v3"),
    (404, "GET", "/v2/models/none"),
    (404, "GET", "/v2/models/none/ready"),
    (404, "POST", "/v2/models/none/infer"),
    (404, "POST", "/v2/models/reward_model/infer/"),
    (404, "POST", "/v2/models/reward_model/versions/2/infer"),
    (404, "POST", "/v2/models/reward_model/generate"),
    (405, "GET", "/v2/models/reward_model/infer"),
    (405, "POST", "/v2/models/reward_model/config"),
    (405, "PUT", "/v2/models/reward_model/infer"),
    (405, "POST", "/v2/health/ready"),
    (405, "DELETE", "/v2"),
    (405, "GET", "/v2/repository/index"),
    (200, "GET", "/v2/models/reward%5Fmodel/ready?x=1"),
]


class RewardServer(Served):
    def serve(self, *arguments):
        return servers.Server(KEDGE, "reward", f"rm_model_file={self.model}", *arguments)

    def test_malformed_calls(self):
        with self.serve("model.encoder_seq_length=96") as server:
            wanted = server.infer("reward_model", GOOD)["outputs"]
            for status, what, body, *headers in MALFORMED:
                with self.subTest(what=what):
                    body = body if isinstance(body, bytes) else json.dumps(body)
                    found, answered, text = server.call("POST", "/v2/models/reward_model/infer", body, headers[0] if headers else {})
                    self.assertEqual((found, answered["Content-Type"], list(json.loads(text))), (status, "application/json", ["error"]), text[:500])
                    if what == "unknown compression":
                        self.assertEqual(answered["Accept-Encoding"], "gzip, deflate")
                    if what == "more rows than 9999999":
                        self.assertIn(b"9999999", text)
                    self.assertEqual(server.infer("reward_model", GOOD)["outputs"], wanted)
            for status, method, path in ADDRESSES:
                with self.subTest(method=method, path=path):
                    self.assertEqual(server.call(method, path)[0], status)
        figures["malformed calls"] = len(MALFORMED) + len(ADDRESSES) - 1

    def test_a_full_queue_and_a_server_that_ends_answer_503(self):
        answers = []
        with self.serve("inference.queue_limit=1", "inference.inference_micro_batch_size=16", "inference.max_queue_delay_microseconds=60000000") as server:
            call = lambda: server.call("POST", "/v2/models/reward_model/infer", json.dumps(GOOD))
            waiting = threading.Thread(target=lambda: answers.append(call()))
            waiting.start()
            servers.wait_until(lambda: server.gauge("kedge_queue_length") == 1)
            status, headers, body = call()
            self.assertEqual((status, headers["Retry-After"]), (503, "1"), body)
        waiting.join(servers.CALL_LIMIT_S)
        self.assertEqual([status for status, _, _ in answers], [503])

    def test_json_has_no_nan_and_binary_has(self):
        broken = servers.make_reward_model(KEDGE, self.folder / "broken")
        weights = load_file(broken / "model.safetensors")
        weights["score.weight"][:] = float("nan")
        save_file(weights, broken / "model.safetensors", {"format": "pt"})
        with servers.Server(KEDGE, "reward", f"rm_model_file={broken}") as server, triton.InferenceServerClient(server.url) as client:
            inputs = tensors(token_arrays([[1, 2]]))
            self.assertTrue(numpy.isnan(client.infer("reward_model", inputs).as_numpy("rewards")).all())
            self.refused(r"^\[500\]", lambda: client.infer("reward_model", inputs, outputs=wishes(["rewards"], False)))

    def test_calls_without_the_token_are_refused_whatever_they_ask_for(self):
        (self.folder / "token").write_text("open sesame\n")
        paths = ["/", "/metrics", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/none", "/v2/models/stats", "/v2/models/reward_model"]
        paths += [f"/v2/models/reward_model/{action}" for action in ("config", "infer", "ready", "stats")]
        with self.serve("--token-file", self.folder / "token") as server, triton.InferenceServerClient(server.url) as client:
            for word in (None, "Bearer wrong", "open sesame", "Bearer open sesame2"):
                headers = {} if word is None else {"Authorization": word}
                for method, path in [("GET", path) for path in paths] + [("POST", "/v2/models/reward_model/infer"), ("POST", "/v2/repository/index")]:
                    status, answered, text = server.call(method, path, json.dumps(GOOD) if method == "POST" else None, headers)
                    self.assertEqual((status, answered["WWW-Authenticate"], json.loads(text)), (401, "Bearer", {"error": "unauthorized"}), path)
            inputs = tensors(token_arrays([[1, 2]]))
            self.assertFalse(client.is_server_live() or client.is_server_ready() or client.is_model_ready("reward_model"))
            for call in (client.get_server_metadata, client.get_model_repository_index, lambda: client.infer("reward_model", inputs)):
                self.refused("unauthorized", call)
            headers = {"Authorization": "Bearer open sesame"}
            self.assertTrue(client.is_server_live(headers=headers) and client.is_server_ready(headers=headers))
            self.assertTrue(client.is_model_ready("reward_model", headers=headers))
            self.assertEqual(client.get_server_metadata(headers=headers)["name"], "kedge")
            self.assertEqual(len(client.get_model_repository_index(headers=headers)), 1)
            self.assertEqual(client.infer("reward_model", inputs, headers=headers).as_numpy("rewards").shape, (1, 1))


class CriticServer(Served):
    def test_malformed_train_calls_change_nothing(self):
        good = servers.train_inputs(2, 5, 5)
        infinite = good["returns"].copy()
        infinite[0, 0] = numpy.inf
        nothing = numpy.zeros((2, 0), numpy.float32)
        malformed = {
            "no mask": {name: array for name, array in good.items() if name != "mask"},
            "INT32": good | {"tokens": good["tokens"].astype(numpy.int32)},
            "as wide as tokens": good | {"returns": numpy.zeros((2, 5), numpy.float32)},
            "rows": good | {"mask": good["mask"][:1]},
            "one token": {"tokens": good["tokens"][:, :1], "returns": nothing, "prev_values": nothing, "mask": nothing},
            "no rows": {name: array[:0] for name, array in good.items()},
            "rank": good | {"tokens": good["tokens"].reshape(-1)},
            "not finite": good | {"returns": infinite},
            "vocabulary": good | {"tokens": good["tokens"] + 1000},
            "too wide": servers.train_inputs(1, 97, 6),
            "one more": good | {"extra": good["mask"]},
        }
        with servers.Server(KEDGE, "critic", f"pretrained_checkpoint.restore_from_path={self.model}", f"exp_manager.explicit_log_dir={self.folder}/run",
                            "model.encoder_seq_length=96", "--insecure") as server, triton.InferenceServerClient(server.url) as client:
            for what, named in malformed.items():
                with self.subTest(what=what):
                    self.refused(r"^\[400\]", lambda: client.infer("critic_train", tensors(named)))
            self.refused(r"^\[400\].*dummy_var", lambda: client.infer("critic_save", tensors({"dummy_var": numpy.zeros(2, numpy.int64)})))
            self.assertEqual(client.infer("critic_train", tensors(good)).get_response()["parameters"]["train_calls"], 1)


if __name__ == "__main__":
    main()
