"""Finding Java: what is accepted, and the one sentence when nothing is."""

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
    """Java 17 and newer, early-access builds too, are taken from JAVA_HOME."""
    java = _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


def test_path_is_used_without_java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAVA_HOME the first java on PATH is taken."""
    java = _fake_java(tmp_path, 'openjdk version "17.0.1" 2021-10-19')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    assert find_java() == java


def test_version_is_read_without_starting_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JDK's file `release` tells it, behind a link too; the program is not run."""
    java = _fake_java(tmp_path / "jdk", "not to be asked", code=1)
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(java)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == tmp_path / "bin" / "java"
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="1.8.0_292"\n')
    with pytest.raises(ConfigurationError, match="is Java 8, which is too old"):
        find_java()


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "11.0.2" 2019-01-15', "11"), ('java version "1.8.0_292"', "8")],
)
def test_old_java_is_refused(
    says: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older Java is named with its version, and what to do is said."""
    _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=rf"Java {version}, .*too old.*Install Java 17"):
        find_java()


def test_missing_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any java the message says what to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"No java on PATH\. Install Java 17"):
        find_java()


def test_java_home_without_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAVA_HOME that leads nowhere is an error, not a reason to take another Java."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="which has no bin/java"):
        find_java()


@pytest.mark.parametrize(("says", "code"), [("no runtime present", 1), ("gibberish", 0)])
def test_java_that_does_not_tell_its_version_is_refused(
    says: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stub that is no Java, as some systems have, is told apart; its words are passed on."""
    _fake_java(tmp_path, says, code=code)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=says):
        find_java()
