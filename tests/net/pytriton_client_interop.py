"""kedge's servers beside the clients of NVIDIA's PyTriton, which is how the reference's actor speaks to them. Takes the program kedge and how
many seconds a train call is to take while others wait for it."""

import asyncio
import pathlib
import sys
import tempfile
import time
import unittest

import numpy
from pytriton.client import AsyncioModelClient, FuturesModelClient, ModelClient
from pytriton.client.exceptions import PyTritonClientInferenceServerError, PyTritonClientModelDoesntSupportBatchingError, PyTritonClientTimeoutError

import kedge_servers as servers

KEDGE, TRAIN_S = sys.argv[1], float(sys.argv[2])
del sys.argv[1:]
WIDTH, TRAIN_WIDTH = 32, 256
SAME = 1e-6  # of numbers below 1: a batch of another size may add in another order
LIMITS = {"init_timeout_s": 60, "inference_timeout_s": 60 + 20 * TRAIN_S}
figures = {}


def sentences(texts):
    return numpy.char.encode(numpy.array(texts)[:, None], "utf-8")


class PyTritonClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = servers.make_reward_model(KEDGE, cls.folder / "reward")
        cls.reward_server = cls.enterClassContext(servers.Server(KEDGE, "reward", f"rm_model_file={cls.model}"))
        folders = (f"pretrained_checkpoint.restore_from_path={cls.model}", f"exp_manager.explicit_log_dir={cls.folder}/run")
        training = ("model.optim.lr=1e-3", "model.optim.sched.warmup_steps=0", "model.global_batch_size=8", "model.forward_micro_batch_size=4")
        cls.server = cls.enterClassContext(servers.Server(KEDGE, "critic", *folders, *training, "--insecure"))

    def client(self, name, kind=ModelClient, **options):
        server = self.reward_server if name == "reward_model" else self.server
        return self.enterContext(kind(f"http://{server.url}", name, **LIMITS, **options))

    def close_to(self, found, wanted):
        self.assertEqual((found.shape, found.dtype), (wanted.shape, wanted.dtype))
        difference = numpy.abs(found - wanted).max()
        figures["largest difference"] = max(figures.get("largest difference", 0), difference)
        self.assertLessEqual(difference, SAME)

    def plain(self, model, rows, width):
        """The outputs by name, from a plain call of one row at a time."""
        replies = [self.server.infer(model, servers.tokens_request([row], width)) for row in rows]
        return {one["name"]: numpy.array([reply["outputs"][place]["data"] for reply in replies], dtype=numpy.float32) for place, one in enumerate(replies[0]["outputs"])}

    def test_batches(self):
        rows = servers.ragged_rows(9, WIDTH, 1)
        tokens, lengths = servers.padded(rows, WIDTH)
        reward_client, critic = self.client("reward_model"), self.client("critic_infer")
        self.assertEqual([one.name for one in reward_client.model_config.outputs], ["rewards"])
        self.assertEqual(reward_client.model_config.max_batch_size, 9999999)
        self.assertTrue(reward_client.is_batching_supported)
        wanted = self.plain("critic_infer", rows, WIDTH)
        for found in (critic.infer_batch(tokens=tokens, sequence_lengths=lengths), critic.infer_batch(sequence_lengths=lengths, tokens=tokens)):
            self.assertEqual(set(found), {"values", "rewards"})
            self.close_to(found["values"], wanted["values"])
            self.close_to(found["rewards"], wanted["rewards"])
        self.close_to(reward_client.infer_batch(tokens=tokens, sequence_lengths=lengths)["rewards"], wanted["rewards"])
        texts = ["hi", "né", "第一 📈"]
        ids = [list(text.encode()) for text in texts]
        by_ids = reward_client.infer_batch(**dict(zip(("tokens", "sequence_lengths"), servers.padded(ids, 20))))["rewards"]
        self.close_to(reward_client.infer_batch(sentences=sentences(texts))["rewards"], by_ids)
        one = reward_client.infer_sample(tokens=tokens[0], sequence_lengths=lengths[0])["rewards"]
        self.close_to(one, wanted["rewards"][0])

    def test_training_and_saving(self):
        train, save = self.client("critic_train"), self.client("critic_save")
        self.assertFalse(train.is_batching_supported)
        batch = servers.train_inputs(5, 12, 2)
        with self.assertRaises(PyTritonClientModelDoesntSupportBatchingError):
            train.infer_batch(**batch)
        before = self.server.executions("critic_train")[1]
        found = train.infer_sample(**batch)["loss_mean"]
        self.assertEqual((found.shape, found.dtype), ((1,), numpy.float32))
        self.assertTrue(numpy.isfinite(found).all())
        self.assertEqual(self.server.executions("critic_train")[1], before + 1)
        status = save.infer_sample(dummy_var=numpy.array([0]))["status"]
        self.assertEqual((status.tolist(), status.dtype), ([0], numpy.int64))
        with self.assertRaisesRegex(PyTritonClientInferenceServerError, "a column less than tokens"):
            train.infer_sample(**(batch | {"mask": batch["mask"][:, 1:]}))

    def test_refusals(self):
        client = self.client("reward_model")
        with self.assertRaisesRegex(PyTritonClientInferenceServerError, "is not from 1 to 3"):
            client.infer_batch(tokens=numpy.ones((1, 3), numpy.int64), sequence_lengths=numpy.array([[4]]))
        with self.assertRaisesRegex(PyTritonClientInferenceServerError, "INT32"):
            client.infer_batch(tokens=numpy.ones((1, 3), numpy.int32), sequence_lengths=numpy.array([[3]]))
        with self.assertRaises(PyTritonClientTimeoutError), ModelClient(f"http://{self.reward_server.url}", "none", init_timeout_s=2) as unknown:
            unknown.infer_sample(numpy.ones(1))

    def test_the_asyncio_client(self):
        batches = [servers.ragged_rows(3, WIDTH, 50 + place) for place in range(16)]

        async def ask():
            async with AsyncioModelClient(f"http://{self.server.url}", "critic_infer", **LIMITS) as client:
                calls = [client.infer_batch(**dict(zip(("tokens", "sequence_lengths"), servers.padded(rows, WIDTH)))) for rows in batches]
                return await asyncio.wait_for(asyncio.gather(*calls), servers.CALL_LIMIT_S)

        for found, rows in zip(asyncio.run(ask()), batches):
            wanted = self.plain("critic_infer", rows, WIDTH)
            self.close_to(found["values"], wanted["values"])
            self.close_to(found["rewards"], wanted["rewards"])

    def is_busy(self):
        """Does a short call wait for more than a second?"""
        try:
            self.server.infer("critic_infer", servers.tokens_request([[1, 2]]), limit_s=1)
            return False
        except TimeoutError:
            return True

    def test_two_hundred_calls_wait_for_a_train_call(self):
        train = self.client("critic_train", FuturesModelClient)
        begin = time.monotonic()
        train.infer_sample(**servers.train_inputs(16, TRAIN_WIDTH, 3)).result(timeout=servers.CALL_LIMIT_S)
        num_rows = 16 * max(1, round(TRAIN_S / (time.monotonic() - begin)))
        widths = [WIDTH + place // 70 for place in range(200)]
        batches = [(servers.ragged_rows(1 + place % 7, width, 1000 + place), width) for place, width in enumerate(widths)]
        before = [self.plain("critic_infer", rows, width)["values"] for rows, width in batches[:3]]
        answered, executed = self.server.executions("critic_infer")
        begin = time.monotonic()
        training = train.infer_sample(**servers.train_inputs(num_rows, TRAIN_WIDTH, 4))
        training.add_done_callback(lambda _: figures.update({"seconds of the train call": time.monotonic() - begin}))
        servers.wait_until(self.is_busy)
        futures = self.client("critic_infer", FuturesModelClient, max_workers=128, max_queue_size=128)
        waiting = [futures.infer_batch(**dict(zip(("tokens", "sequence_lengths"), servers.padded(rows, width)))) for rows, width in batches]
        figures["seconds until all were under way or queued"] = time.monotonic() - begin
        saving = self.client("critic_save", FuturesModelClient).infer_sample(dummy_var=numpy.array([0]))
        found = [one.result(timeout=LIMITS["inference_timeout_s"]) for one in waiting]
        figures["seconds until all were answered"] = time.monotonic() - begin
        self.assertTrue(training.done())
        self.assertTrue(numpy.isfinite(training.result()["loss_mean"]).all())
        self.assertEqual(saving.result(timeout=LIMITS["inference_timeout_s"])["status"].tolist(), [0])
        figures["rows of the train call"] = num_rows
        done, runs = self.server.executions("critic_infer")
        figures["calls"], figures["runs they took"] = done - answered, runs - executed
        self.assertEqual(self.server.statistics("critic_infer")["inference_stats"]["cancel"]["count"], 1)  # the short one that gave up
        self.assertLess(runs - executed, 200)  # those that waited were computed together
        for one, (rows, width) in zip(found, batches):
            wanted = self.plain("critic_infer", rows, width)
            self.close_to(one["values"], wanted["values"])
            self.close_to(one["rewards"], wanted["rewards"])
        for old, one in zip(before, found):  # they waited, so that they see what was learned
            self.assertGreater(numpy.abs(old - one["values"]).max(), 1e-4)


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False, warnings="ignore")  # PyTriton warns of its own time limits
    for name, value in sorted(figures.items()):
        print(f"{name}: {value:.4g}")
    sys.exit(not program.result.wasSuccessful())
