"""`fairlead signing-key` prints each key under the name of its setting."""

import tomllib

import pytest
from typer.testing import CliRunner

from fairlead.errors import ConfigurationError
from fairlead.followers import FollowOptions
from fairlead.settings import KafkaSettings
from fairlead.surfaces.cli import app


def test_each_key_is_printed_under_the_name_of_its_setting() -> None:
    """The planner can sign with the private key, and consumers can verify with the public keys.

    If the private key is configured as public keys, or vice versa, an error is raised.
    """
    drawn = tomllib.loads(CliRunner().invoke(app, ["signing-key", "2026-03"]).stdout)
    assert drawn.keys() == {"private_key", "public_keys"}
    signer = KafkaSettings.model_validate({"private_key": drawn["private_key"]}).signer
    verifier = FollowOptions(public_keys=drawn["public_keys"]).verifier()
    assert signer is not None
    assert verifier is not None
    verifier.verify("2026-03", signer.sign(b"message"), b"message")
    with pytest.raises(ConfigurationError, match="private key"):
        FollowOptions(public_keys=drawn["private_key"])
    with pytest.raises(ValueError, match="private key"):
        KafkaSettings.model_validate({"private_key": drawn["public_keys"]})
