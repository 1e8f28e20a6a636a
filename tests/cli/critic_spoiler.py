"""Stands before a critic's server and passes everything on, but spoils what it says once so many training calls are through. Prints its address
and serves until it is killed.   critic_spoiler.py PORT_BEHIND FAULT TRAIN_CALLS

FAULT: nan_values, nan_loss, nan_rewards, narrow (values of a token less than there are), refused (no values: HTTP 500), train_refused (training is not
passed on: HTTP 500), foreign (it says what a server says that is not kedge's)"""

import http.client
import http.server
import json
import math
import os
import pathlib
import struct
import sys
import threading

behind, fault, wanted = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
token = pathlib.Path(f"/tmp/kedge-{os.geteuid()}/{behind}.token")
lock = threading.Lock()
num_trained = 0
SPOILED = {"nan_values": "values", "nan_loss": "loss_mean", "nan_rewards": "rewards", "narrow": "values"}


def spoil(body, header_length):
    """The answer with the one output changed, and its header's length. Outputs stand behind the header in their order."""
    header = json.loads(body[:header_length])
    if fault == "foreign":
        header.pop("parameters", None)
        head = json.dumps(header).encode()
        return head + body[header_length:], len(head)
    data, at = b"", header_length
    for output in header["outputs"]:
        size = output["parameters"]["binary_data_size"]
        piece = body[at:at + size]
        at += size
        if output["name"] == SPOILED[fault] and fault == "narrow":
            rows, width = output["shape"]
            piece = b"".join(piece[4 * width * row:4 * (width * row + width - 2)] for row in range(rows))
            output["shape"] = [rows, width - 2]
            output["parameters"]["binary_data_size"] = len(piece)
        elif output["name"] == SPOILED[fault]:
            piece = struct.pack("<f", math.nan) * (size // 4)
        data += piece
    head = json.dumps(header).encode()
    return head + data, len(head)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, body, header_length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if header_length is not None:
            self.send_header("Inference-Header-Content-Length", str(header_length))
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        global num_trained
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length", "connection")}
        with lock:
            spoils = num_trained >= wanted
        if spoils and fault == "train_refused" and self.path.endswith("/critic_train/infer"):
            self.reply(500, b'{"error": "the critic has no memory left"}')
            return
        if spoils and fault == "refused" and self.path.endswith("/critic_infer/infer"):
            self.reply(500, b'{"error": "the critic is not at home"}')
            return
        if token.exists():  # an actor looks for it by the port that it calls, which is ours
            headers["Authorization"] = f"Bearer {token.read_text().strip()}"
        connection = http.client.HTTPConnection("127.0.0.1", behind)
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        length = answer.getheader("Inference-Header-Content-Length")
        length = None if length is None else int(length)
        is_training = self.path.endswith("/critic_train/infer")
        if is_training:
            with lock:
                num_trained += 1
        concerned = fault == "foreign" or fault in SPOILED and (is_training if fault == "nan_loss" else self.path.endswith("/critic_infer/infer"))
        if spoils and concerned and length is not None:
            text, length = spoil(text, length)
        if fault == "foreign" and length is None and self.command == "GET" and text.startswith(b"{"):
            content = json.loads(text)
            content.pop("parameters", None)
            text = json.dumps({**content, "name": "another"} if self.path == "/v2" else content).encode()
        self.reply(answer.status, text, length)

    do_GET = do_POST = pass_on


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(f"ready at http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
