"""kedge serve reward beside NVIDIA's own client: tritonclient.http and its asyncio flavour, and transformers for what the numbers should be.
Takes the program kedge."""

import asyncio

import numpy
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

import kedge_servers as servers
from triton_peers import BATCH_SIZES, KEDGE, PEER, SAME, SENTENCES, Served, main, scores, sentence_arrays, tensors, token_arrays, wishes

WIDTH = 48


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
        self.assertTrue(client.is_server_live() and client.is_server_ready())
        self.assertTrue(client.is_model_ready("reward_model") and client.is_model_ready("reward_model", "1"))
        self.assertFalse(client.is_model_ready("reward") or client.is_model_ready("reward_model", "2"))
        self.assertEqual(client.get_server_metadata()["name"], "kedge")
        self.assertIn("binary_tensor_data", client.get_server_metadata()["extensions"])
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
                    options = {"request_compression_algorithm": algorithm, "response_compression_algorithm": "gzip"}
                    found = self.client.infer("reward_model", tensors(named, binary), **options)
                    self.close_to(found.as_numpy("rewards"), self.rewards(named), SAME, "alone")

    def test_what_is_refused_says_why(self):
        good = token_arrays(servers.ragged_rows(2, 5, 5))
        infer = lambda named, model="reward_model", **options: lambda: self.client.infer(model, tensors(named), **options)
        self.refused(r"^\[404\] no model named rewards$", infer(good, "rewards"))
        self.refused(r"^\[404\] no version 2 of model reward_model$", infer(good, model_version="2"))
        self.refused(r"^\[400\].*weights", infer(good | {"weights": numpy.zeros((2, 1), numpy.float32)}))
        self.refused(r"^\[400\].*loss", infer(good, outputs=wishes(["loss"], True)))
        self.refused(r"^\[400\] expected sentences, or tokens together with sequence_lengths$", infer({"tokens": good["tokens"]}))
        self.refused(r"^\[400\].*tokens.*INT32", infer(good | {"tokens": good["tokens"].astype(numpy.int32)}))
        self.refused(r"^\[404\]", lambda: self.client.get_model_config("rewards"))
        self.refused(r"^\[404\]", lambda: self.client.get_model_metadata("reward_model", "2"))
        self.refused(r"^\[404\]", lambda: self.client.get_inference_statistics("rewards"))
        self.refused(r"^\[404\]", lambda: self.client.load_model("reward_model"))

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


class Merging(Served):
    def serve(self, delay_s):
        """Calls wait for company until sixteen rows are there, or for so long."""
        self.server = self.enterContext(servers.Server(KEDGE, "reward", f"rm_model_file={self.model}", "inference.inference_micro_batch_size=16",
                                                       f"inference.max_queue_delay_microseconds={delay_s * 1000000}"))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.url, concurrency=8))

    def answers(self, batches):
        flying = [self.client.async_infer("reward_model", tensors(named)) for named in batches]
        return [result.get_result(timeout=servers.CALL_LIMIT_S).as_numpy("rewards") for result in flying]

    def test_calls_of_one_width_are_computed_together(self):
        self.serve(delay_s=60)
        batches = [servers.ragged_rows(2, 12, 300 + place) for place in range(8)]
        found = self.answers([token_arrays(rows) for rows in batches])
        self.assertEqual(self.server.executions("reward_model"), (8, 1))
        for rewards, rows in zip(found, batches):
            self.close_to(rewards, self.peer.rewards(rows), PEER, "merged, transformers")
            self.close_to(rewards, scores(self.model, [{"ids": row} for row in rows]), SAME, "merged")

    def test_calls_of_other_widths_or_kinds_are_not(self):
        self.serve(delay_s=1)
        batches = [servers.ragged_rows(2, width, 400 + width) for width in (5, 6, 7)]
        *found, of_texts = self.answers([*map(token_arrays, batches), sentence_arrays(SENTENCES)])
        self.assertEqual(self.server.executions("reward_model"), (4, 4))
        for rewards, rows in zip(found, batches):
            self.close_to(rewards, self.peer.rewards(rows), PEER, "merged, transformers")
        self.close_to(of_texts, scores(self.model, [{"text": text} for text in SENTENCES]), SAME, "merged")


if __name__ == "__main__":
    main()
