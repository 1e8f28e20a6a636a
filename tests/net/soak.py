#!/usr/bin/env python3
"""A reward server and a critic's server under random clients, cut connections, abuse, and kills of servers and actor, for some minutes. At the
end everything adds up: every question got the answer that it gets alone, every training call had its effect once (the critic is bit for
bit that of a run without faults), and memory does not grow.   soak.py KEDGE FAULT_ACTOR SECONDS"""
import http.client
import json
import os
import pathlib
import random
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fault_support import (LIMIT_S, Actor, Proxy, Server, ask, make_reward_model, output_of, random_body, reset, same_critics, wait_for)

KEDGE, ACTOR, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
SEED = int(os.environ.get("KEDGE_SEED", "17"))
KILLING = 0.6  # of the time; then servers live on, so that their memory can be watched
TOLERANCE = 0  # rows do not depend on their companions
MODELS = {"reward": "reward_model", "critic": "critic_infer"}


class Client(threading.Thread):
    """Asks for known rewards over a connection that it keeps as long as it lasts, and asks again where the answer was lost."""

    def __init__(self, number, port, model, known):
        super().__init__(daemon=True)
        self.draw = random.Random(SEED * 1000 + number)
        self.port, self.path, self.known = port, f"/v2/models/{model}/infer", known
        self.num_asked = self.num_answered = self.num_again = 0
        self.wrong, self.ending, self.connection = None, False, None

    def run(self):
        try:
            while not self.ending:
                body, rewards = self.draw.choice(self.known)
                self.num_asked += 1
                found = output_of(self.answer(body), "rewards")
                assert len(found) == len(rewards) and all(abs(a - b) <= TOLERANCE for a, b in zip(found, rewards)), \
                    f"{body}: wanted {rewards}, found {found}"
                self.num_answered += 1
                if self.draw.random() < 0.1:
                    time.sleep(self.draw.random() * 0.2)
        except Exception as error:
            self.wrong = f"{type(error).__name__}: {error}"

    def answer(self, body):
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
                self.connection.request("POST", self.path, body)
                answer = self.connection.getresponse()
                text = answer.read()
                if answer.status == 200:
                    return text
                assert answer.status == 503, f"{body}: HTTP {answer.status} {text}"
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
            assert time.monotonic() < end, f"no answer within {LIMIT_S} s"
            self.num_again += 1
            time.sleep(0.02)


class Training(threading.Thread):
    """Actors one after the other, each from where the one before it was saved; some are killed."""

    def __init__(self, port, folder, proxy):
        super().__init__(daemon=True)
        self.draw = random.Random(SEED + 1)
        self.port, self.folder, self.proxy = port, folder, proxy
        self.step = self.num_actors = self.num_killed = 0
        self.wrong, self.ending = None, False

    def run(self):
        try:
            while not self.ending:
                self.run_one(self.draw.random() < 0.4)
            self.run_one(False)
        except Exception as error:
            self.wrong = f"{type(error).__name__}: {error}"

    def run_one(self, is_killed):
        keys = {"resume": self.step} if self.num_actors > 0 else {}
        actor = Actor(ACTOR, self.port, self.folder / "actor.jsonl", rounds=self.step + self.draw.randint(4, 20), save_every=4, train_rows=96,
                      calls=self.draw.randint(1, 8), pause_ms=self.draw.choice([0, 0, 100]), **keys)
        self.num_actors += 1
        try:
            if is_killed:
                end = time.monotonic() + self.draw.random() * 1.5
                wait_for("a moment to kill", lambda: time.monotonic() > end or not actor.is_running())
                self.num_killed += actor.is_running()
                actor.kill()
                lines = actor.lines()
            else:
                lines = actor.finish(10 * LIMIT_S)
        finally:
            actor.end()
        self.step = max([self.step] + [line["train_calls"] for line in lines if line["call"] == "save"])


class Trouble(threading.Thread):
    """Kills a server now and then, as long as that is wanted, and bothers both all the time."""

    def __init__(self, servers, end_of_kills):
        super().__init__(daemon=True)
        self.draw = random.Random(SEED + 2)
        self.servers, self.end_of_kills = servers, end_of_kills
        self.num_kills = self.num_bad = 0
        self.wrong, self.ending = None, False

    def run(self):
        next_kill = time.monotonic() + 5
        try:
            while not self.ending:
                self.bother(self.draw.choice(self.servers).port)
                if next_kill < time.monotonic() < self.end_of_kills:
                    server = self.draw.choice(self.servers)
                    server.kill()
                    time.sleep(self.draw.random())
                    server.start()
                    self.num_kills += 1
                    next_kill = time.monotonic() + 1 + self.draw.random() * 6
        except Exception as error:
            self.wrong = f"{type(error).__name__}: {error}"

    def bother(self, port):
        self.num_bad += 1
        try:
            peer = socket.create_connection(("127.0.0.1", port), timeout=5)
            peer.sendall(self.draw.choice([self.draw.randbytes(500), b"POST /v2/models/reward_model/infer HTTP/1.1\r\nContent-Length: 99\r\n\r\n{",
                                           b"GET /metrics HTTP/1.1\r\n", b"GET /v2 HTTP/1.1\r\n\r\n" * 50]))
            time.sleep(self.draw.random() * 0.2)
            reset(peer)
        except OSError:
            pass  # it is just being started again


def known_answers(server, model):
    draw, known = random.Random(SEED), []
    for _ in range(60):
        body = random_body(draw)
        status, answer = ask(server.port, "POST", f"/v2/models/{model}/infer", body)
        assert status == 200, answer
        known.append((body, output_of(answer, "rewards")))
    return known


def soak(folder, ends):
    model = make_reward_model(KEDGE, folder)
    batches = ("model.global_batch_size=8", "model.micro_batch_size=4")
    servers = {"reward": Server(KEDGE, "reward", model, folder / "reward"), "critic": Server(KEDGE, "critic", model, folder / "critic", *batches)}
    ends += servers.values()
    known = {}
    for kind, server in servers.items():
        server.start().wait_until_ready()
        known[kind] = known_answers(server, MODELS[kind])
    proxies = {kind: Proxy(server.port, cut=0.05, double=0.05, late_s=0, seed=SEED) for kind, server in servers.items()}
    actors = Proxy(servers["critic"].port, cut=0.05, double=0.1, late_s=0, seed=SEED)

    begin = time.monotonic()
    clients = [Client(number, proxies[kind].port, MODELS[kind], known[kind]) for number, kind in enumerate(["reward"] * 3 + ["critic"] * 2)]
    training = Training(actors.port, folder, actors)
    trouble = Trouble(list(servers.values()), begin + KILLING * SECONDS)
    threads = [*clients, training, trouble]
    for thread in threads:
        thread.start()

    def watch_until(moment):
        while time.monotonic() < moment:
            time.sleep(0.5)
            for thread in threads:
                assert thread.wrong is None, thread.wrong

    def resident():
        return {kind: server.wait_until_ready().metric("kedge_resident_bytes") for kind, server in servers.items()}

    watch_until(begin + (KILLING + (1 - KILLING) / 3) * SECONDS)
    warm = resident()
    watch_until(begin + SECONDS)
    for thread in threads:
        thread.ending = True
    for thread in threads:
        thread.join(20 * LIMIT_S)
        assert not thread.is_alive(), f"{type(thread).__name__} hangs"
        assert thread.wrong is None, thread.wrong
    at_end = resident()

    wait_for("nothing on its way", lambda: all(proxy.num_carried == 0 for proxy in [*proxies.values(), actors]))
    for client in clients:
        assert client.num_asked == client.num_answered > 0, f"{client.num_asked} questions, {client.num_answered} answers"
    rounds = training.step
    status, answer = ask(servers["critic"].port, "POST", "/v2/models/critic_infer/infer", known["critic"][0][0])
    found = json.loads(answer)["parameters"]["train_calls"]
    assert status == 200 and found == rounds, f"{rounds} training calls were sent, {found} are in effect"
    for kind in servers:
        assert at_end[kind] <= 1.1 * warm[kind], f"{kind} server: {warm[kind] / 2**20:.1f} MiB after the warm-up, {at_end[kind] / 2**20:.1f} at the end"
        servers[kind].stop()

    alone = Server(KEDGE, "critic", model, folder / "alone", *batches)
    ends.append(alone)
    alone.start().wait_until_ready()
    Actor(ACTOR, alone.port, folder / "alone.jsonl", rounds=rounds, save_every=rounds, train_rows=96, calls=0).finish(20 * LIMIT_S)
    alone.stop()
    same_critics(folder / "critic", folder / "alone", rounds)
    lost = {fate: sum(proxy.counts[fate] for proxy in [*proxies.values(), actors]) for fate in actors.counts}
    print(f"{SECONDS:.0f} s: {sum(client.num_answered for client in clients)} answers to {len(clients)} clients, all right, "
          f"{sum(client.num_again for client in clients)} asked for again; {rounds} training calls of {training.num_actors} actors "
          f"({training.num_killed} killed), all in effect once; {trouble.num_kills} kills of servers; calls {lost}; {trouble.num_bad} bad "
          f"connections; memory " + ", ".join(f"{kind} {warm[kind] / 2**20:.1f} -> {at_end[kind] / 2**20:.1f} MiB" for kind in servers))


def main():
    ends = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            soak(pathlib.Path(folder), ends)
        finally:
            for server in ends:
                server.end()


if __name__ == "__main__":
    main()
