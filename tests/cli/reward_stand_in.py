"""A reward server that speaks KServe v2 and, by the name of its model, misbehaves. It counts the letter a, as the rule of the tests does.
Prints its address and serves until it is killed. reward_stand_in.py [PORT]"""

import http.server
import json
import struct
import sys

LATE = 60  # calls after which late_error begins to fail: the first two steps and a validation make at most 40
LETTERS = ["a", "b", " ", "c", "ab", "\n", ""]  # of the tests' tokenizer; the last one ends a response
num_calls = {}


def texts_of(body, header_length):
    """Of the request's sentences, which come as binary: each its length in four bytes, then the text. Ids become letters again."""
    first = json.loads(body[:header_length])["inputs"][0]
    count = first["shape"][0]
    if first["name"] == "tokens":
        width = first["shape"][1]
        numbers = struct.unpack_from(f"<{count * width + count}q", body, header_length)
        rows = [numbers[row * width:][:numbers[count * width + row]] for row in range(count)]
        assert all(0 <= token < len(LETTERS) for row in rows for token in row)
        return ["".join(LETTERS[token] for token in row) for row in rows]
    texts, at = [], header_length
    for _ in range(count):
        size, = struct.unpack_from("<I", body, at)
        texts.append(body[at + 4:at + 4 + size].decode())
        at += 4 + size
    return texts


def answer(model, texts):
    """Status, JSON and the bytes behind it."""
    num_calls[model] = num_calls.get(model, 0) + 1
    values = [float(text.count("a")) for text in texts]
    refuses = model == "error" or (model == "picky" and any("c ab" in text for text in texts)) or (model == "late_error" and num_calls[model] > LATE)
    if refuses:
        return 500, {"error": "the judge is not at home"}, b""
    if model == "nonsense":
        return 200, None, b"<html>"
    if model == "nan":
        values = [float("nan")] * len(values)
    if model == "short":
        values.append(1.0)
    width = 2 if model == "wide" else 1
    datatype, code = ("INT32", "i") if model == "whole_numbers" else ("FP32", "f")
    data = b"".join(struct.pack("<" + code, int(value) if code == "i" else value) for value in values for _ in range(width))
    name = "values" if model == "nameless" else "rewards"
    outputs = [{"name": name, "shape": [len(values), width], "datatype": datatype, "parameters": {"binary_data_size": len(data)}}]
    return 200, {"model_name": model, "model_version": "1", "outputs": outputs}, data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, content, data=b""):
        head = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(head) + len(data)))
        if data and head:
            self.send_header("Inference-Header-Content-Length", str(len(head)))
        self.end_headers()
        self.wfile.write(head + data)

    def do_GET(self):
        parts = self.path.split("/")
        if not self.path.endswith("/config"):
            self.reply(200, {"name": "stand-in"})
            return
        inputs = [("sentences", "TYPE_STRING", [1])]
        if parts[3] == "ids_only":  # what NeMo-Aligner's actors send
            inputs = [("tokens", "TYPE_INT64", [-1]), ("sequence_lengths", "TYPE_INT64", [1])]
        self.reply(200, {"name": parts[3], "max_batch_size": 1024, "input": [{"name": name, "data_type": kind, "dims": dims} for name, kind, dims in inputs],
                         "output": [{"name": "rewards", "data_type": "TYPE_FP32", "dims": [1]}]})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        texts = texts_of(body, int(self.headers["Inference-Header-Content-Length"]))
        self.reply(*answer(self.path.split("/")[3], texts))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
print(f"ready at http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
