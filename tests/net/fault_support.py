"""What the tests of servers under faults share: programs that are started, killed and started again, a proxy that loses and doubles calls,
and plain questions to a model. Every wait has a limit, and the end of one is a failure with the programs' logs."""
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import threading
import time

LIMIT_S = 120  # of any single wait

# A tokenizer of a few letters: seven ids.
TOKENIZER = {
    "version": "1.0", "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"},
    "added_tokens": [{"id": 6, "content": "<eos>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, " ": 2, "c": 3, "ab": 4, "\n": 5}, "merges": ["a b"]}}
VOCAB = 7


def make_reward_model(kedge, folder):
    """A small reward model with random weights, and its folder."""
    letters = folder / "letters"
    letters.mkdir()
    (letters / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (letters / "tokenizer_config.json").write_text('{"eos_token": "<eos>"}')
    out = folder / "judge"
    subprocess.run([kedge, "init", out, "--shape", "tiny", "--tokenizer", letters, "--num-labels", "1", "--threads", "1"], check=True,
                   capture_output=True, timeout=LIMIT_S)
    return out


def free_port():
    """Below those that the system gives to callers: one that calls a server which is away could otherwise be given the server's own port."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as place:
            try:
                place.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def wait_for(what, condition, limit_s=LIMIT_S, pause_s=0.02):
    end = time.monotonic() + limit_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit_s} s")
        time.sleep(pause_s)


class Server:
    """kedge serve reward or critic, always at the same port."""

    def __init__(self, kedge, kind, model, folder, *overrides):
        self.port = free_port()
        self.folder = pathlib.Path(folder)
        self.log = self.folder.with_suffix(".log")
        section = "inference" if kind == "reward" else "trainer.ppo"
        self.command = [kedge, "serve", kind, f"{section}.port={self.port}", "trainer.accelerator=cpu", "trainer.precision=32", "trainer.threads=1"]
        if kind == "reward":
            self.command += [f"rm_model_file={model}"]
        else:
            self.command += [f"pretrained_checkpoint.restore_from_path={model}", f"exp_manager.explicit_log_dir={self.folder}",
                             "exp_manager.create_tensorboard_logger=false", "model.optim.lr=1e-3", "model.optim.sched.warmup_steps=2",
                             "trainer.ppo.insecure=true"]  # proxies stand at other ports, where no actor finds the token
        self.command += overrides
        self.process = None
        self.num_starts = 0

    def start(self):
        self.process = subprocess.Popen([str(word) for word in self.command], stdout=self.log.open("ab"), stderr=subprocess.STDOUT)
        self.num_starts += 1
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.tail()}")
        try:
            return ask(self.port, "GET", "/v2/health/ready")[0] == 200
        except OSError:
            return False

    def wait_until_ready(self):
        wait_for(f"{self.command[2]} server ready", self.is_ready)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait(LIMIT_S)

    def stop(self):
        """As an operator would; the exit code must be 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT_S)
        assert code == 0, f"the server ended with {code}:\n{self.tail()}"

    def end(self):
        if self.process and self.process.poll() is None:
            self.kill()

    def metric(self, name):
        for line in ask(self.port, "GET", "/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise AssertionError(f"no {name} among the metrics")

    def tail(self, lines=30):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    # What the critic is doing, as its folder shows.
    def journal_bytes(self):
        total = 0
        for path in (self.folder / "journals").glob("*"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:  # removed meanwhile
                pass
        return total

    def is_saving(self):
        return any((self.folder / "checkpoints").glob(".unfinished-*"))


class Actor:
    """tests/net/fault_actor against a port; its lines go to a file."""

    def __init__(self, program, port, out, **keys):
        self.out = pathlib.Path(out)
        self.errors = self.out.with_suffix(".err")
        words = [program, f"port={port}"] + [f"{key}={value}" for key, value in keys.items()]
        self.process = subprocess.Popen([str(word) for word in words], stdout=self.out.open("wb"), stderr=self.errors.open("ab"))

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait(LIMIT_S)

    def lines(self):
        """Of replies, without one that a kill tore."""
        return [json.loads(line) for line in self.out.read_bytes().split(b"\n")[:-1]]

    def finish(self, limit_s=LIMIT_S):
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the actor hangs:\n{self.errors.read_text()[-3000:]}") from None
        assert code == 0, f"the actor ended with {code}:\n{self.errors.read_text()[-3000:]}"
        return self.lines()

    def end(self):
        if self.is_running():
            self.kill()


def ask(port, method, path, body=None, headers=None, limit_s=30):
    """Status and body, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise ConnectionError(str(error)) from error
    finally:
        connection.close()


def token_body(rows, width):
    """A call's JSON for rows of ids, filled up to the width."""
    flat = [token for row in rows for token in row + [0] * (width - len(row))]
    return json.dumps({"inputs": [{"name": "tokens", "shape": [len(rows), width], "datatype": "INT64", "data": flat},
                                  {"name": "sequence_lengths", "shape": [len(rows), 1], "datatype": "INT64", "data": [len(row) for row in rows]}]})


def text_body(texts):
    return json.dumps({"inputs": [{"name": "sentences", "shape": [len(texts), 1], "datatype": "BYTES", "data": texts}]})


def random_body(draw, max_rows=3, max_width=40):
    """Ids or texts of any width."""
    num_rows = draw.randint(1, max_rows)
    if draw.random() < 0.5:
        return text_body(["".join(draw.choices("ab c\n", k=draw.randint(1, max_width))) for _ in range(num_rows)])
    width = draw.randint(1, max_width)
    return token_body([[draw.randrange(VOCAB) for _ in range(draw.randint(1, width))] for _ in range(num_rows)], width)


def output_of(body, name):
    for output in json.loads(body)["outputs"]:
        if output["name"] == name:
            return output["data"]
    raise AssertionError(f"no {name} in {body!r}")


class Proxy:
    """Stands before a server and reads whole requests. Of those that are POSTs, by chance: `cut` are carried out and their answers lost, or
    lost while they are sent; `double` are delivered twice, on connections of their own, at once or up to `late_s` later."""

    def __init__(self, port, cut=0.0, double=0.0, late_s=0.5, seed=1):
        self.port_behind, self.cut, self.double, self.late_s = port, cut, double, late_s
        self.draw = random.Random(seed)
        self.lock = threading.Lock()
        self.num_carried = 0  # now
        self.counts = {"passed": 0, "answer lost": 0, "request lost": 0, "doubled": 0}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.closing = False
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.closing = True
        self.listener.close()

    def accept(self):
        while not self.closing:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with peer:
            try:
                while request := read_message(peer):
                    answer = self.counted(self.carry, request)
                    if answer is None:
                        return
                    peer.sendall(answer)
            except OSError:
                pass

    def counted(self, work, *arguments):
        with self.lock:
            self.num_carried += 1
        try:
            return work(*arguments)
        finally:
            with self.lock:
                self.num_carried -= 1

    def choose(self, request):
        with self.lock:
            number = self.draw.random()
            fate = "passed"
            if request.startswith(b"POST"):
                if number < self.cut:
                    fate = "answer lost" if self.draw.random() < 0.7 else "request lost"
                elif number < self.cut + self.double:
                    fate = "doubled"
                self.counts[fate] += 1
            return fate, self.draw.random()

    def carry(self, request):
        fate, number = self.choose(request)
        if fate == "request lost":
            with socket.create_connection(("127.0.0.1", self.port_behind), timeout=LIMIT_S) as server:
                server.sendall(request[:int(len(request) * number)])
            return None
        if fate == "doubled":
            delay_s = number * self.late_s if number > 0.4 else 0
            threading.Thread(target=self.counted, args=(self.deliver_late, request, delay_s), daemon=True).start()
        with socket.create_connection(("127.0.0.1", self.port_behind), timeout=LIMIT_S) as server:
            server.sendall(request)
            if fate == "answer lost" and number < 0.5:
                time.sleep(number * 0.2)  # it may be waiting, or running, or done
                return None
            answer = read_message(server)
            return None if fate == "answer lost" else answer

    def deliver_late(self, request, delay_s):
        time.sleep(delay_s)
        try:
            with socket.create_connection(("127.0.0.1", self.port_behind), timeout=LIMIT_S) as server:
                server.sendall(request)
                read_message(server)
        except OSError:
            pass


def read_message(peer):
    """The bytes of one HTTP message with a Content-Length or no body; None where the peer has closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.recv(65536)
        if not more:
            return None
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    parts, have = [data], len(rest)
    while have < length:
        more = peer.recv(1 << 20)
        if not more:
            return None
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def reset(peer):
    """Closes so that the other side sees a broken connection, not an end."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def checkpoint_of(folder, step):
    """The critic's checkpoint with that label."""
    for meta in pathlib.Path(folder).glob("checkpoints/*/meta.json"):
        if json.loads(meta.read_text())["counters"].get("actor_step") == step:
            return meta.parent
    raise AssertionError(f"{folder}: no checkpoint of actor_step {step} among {os.listdir(pathlib.Path(folder) / 'checkpoints')}")


def files_of(checkpoint):
    """What must not depend on faults: weights and the optimizer's state, bit for bit."""
    found = {}
    for part in ("model", "state"):
        for path in sorted((checkpoint / part).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(checkpoint))] = path.read_bytes()
    assert any(name.endswith(".safetensors") for name in found), f"{checkpoint}: no weights"
    return found


def numbers_of(folder):
    """The critic's metrics without times."""
    rows = []
    for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines():
        rows.append({key: value for key, value in json.loads(line).items() if "time" not in key})
    return rows


def same_critics(folder, reference, step):
    ours, theirs = files_of(checkpoint_of(folder, step)), files_of(checkpoint_of(reference, step))
    assert ours.keys() == theirs.keys(), f"{folder}: other files: {ours.keys() ^ theirs.keys()}"
    for name in ours:
        assert ours[name] == theirs[name], f"{folder}: {name} at step {step} differs from the run without faults"
    assert numbers_of(folder) == numbers_of(reference), f"{folder}: the numbers of its updates differ from the run without faults"
