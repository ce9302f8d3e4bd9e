"""A server on loopback that answers what a test says: what a real Prometheus never would."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

Reply = Callable[[BaseHTTPRequestHandler, str, dict[str, str]], None]


@dataclass
class Stub:
    """``asked``: paths and forms so far; ``headers`` of the last question."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


@contextmanager
def stub(reply: Reply) -> Iterator[Stub]:
    """``reply`` gets the handler, the path and the form, and writes the whole answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            made.asked.append((self.path, form))
            made.headers = dict(self.headers.items())
            with contextlib.suppress(OSError):  # the client has had enough
                reply(self, self.path, form)

        do_GET = do_POST  # noqa: N815 - what a redirected question becomes

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Stub(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler: BaseHTTPRequestHandler, body: bytes, code: int = 200, **headers: str) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
