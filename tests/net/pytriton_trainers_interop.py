"""kedge's trainers beside PyTriton servers written as NeMo-Aligner's are: a reward model that takes ids alone, and a critic that infers, trains and saves. What the
servers computed must be what was trained on."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import numpy

import kedge_servers as servers

LIMIT_S = 300
STEPS = 4
TRAIN_S = 0.3  # of a call: long enough for a call for values to overtake it


def reward_of(ids):
    """Of a row without its padding: depends on every id and on where it stands."""
    return numpy.float32(sum((place + 1) * int(one) % 17 for place, one in enumerate(ids)) / 8 - len(ids))


class LinearCritic:
    """Values are a weight times a feature of each id; a call of train is one step of descent."""

    def __init__(self):
        self.weight, self.calls = 0.5, 0

    def values(self, tokens):
        return (numpy.float32(self.weight) * ((tokens % 7) / 7).astype(numpy.float32)).astype(numpy.float32)

    def train(self, tokens, returns, mask):
        features = (tokens[:, :-1] % 7) / 7
        distance = (self.weight * features - returns) * mask
        loss = 0.5 * (distance**2).sum() / mask.sum()
        self.weight -= 0.1 * float((distance * features).sum() / mask.sum())
        self.calls += 1
        return numpy.float32(loss)


def serve(port, folder, combined):
    """Until it is killed. Every call is noted in folder/calls.jsonl."""
    from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
    from pytriton.triton import Triton, TritonConfig

    critic = LinearCritic()
    notes = open(folder / "calls.jsonl", "a", buffering=1)

    def note(**what):
        print(json.dumps(what), file=notes)

    def rewards_of(request, name):
        rows = [row[:length[0]] for row, length in zip(request["tokens"], request["sequence_lengths"])]
        rewards = numpy.array([[reward_of(row)] for row in rows], dtype=numpy.float32)
        for row, reward in zip(rows, rewards):
            note(call=name, ids=row.tolist(), reward=float(reward[0]), width=int(request["tokens"].shape[1]))
        return rewards

    def reward(requests):
        return [{"rewards": rewards_of(request, "reward")} for request in requests]

    def infer(requests):
        answers = []
        for request in requests:
            note(call="values", rows=int(request["tokens"].shape[0]), after=critic.calls)
            answer = {"values": critic.values(request["tokens"])}
            if combined:
                answer["rewards"] = rewards_of(request, "infer")
            answers.append(answer)
        return answers

    def train(requests):
        request, = requests
        time.sleep(TRAIN_S)
        loss = critic.train(request["tokens"], request["returns"], request["mask"])
        note(call="train", rows=int(request["tokens"].shape[0]), loss=float(loss))
        return [{"loss_mean": numpy.array([loss], dtype=numpy.float32)}]

    def save(requests):
        note(call="save", calls=critic.calls)
        return [{"status": numpy.array([0], dtype=numpy.int64)}]

    ids = [Tensor(name="tokens", dtype=numpy.int64, shape=(-1,)), Tensor(name="sequence_lengths", dtype=numpy.int64, shape=(-1,))]
    matrix = lambda name, dtype: Tensor(name=name, dtype=dtype, shape=(-1, -1))
    number = lambda name, dtype: Tensor(name=name, dtype=dtype, shape=(1,))
    batching = ModelConfig(max_batch_size=9999999, batcher=DynamicBatcher(max_queue_delay_microseconds=2000, preferred_batch_size=[4]))
    alone = ModelConfig(batching=False)
    config = TritonConfig(http_address="127.0.0.1", http_port=port, allow_grpc=False, allow_metrics=False)
    with Triton(config=config, workspace=folder / "workspace") as triton:
        triton.bind("reward_model", reward, ids, [Tensor(name="rewards", dtype=numpy.float32, shape=(-1,))], config=batching)
        outputs = [Tensor(name="values", dtype=numpy.float32, shape=(-1,))] + ([Tensor(name="rewards", dtype=numpy.float32, shape=(-1,))] if combined else [])
        triton.bind("critic_infer", infer, ids, outputs, config=batching)
        triton.bind("critic_train", train, [matrix("tokens", numpy.int64), matrix("returns", numpy.float32), matrix("prev_values", numpy.float32),
                                            matrix("mask", numpy.float32)], [number("loss_mean", numpy.float32)], config=alone)
        triton.bind("critic_save", save, [number("dummy_var", numpy.int64)], [number("status", numpy.int64)], config=alone)
        triton.serve()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, folder, combined):
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.log = open(folder / "server.log", "ab")
        command = [sys.executable, __file__, "serve", str(self.port), str(folder), str(int(combined))]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def calls(self, name):
        lines = (self.folder / "calls.jsonl").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call["call"] == name]

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Trainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        servers.write_tokenizer(cls.folder / "tokenizer")
        command = [KEDGE, "init", cls.folder / "policy", "--shape", "tiny", "--tokenizer", cls.folder / "tokenizer"]
        subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=LIMIT_S)
        (cls.folder / "prompts.jsonl").write_text("".join(json.dumps({"text": f"{place} is"}) + "\n" for place in range(12)))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def serve(self, name, combined=False):
        server = Server(self.folder / name, combined)
        self.addCleanup(server.stop)
        return server

    def run_kedge(self, algorithm, run, *settings, launcher=()):
        prompts = self.folder / "prompts.jsonl"
        command = [*launcher, KEDGE, algorithm, f"pretrained_checkpoint.restore_from_path={self.folder / 'policy'}", "trainer.accelerator=cpu", "trainer.threads=1",
                   f"model.data.data_prefix={{train: [{prompts}], validation: [{prompts}], test: [{prompts}]}}", "model.encoder_seq_length=32", "model.global_batch_size=4",
                   f"model.{algorithm}.num_rollout_samples=4", f"model.{algorithm}.num_val_samples=2", f"model.{algorithm}.length_params.max_length=8",
                   f"trainer.{algorithm}.max_epochs=4", f"trainer.{algorithm}.max_steps={STEPS}", f"trainer.{algorithm}.val_check_interval=2",
                   f"exp_manager.explicit_log_dir={run}", "model.optim.sched.name=constant", "model.optim.lr=1e-3", *settings]
        if algorithm != "rs":
            command.append(f"trainer.{algorithm}.unfinished=keep")
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stderr

    def recorded(self, run):
        """(ids, reward) of every response that was trained on."""
        rows = [row for step in range(STEPS) for row in lines_of(run / f"rollouts/step-{step}.jsonl")[1:]]
        self.assertTrue(rows)
        return [(tuple(row["ids"]), row["parts"]) for row in rows], rows

    def check_rewards(self, run, calls):
        computed = {tuple(call["ids"]): call["reward"] for call in calls}
        for ids, reward in computed.items():
            self.assertEqual(reward, float(reward_of(ids)))
        _, rows = self.recorded(run)
        for row in rows:
            self.assertIn(tuple(row["ids"]), computed, "the server never saw this row with all of its ids")
            self.assertEqual(row["reward"], computed[tuple(row["ids"])])
        return rows

    def test_reinforce_and_rs_train_on_what_the_reward_server_computed(self):
        server = self.serve("reward")
        for algorithm in ("reinforce", "rs"):
            run = self.folder / algorithm
            said = self.run_kedge(algorithm, run, "remote_rm.reward_model.ip=127.0.0.1", f"remote_rm.reward_model.port={server.port}", "remote_rm.pad_to_length=40")
            rows = self.check_rewards(run, server.calls("reward"))
            print(f"{algorithm}: {len(rows)} rewards, all equal")
            self.assertTrue(any(row["ids"][-1] == 258 for row in rows if row["finished"]) or not any(row["finished"] for row in rows), "the id that ends a response is sent")
            self.assertTrue(all(call["width"] == 40 for call in server.calls("reward")), "padded as remote_rm.pad_to_length says")
            self.assertNotIn("no fingerprint", said)

    def check_critic(self, run, server):
        trained = server.calls("train")
        self.assertEqual(len(trained), STEPS)
        self.assertEqual([call["calls"] for call in server.calls("save")], [2, 4], "saved with the policy")
        logged = {line["step"]: line["train_rollouts/critic_loss"] for line in lines_of(run / "metrics.jsonl") if "train_rollouts/critic_loss" in line}
        self.assertEqual(logged, {step + 1: call["loss"] for step, call in enumerate(trained[:-1])}, "of the critic's update before")
        metrics = [line for line in lines_of(run / "metrics.jsonl") if "train_optim/loss" in line]
        self.assertTrue(all(line["train_optim/actor_loss"] == line["train_optim/loss"] for line in metrics))

    def test_ppo_trains_the_combined_critic(self):
        server = self.serve("combined", combined=True)
        run = self.folder / "ppo"
        self.run_kedge("ppo", run, "remote_critic_rm.critic.ip=127.0.0.1", f"remote_critic_rm.critic.port={server.port}")
        rows = self.check_rewards(run, server.calls("infer"))
        self.check_critic(run, server)
        print(f"ppo, combined: {len(rows)} rewards, all equal; {STEPS} calls of critic_train, 2 of critic_save")

    def test_ppo_with_separate_servers(self):
        server = self.serve("separate")
        run = self.folder / "ppo_separate"
        self.run_kedge("ppo", run, "remote_critic_rm.combine_rm_and_critic_server=false", "remote_critic_rm.critic.ip=127.0.0.1",
                       f"remote_critic_rm.critic.port={server.port}", "remote_critic_rm.reward_model.ip=127.0.0.1", f"remote_critic_rm.reward_model.port={server.port}")
        rows = self.check_rewards(run, server.calls("reward"))
        self.check_critic(run, server)
        print(f"ppo, separate: {len(rows)} rewards, all equal")

    def test_values_on_every_rank_have_seen_the_training_before(self):
        mpirun = shutil.which("mpirun")
        if mpirun is None:
            self.skipTest("no mpirun")
        server = self.serve("ranks")
        run = self.folder / "ppo_ranks"
        self.run_kedge("ppo", run, "remote_critic_rm.combine_rm_and_critic_server=false", "remote_critic_rm.critic.ip=127.0.0.1", f"remote_critic_rm.critic.port={server.port}",
                       "remote_critic_rm.reward_model.ip=127.0.0.1", f"remote_critic_rm.reward_model.port={server.port}",
                       launcher=(mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"))
        rows = 0
        for call in server.calls("values"):
            self.assertEqual(call["after"], rows // 4, "a call for values overtook the training of the step before")
            rows += call["rows"]
        self.assertEqual(rows, 4 * STEPS)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4] == "1")
    else:
        KEDGE = sys.argv.pop(1)
        unittest.main(verbosity=2)
