"""A local HTTP endpoint of the Messages API with scripted answers, for tests of its clients."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, cast

from attrs import field, frozen

USAGE: Mapping[str, object] = {
    "input_tokens": 100,
    "output_tokens": 20,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


@frozen
class Answer:
    """An HTTP response, and how it misbehaves.

    delay: seconds before its first byte. drip: seconds before each byte of its body; creep: the same for an endless
    header. reset: reset the connection. promised: bytes in its content-length beyond those sent.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict[str, str])
    delay: float = 0.0
    drip: float = 0.0
    creep: float = 0.0
    reset: bool = False
    promised: int = 0


@frozen
class Asked:
    """A received request."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


def message(content: object, stop: str = "tool_use", usage: object = USAGE) -> Answer:
    """A message with these content blocks."""
    fields = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    return Answer(json.dumps(fields).encode("utf-8"))


def call(data: object, name: str = "propose", stop: str = "tool_use", usage: object = USAGE) -> Answer:
    """A message with one tool call."""
    return message([{"type": "tool_use", "id": "toolu_1", "name": name, "input": data}], stop, usage)


def failure(status: int, said: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An error response in the API's format."""
    body = {"type": "error", "error": {"type": "api_error", "message": said}}
    return Answer(json.dumps(body).encode("utf-8"), status, headers or {})


class Endpoint:
    """A server in its own thread, running within a `with` block.

    script: the answers in order, or a function from a request to its answer. asked: the received requests, in order.
    A request beyond the script gets status 500.
    """

    def __init__(self, script: Iterable[Answer] | Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self._answers = None if callable(script) else iter(script)
        self._answer = script if callable(script) else None
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, asked: Asked) -> Answer:
        """The next answer of the script."""
        self.asked.append(asked)
        if self._answer is not None:
            return self._answer(asked)
        return next(self._answers or iter(()), failure(500, "the script is over"))

    def pause(self, seconds: float) -> None:
        """Sleep, but return early when the server is closed."""
        self._closing.wait(seconds)

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = cast("dict[str, Any]", json.loads(self.rfile.read(length)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = endpoint.answer(Asked(self.path, headers, body))
            # The client may have disconnected.
            with suppress(ConnectionError):
                _send(self, endpoint, answer)
            self.close_connection = True

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Log nothing: tests read `asked`."""

    return Handler


def _send(handler: BaseHTTPRequestHandler, endpoint: Endpoint, answer: Answer) -> None:
    endpoint.pause(answer.delay)
    if answer.reset:
        # With a linger time of zero, closing sends RST instead of FIN.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        return
    if answer.creep:
        _dripped(handler, endpoint, b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 10_000, answer.creep)
        return
    handler.send_response(answer.status)
    headers = {"content-type": "application/json", "content-length": str(len(answer.body) + answer.promised)}
    for name, value in {**headers, "connection": "close", **answer.headers}.items():
        handler.send_header(name, value)
    handler.end_headers()
    if answer.drip:
        _dripped(handler, endpoint, answer.body, answer.drip)
    else:
        handler.wfile.write(answer.body)


def _dripped(handler: BaseHTTPRequestHandler, endpoint: Endpoint, data: bytes, seconds: float) -> None:
    for each in data:
        handler.wfile.write(bytes([each]))
        handler.wfile.flush()
        endpoint.pause(seconds)
