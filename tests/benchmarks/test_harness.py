"""The command line of every benchmark."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import harness

COMMANDS = sorted(
    path.stem
    for path in Path(harness.__file__).parent.glob("*.py")
    if "\ndef main()" in path.read_text()
)


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_every_benchmark_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` prints the usage and exits, before any service starts."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        import_module(f"benchmarks.{name}").main()
    assert f"usage: {name}" in capsys.readouterr().out
