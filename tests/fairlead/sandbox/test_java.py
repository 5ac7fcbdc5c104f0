"""Finding Java: accepted versions, and the error about an old version."""

from pathlib import Path

import pytest

from fairlead.errors import ConfigurationError
from fairlead.sandbox.java import find_java


def _fake_java(home: Path, says: str, *, code: int = 0) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    "says",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'java version "21" 2023-09-19 LTS',
        'openjdk version "25-ea" 2025-09-16',
    ],
)
def test_java_home_is_used(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java 17 and newer, including early-access builds, is taken from JAVA_HOME."""
    java = _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "11.0.2" 2019-01-15', "11"), ('java version "1.8.0_292"', "8")],
)
def test_old_java_is_refused(
    says: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the version of the old Java, and the remedy."""
    _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"Java {version}, .*too old.*Install Java 17"):
        find_java()
