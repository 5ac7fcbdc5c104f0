"""A receiver of webhooks on the loopback, as good or as bad as a test wants it.

Belongs here: what it takes down, and what it answers. Does not: any expectation.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """What is answered, and what came.

    Parameters
    ----------
    status, body
        Of the answer.
    raw
        Bytes in the place of the whole answer.
    pause
        Seconds before each byte of it.
    came
        Headers and body of each message.
    """

    status: int = 200
    body: bytes = b"ok"
    raw: bytes | None = None
    pause: float = 0.0
    came: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive until the block ends."""
    receiver = Receiver()

    class Answer(BaseHTTPRequestHandler):
        gone = threading.Event()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.came.append((dict(self.headers.items()), body))
            answer = receiver.raw or (
                b"HTTP/1.0 %d Said\r\nLocation: /elsewhere\r\n\r\n" % receiver.status
                + receiver.body
            )
            size = 1 if receiver.pause else len(answer)
            with contextlib.suppress(OSError):  # nobody waits for it any more
                for at in range(0, len(answer), size):
                    self.gone.wait(receiver.pause)
                    self.wfile.write(answer[at : at + size])

        def do_GET(self) -> None:
            receiver.came.append(({}, b"a redirect was followed"))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook?token=hunter2"
        try:
            yield receiver
        finally:
            Answer.gone.set()
            server.shutdown()
            thread.join()
