"""Run the web server on a thread while a test runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from fairlead.surfaces.web.server import HOST, address_of, listening, uvicorn_server


@contextmanager
def serving(app: ASGIApp, host: str = HOST, port: int = 0) -> Iterator[str]:
    """Run the server until the block ends; yield its address. Port 0 chooses a free port."""
    with listening(host, port) as listener:
        server = uvicorn_server(app)
        thread = threading.Thread(target=server.run, args=([listener],), name="fairlead-web")
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()
