"""kedge serve critic beside NVIDIA's own client, and transformers for what the numbers should be. Takes the program kedge."""

import pathlib
import socket
import tempfile

import numpy
import tritonclient.http as triton

import kedge_servers as servers
from triton_peers import BATCH_SIZES, KEDGE, PEER, SAME, SENTENCES, Served, main, note, sentence_arrays, tensors, token_arrays, wishes

WIDTH = 48


class CriticServer(Served):
    GLOBAL_BATCH = 8
    TRAINING = ("model.optim.lr=1e-2", "model.optim.sched.name=constant", "model.optim.sched.warmup_steps=0", "model.forward_micro_batch_size=4",
                f"model.global_batch_size={GLOBAL_BATCH}")

    access = ("--insecure",)  # the tests below send no token

    def setUp(self):
        self.run_folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        # The key of the reference for cutting off padding is taken, and does nothing.
        self.server = self.enterContext(self.serve(self.run_folder, "trainer.ppo.strip_sequence_length_to_multiple=32", "model.encoder_seq_length=96", *self.TRAINING))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.url, concurrency=16))

    def serve(self, run_folder, *arguments):
        folders = (f"pretrained_checkpoint.restore_from_path={self.model}", f"exp_manager.explicit_log_dir={run_folder}")
        return servers.Server(KEDGE, "critic", *folders, *arguments, *self.access)

    def critic(self, named, **options):
        result = self.client.infer("critic_infer", tensors(named), **options)
        return result.as_numpy("values"), result.as_numpy("rewards")

    def train(self, named, **options):
        return self.client.infer("critic_train", tensors(named), **options)

    def train_calls(self):
        return self.client.infer("critic_infer", tensors(token_arrays([[1, 2]]))).get_response()["parameters"]["train_calls"]

    def test_the_server_tells_what_it_is(self):
        client = self.client
        names = ["critic_infer", "critic_train", "critic_save", "critic_restore"]
        self.assertEqual([one["name"] for one in client.get_model_repository_index()], names)
        self.assertEqual([one["name"] for one in client.get_inference_statistics()["model_stats"]], names)
        self.assertEqual(client.get_model_metadata("critic_infer")["outputs"], [{"name": name, "datatype": "FP32", "shape": [-1, -1]} for name in ("values", "rewards")])
        train = client.get_model_config("critic_train")
        self.assertEqual((train.get("max_batch_size"), "dynamic_batching" in train), (0, False))
        self.assertEqual([(one["name"], one["data_type"], one["dims"], "optional" in one) for one in train["input"]],
                         [("tokens", "TYPE_INT64", [-1, -1], False)] + [(name, "TYPE_FP32", [-1, -1], False) for name in ("returns", "prev_values", "mask")])
        self.assertEqual(client.get_model_metadata("critic_save")["inputs"], [{"name": "dummy_var", "datatype": "INT64", "shape": [1]}])

    def test_values_and_rewards_are_those_of_transformers(self):
        reward_server = self.enterContext(servers.Server(KEDGE, "reward", f"rm_model_file={self.model}"))
        with triton.InferenceServerClient(reward_server.url) as reward_client:
            for count in BATCH_SIZES:
                rows = servers.ragged_rows(count, WIDTH, 500 + count)
                for width in (WIDTH, WIDTH + 13):
                    values, rewards = self.critic(token_arrays(rows, width))
                    self.close_to(values, self.peer.values(rows, width), PEER, "values, transformers")
                    self.close_to(rewards, self.peer.rewards(rows), PEER, "rewards, transformers")
                    for place, row in enumerate(rows):
                        self.assertFalse(values[place, len(row) :].any())
                served_alone = reward_client.infer("reward_model", tensors(token_arrays(rows))).as_numpy("rewards")
                self.close_to(rewards, served_alone, SAME, "the reward server")
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

    def test_a_key_makes_a_second_call_the_first(self):
        batch = servers.train_inputs(4, 9, 3)
        replies = [self.train(batch, parameters={"request_key": key}) for key in ("x", "x", "y")]
        self.assertEqual(replies[0].as_numpy("loss_mean"), replies[1].as_numpy("loss_mean"))
        self.assertEqual([one.get_response()["parameters"]["train_calls"] for one in replies], [1, 1, 2])

    def test_a_train_call_whose_sender_is_gone_is_carried_out_once(self):
        batch = servers.train_inputs(4, 9, 4)
        body, header_length = triton.InferenceServerClient.generate_request_body(tensors(batch))
        head = ["POST /v2/models/critic_train/infer HTTP/1.1", "Host: x", f"Inference-Header-Content-Length: {header_length}", f"Content-Length: {len(body)}"]
        request = "\r\n".join([*head, "", ""]).encode() + body
        for call in range(1, 6):
            with socket.create_connection(("127.0.0.1", self.server.port), servers.CALL_LIMIT_S) as connection:
                connection.sendall(request)
            servers.wait_until(lambda: self.train_calls() >= call)
            self.assertEqual(self.train_calls(), call)
        with socket.create_connection(("127.0.0.1", self.server.port), servers.CALL_LIMIT_S) as connection:
            connection.sendall(request[:-1])  # not all of it: nothing to carry out
        self.assertEqual(self.train(batch).get_response()["parameters"]["train_calls"], 6)
        self.assertEqual(self.server.executions("critic_train")[1], 6)

    def test_changes_want_the_token_that_the_server_made(self):
        self.access = ()
        server = self.enterContext(self.serve(self.run_folder / "guarded"))
        client = self.enterContext(triton.InferenceServerClient(server.url))
        batch = tensors(servers.train_inputs(2, 9, 8))
        token = server.token_file().read_text().strip()
        for headers in (None, {"Authorization": "Bearer wrong"}):
            self.refused(r"^\[401\].*requires a token", lambda: client.infer("critic_train", batch, headers=headers))
        client.infer("critic_infer", tensors(token_arrays([[1, 2]])))
        reply = client.infer("critic_train", batch, headers={"Authorization": f"Bearer {token}"})
        self.assertEqual(reply.get_response()["parameters"]["train_calls"], 1)
        self.assertEqual(server.token_file().stat().st_mode & 0o777, 0o600)

    def test_without_rewards(self):
        server = self.enterContext(self.serve(self.run_folder / "alone", "trainer.ppo.combine_rm_and_critic_server=false"))
        with triton.InferenceServerClient(server.url) as client:
            rows = servers.ragged_rows(3, 9, 8)
            self.assertEqual([one["name"] for one in client.get_model_config("critic_infer")["output"]], ["values"])
            result = client.infer("critic_infer", tensors(token_arrays(rows)))
            self.assertEqual([one["name"] for one in result.get_response()["outputs"]], ["values"])
            self.close_to(result.as_numpy("values"), self.peer.values(rows, 9), PEER, "values, transformers")


if __name__ == "__main__":
    main()
