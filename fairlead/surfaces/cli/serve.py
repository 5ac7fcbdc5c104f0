"""`fairlead serve`: metrics and pages over HTTP.

Belongs here: the command. Belongs elsewhere: what is served (`fairlead.surfaces.web`).
"""

from typing import Annotated, Final

import typer

from fairlead.surfaces.ports import PAGES_PORT

#: Seconds for an attempt to connect to the database. Three attempts take less than the time-out of
#: a scrape, which Prometheus sets to 10 s by default.
_CONNECT_S: Final = 3


def serve(
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: other machines can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = PAGES_PORT,
) -> None:
    """Serve metrics for Prometheus at /metrics, and pages, until Ctrl-C.

    Everyone who can reach the address can read all plans. The database login needs the role
    fairlead_reader. Behind a proxy that authenticates people (web.token or web.header), people can
    also act on the pages. For this, the login needs the role fairlead_web.
    """
    import logging

    from fairlead.common.visible import VisibleFormatter
    from fairlead.surfaces.cli.arguments import opened_engine, read_settings
    from fairlead.surfaces.web import build_app
    from fairlead.surfaces.web.server import serve as run

    handler = logging.StreamHandler()
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level="INFO")
    with opened_engine(_CONNECT_S) as engine:
        run(build_app(engine, read_settings()), host, port)
