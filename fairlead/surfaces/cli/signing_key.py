"""`fairlead signing-key`: the private key that signs plans, and the public key for plan followers.

Belongs here: printing a key pair. Belongs elsewhere: signing (`fairlead.wire.signing`).
"""

from typing import Annotated

import typer


def signing_key(
    key_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Name of the key; consumers find the public key by it."),
    ],
) -> None:
    """Create a key pair for signing plans."""
    from fairlead.wire.signing import Signer

    signer = Signer.new(key_id)
    typer.echo("# A secret, only for the planner: under [kafka] in fairlead.toml")
    typer.echo(f'private_key = "{signer.private_text()}"')
    typer.echo("# For every consumer. In Java and in brokers, the setting is fairlead.public.keys")
    typer.echo(f'public_keys = "{signer.public_text()}"')
