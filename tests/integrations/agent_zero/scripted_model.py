"""A double of a model's server: it answers as a script says, by what stands in the request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ScriptedModel:
    """`script(text, request)` gives the words of an answer, or an `Event` to wait for before it says anything."""

    def __init__(self, script):
        self.script, self.requests = script, []
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (ScriptedHandler,), {"model": self})
        )
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self):
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class ScriptedHandler(BaseHTTPRequestHandler):
    """Answers chats, and nothing else."""

    model: ScriptedModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "messages" not in body:  # it has chats, and nothing else
            self.send({"error": {"message": "no such path", "code": 404}}, 404)
            return
        self.model.requests.append(body)
        words = self.model.script(json.dumps(body["messages"]), body)
        if isinstance(words, threading.Event):
            words.wait(60)
            words = "{}"
        self.stream(words) if body.get("stream") else self.send(self.whole(words))

    @staticmethod
    def whole(words):
        message = {"role": "assistant", "content": words}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [choice],
            "usage": usage,
        }

    def send(self, tree, status=200):
        raw = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def stream(self, words):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        pieces = [words[at : at + 16] for at in range(0, len(words), 16)] or [""]
        ends = [None] * (len(pieces) - 1) + ["stop"]
        try:
            for piece, end in zip(pieces, ends, strict=True):
                choice = {"index": 0, "delta": {"content": piece}, "finish_reason": end}
                chunk = {
                    "id": "c",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "scripted",
                    "choices": [choice],
                }
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:  # Agent Zero stops reading as soon as its JSON is whole
            pass
        self.close_connection = True


def tool(name, thought, **arguments):
    """An answer in Agent Zero's words."""
    return json.dumps(
        {"thoughts": [thought], "headline": "h", "tool_name": name, "tool_args": arguments}
    )
