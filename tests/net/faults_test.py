#!/usr/bin/env python3
"""Servers that are killed, cut off, flooded and abused: no update is lost or applied twice (the critic ends bit for bit as in a run that was
left alone), nothing hangs, nothing crashes.   faults_test.py KEDGE FAULT_ACTOR KILLS"""
import gzip
import os
import pathlib
import random
import re
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fault_support import (LIMIT_S, Actor, Proxy, Server, ask, make_reward_model, output_of, random_body, reset, same_critics, token_body,
                           wait_for)

KEDGE, ACTOR, KILLS = sys.argv[1], sys.argv[2], int(sys.argv[3])
SEED = int(os.environ.get("KEDGE_SEED", "17"))
IS_SHORT = KILLS < 20
ROUNDS = 12 if IS_SHORT else 60
ACTOR_KEYS = {"rounds": ROUNDS, "save_every": 3, "train_rows": 192, "calls": 6}


class Room:
    """A folder, a model, and the run without faults that all others are held against."""

    def __init__(self, folder):
        self.folder = folder
        self.model = make_reward_model(KEDGE, folder)
        self.programs = []
        server = self.critic("alone").start().wait_until_ready()
        self.lines = self.actor("alone", server.port).finish()
        server.stop()

    # Without merging, values do not depend on what arrived at the same time, on any machine.
    def critic(self, name, *overrides):
        server = Server(KEDGE, "critic", self.model, self.folder / name, "model.global_batch_size=8", "model.micro_batch_size=4",
                        "trainer.ppo.merge=false", *overrides)
        self.programs.append(server)
        return server

    def actor(self, name, port, **keys):
        actor = Actor(ACTOR, port, self.folder / f"{name}.jsonl", **{**ACTOR_KEYS, **keys})
        self.programs.append(actor)
        return actor

    def check(self, name, server):
        """The critic is as that of the run without faults. Stops it."""
        server.wait_until_ready()
        server.stop()
        same_critics(self.folder / name, self.folder / "alone", ROUNDS)

    def end(self):
        for program in self.programs:
            program.end()


def wait_for_moment(server, draw, alive):
    """Until the server is in the middle of something: applying a call that is in its journal, writing a checkpoint, or anything. Says which."""
    kind = draw.choice(["training", "training", "saving", "saving", "any"])
    before = server.journal_bytes()
    end = time.monotonic() + 3  # nobody may be training or saving any more
    while time.monotonic() < end and alive():
        if kind == "training" and server.journal_bytes() > before:
            time.sleep(draw.random() * 0.06)
            return kind
        if kind == "saving" and server.is_saving():
            return kind
        if kind == "any" and draw.random() < 0.002:
            return kind
        time.sleep(0.0005)
    return "any"


def kill_and_restart(server, draw, kills, alive):
    """The number of kills by what the server did; it is started again after each."""
    counts = {}
    while sum(counts.values()) < kills and alive():
        kind = wait_for_moment(server, draw, alive)
        if not alive():
            break
        server.kill()
        counts[kind] = counts.get(kind, 0) + 1
        server.start()
        if draw.random() < 0.7:  # at other times the next one comes while it starts
            server.wait_until_ready()
            time.sleep(draw.random() * 0.3)
    return counts


def server_killed(room):
    draw = random.Random(SEED)
    server = room.critic("killed").start()
    actor = room.actor("killed", server.port, pause_ms=50)
    counts = kill_and_restart(server, draw, KILLS, actor.is_running)
    assert sum(counts.values()) >= min(KILLS, 3), f"only {counts}: the actor was done too soon"
    assert actor.finish() == room.lines, "the replies differ from those of the run without faults"
    room.check("killed", server)
    return f"{counts}"


def connections_cut(room):
    server = room.critic("cut").start().wait_until_ready()
    proxy = Proxy(server.port, cut=0.25, double=0.25, seed=SEED)
    lines = room.actor("cut", proxy.port).finish()
    proxy.close()
    assert lines == room.lines, "the replies differ from those of the run without faults"
    for fate in ("answer lost", "request lost", "doubled"):
        assert proxy.counts[fate] > 0, f"no call was {fate}: {proxy.counts}"
    room.check("cut", server)
    return f"{proxy.counts}"


def resume_until_done(room, name, server, draw, kills, also=lambda: None):
    """An actor that is killed in the middle of calls goes on from the last save it heard of. What each of its lives hears must be what the
    run without faults heard from there on."""
    step, lives = 0, 0
    while True:
        keys = {} if lives == 0 else {"resume": step}
        actor = room.actor(f"{name}-{lives}", server.port, **keys)
        if lives < kills:
            # After some replies, one of them the save every now and then, in the middle of the next call.
            num_replies = draw.randrange(1, 2 + 2 * len(room.lines) // (kills + 1))
            wait_for("replies", lambda: len(actor.lines()) >= num_replies or not actor.is_running(), pause_s=0.002)
            time.sleep(draw.random() * 0.05)
            actor.kill()
            lines = actor.lines()
            also()
            # What it had sent may still be on its way: behind the next actor's restore it is refused by its epoch.
        else:
            lines = actor.finish()
        lives += 1
        begin = 0 if step == 0 else next(i for i, line in enumerate(room.lines) if line["call"] == "save" and line["train_calls"] == step) + 1
        assert lines == room.lines[begin:begin + len(lines)], f"life {lives}, from step {step}: other replies than without faults"
        step = max([step] + [line["train_calls"] for line in lines if line["call"] == "save"])
        if step == ROUNDS:
            break
    room.check(name, server)
    return f"{lives} lives"


def actor_killed(room):
    server = room.critic("actor_killed").start()
    return resume_until_done(room, "actor_killed", server, random.Random(SEED + 1), max(3, KILLS // 2))


def both_killed(room):
    draw = random.Random(SEED + 2)
    server = room.critic("both_killed").start()

    def kill_server():
        time.sleep(draw.random() * 0.1)
        server.kill()
        server.start()

    return resume_until_done(room, "both_killed", server, draw, max(2, KILLS // 3), kill_server)


def queue_full(room):
    """Far more calls at once than may wait: those that are sent away come again, and training is never kept out by calls that wait for it."""
    server = room.critic("full", "trainer.ppo.queue_limit=2", "trainer.ppo.merge=true").start().wait_until_ready()
    lines = room.actor("full", server.port, calls=24, rows=8).finish()
    assert sum(line["call"] == "infer" for line in lines) == 24 * ROUNDS
    changes = lambda all_lines: [line for line in all_lines if line["call"] != "infer"]
    assert changes(lines) == changes(room.lines), "training went otherwise than without faults"
    metrics = ask(server.port, "GET", "/metrics")[1].decode()
    refused = int(re.search(r'kedge_calls_total\{model="critic_infer",outcome="refused"\} (\d+)', metrics).group(1))
    assert refused > 0, "no call was ever sent away"
    room.check("full", server)
    return f"{refused} calls were sent away and came again"


def malformed_requests(limit):
    """Bytes, and the statuses that may answer them; none: the connection is closed without a word."""
    path = "/v2/models/reward_model/infer"
    good = token_body([[1, 2, 3]], 3).encode()

    def post(body, *headers, length=None):
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body) if length is None else length}", *headers]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500), {400}  # TLS
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 404, 505}
    yield b"\0" * 4000, {400}
    yield os.urandom(3000) + b"\r\n\r\n", {400}
    yield b"GET " + b"/a" * 40000 + b" HTTP/1.1\r\n\r\n", {400, 414, 431}
    yield b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n", {400, 431}
    yield post(b"", length=-5), {400}
    yield post(b"", length="18446744073709551617"), {400, 413}
    yield post(b"x" * 100, length=limit + 1), {413}
    yield post(good, "Content-Length: 3"), {400}
    yield post(good, "Transfer-Encoding: chunked"), {400}
    chunked = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    yield chunked + b"zz\r\nabc\r\n", {400}
    yield chunked + b"ffffffffffffffff1\r\nabc\r\n", {400, 413}
    yield chunked + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * (limit // 4096 + 2) + b"0\r\n\r\n", {413}
    bomb = gzip.compress(b" " * (limit * 4))
    yield post(bomb, "Content-Encoding: gzip"), {413}
    yield post(bomb[:-9], "Content-Encoding: gzip"), {400, 413}
    yield post(good, "Content-Encoding: br"), {501}
    yield post(good, "Inference-Header-Content-Length: 99999"), {400}
    yield post(good, "Inference-Header-Content-Length: -1"), {400}
    yield post(good[:-3]), {400}
    yield post(b"[" * 30000), {400}
    yield post(b'{"inputs":[]}'), {400}
    yield post(good.replace(b"[1, 2, 3]", b"[1, 2, 7]")), {400}  # outside the vocabulary
    yield post(good.replace(b"[1, 3]", b"[1, 3000000000000]")), {400}
    yield post(good.replace(b"INT64", b"INT32")), {400}
    yield post(good.replace(b'"shape": [1, 1], "datatype": "INT64", "data": [3]', b'"shape": [1, 1], "datatype": "INT64", "data": [0]')), {400}
    yield post(b'{"inputs":[{"name":"sentences","shape":[1,1],"datatype":"BYTES","parameters":{"binary_data_size":6}}]}\x02\0\0\0\xff\xfe',
               "Inference-Header-Content-Length: 102"), {400}
    yield b"DELETE /v2/models/reward_model HTTP/1.1\r\nHost: x\r\n\r\n", {405}
    # Cut off anywhere.
    for part in (1, 20, 60, len(post(good)) - 1):
        yield post(good)[:part], None


class GoodClient(threading.Thread):
    """Asks for rewards that are known, again and again."""

    def __init__(self, port, known):
        super().__init__(daemon=True)
        self.port, self.known, self.num_asked, self.wrong, self.ending = port, known, 0, None, False

    def run(self):
        draw = random.Random(5)
        try:
            while not self.ending:
                body, rewards = draw.choice(self.known)
                status, answer = ask(self.port, "POST", "/v2/models/reward_model/infer", body, limit_s=20)
                assert status == 200, f"{body}: HTTP {status} {answer}"
                found = output_of(answer, "rewards")
                assert len(found) == len(rewards) and all(abs(a - b) <= 1e-5 for a, b in zip(found, rewards)), \
                    f"{body}: wanted {rewards}, found {found}"
                self.num_asked += 1
        except Exception as error:
            self.wrong = f"{type(error).__name__}: {error}"


def send_and_read(port, data):
    """The status of the answer; None where there is none."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before its end
        answer = b""
        try:
            while more := peer.recv(65536):
                answer += more
        except ConnectionError:
            pass
        return int(answer.split()[1]) if answer else None


def drip(port, ending, closed, count=150):
    """Connections that send a byte now and then and never finish a request. Those that the server closes are added to `closed`."""
    peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    text = b"POST /v2/models/reward_model/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n" + b"x" * 1000
    at = 0
    while not ending.is_set():
        for number, peer in enumerate(peers):
            try:
                # A third of them get into the body, the others stay in the header.
                peer.sendall(text[:len(text) - 1000 + at] if at == 0 and number % 3 == 0 else text[at:at + 1])
            except OSError:
                closed.add(number)
        at += 1
        ending.wait(0.3)
    for peer in peers:
        reset(peer)


def server_abused(room):
    limit = 100000
    server = Server(KEDGE, "reward", room.model, room.folder / "abused", f"inference.max_body={limit}")
    room.programs.append(server)
    server.start().wait_until_ready()
    draw = random.Random(SEED)
    known = []
    for _ in range(12):
        body = random_body(draw)
        status, answer = ask(server.port, "POST", "/v2/models/reward_model/infer", body)
        assert status == 200, answer
        known.append((body, output_of(answer, "rewards")))
    good = [GoodClient(server.port, known) for _ in range(2)]
    ending, closed = threading.Event(), set()
    dripping = threading.Thread(target=drip, args=(server.port, ending, closed), daemon=True)
    for thread in [*good, dripping]:
        thread.start()
    num_bad = 0
    end = time.monotonic() + (6 if IS_SHORT else 60)
    while num_bad == 0 or time.monotonic() < end:
        for data, statuses in malformed_requests(limit):
            status = send_and_read(server.port, data)
            assert status in (statuses or {None}), f"{data[:300]!r} ({len(data)} bytes) was answered {status}, wanted {statuses}"
            num_bad += 1
        for _ in range(20):  # gone in the middle of a request, or while the answer is computed
            peer = socket.create_connection(("127.0.0.1", server.port))
            body = draw.choice(known)[0].encode()
            request = f"POST /v2/models/reward_model/infer HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            peer.sendall(request[:draw.randrange(1, len(request) + 1)])
            reset(peer)
    ending.set()
    dripping.join(LIMIT_S)
    assert IS_SHORT or len(closed) >= 100, f"only {len(closed)} connections that never finished a header were closed"  # after 20 s
    for client in good:
        client.ending = True
        client.join(LIMIT_S)
        assert client.wrong is None, client.wrong
        assert client.num_asked > 10, f"a good client was served only {client.num_asked} times"
    wait_for("all connections closed", lambda: server.metric("kedge_connections") <= 1)
    assert server.metric("kedge_queue_length") == 0
    server.stop()
    return f"{num_bad} bad requests, {sum(client.num_asked for client in good)} good ones beside them"


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        room = Room(pathlib.Path(folder))
        print(f"without faults: {len(room.lines)} replies, {time.monotonic() - begin:.1f} s", flush=True)
        for scenario in (server_killed, connections_cut, actor_killed, both_killed, queue_full, server_abused):
            begin = time.monotonic()
            try:
                print(f"{scenario.__name__}: {scenario(room)}, {time.monotonic() - begin:.1f} s", flush=True)
            except Exception as error:  # the others are run all the same
                failures += 1
                print(f"FAILED: {scenario.__name__}: {type(error).__name__}: {error}", flush=True)
            finally:
                room.end()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
