"""`fairlead notify test`: whether the webhook's receiver takes a message.

Belongs here: the command. Does not: sending (`fairlead.surfaces.notices`).
"""

import typer

from fairlead.surfaces.cli.output import epilog, say

app = typer.Typer(no_args_is_help=True, help="The webhook that tells people what happens.")


@app.callback()
def notify() -> None:
    """Tell people what happens, by the webhook that [notify] of fairlead.toml names."""


@app.command(epilog=epilog("notify test"))
def test() -> None:
    """Send one test message now, and say what came back; the exit code is 1 if it was not taken."""
    from fairlead.errors import ConfigurationError
    from fairlead.settings import load_settings
    from fairlead.surfaces.notices.sending import NotToldError, send, trial

    settings = load_settings()
    if settings.notify.url is None:
        raise ConfigurationError("notify.url is not set: nobody is told anything")
    try:
        say(f"Sent as {settings.notify.format}: {send(trial(), settings)}")
    except NotToldError as error:
        raise NotToldError(
            f"Not sent as {settings.notify.format}: {error}. Are notify.url and notify.format those"
            " of the receiver, and is it reached from here, by HTTPS_PROXY if need be?"
        ) from None
