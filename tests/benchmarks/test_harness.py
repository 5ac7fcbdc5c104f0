"""The command line, output and results that all benchmarks share."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import harness
from tests.waiting import PATIENCE_S

MEASURING = """
import os, subprocess, sys
from pathlib import Path
from benchmarks import harness
options = harness.parser("Nothing.", rounds=3)
with harness.measuring(options, Path(sys.argv[0]).with_name("trial.json")) as bench:
    print("a library's", flush=True)
    subprocess.run(["echo", "a child's"], check=True)
    bench.show("Turns", ("what", "figure"), [("rounds", bench.options.rounds), ("rows", None)])
    bench.write({"rows": harness.in_turns(bench.options.rounds, lambda turn: 10 / turn)})
"""
COMMANDS = sorted(
    path.stem
    for path in Path(harness.__file__).parent.glob("*.py")
    if "\ndef main()" in path.read_text()
)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return a benchmark's file."""
    file = tmp_path / "trial.py"
    file.write_text(MEASURING)
    return file


def run(file: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a benchmark, its logs beside it."""
    program = (
        "import runpy, sys; from pathlib import Path; from benchmarks import harness;"
        f"harness.LOGS = Path({str(file.parent)!r}); sys.argv = sys.argv[1:];"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", program, str(file), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_every_benchmark_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The help of a benchmark starts no service."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        import_module(f"benchmarks.{name}").main()
    assert f"usage: {name}" in capsys.readouterr().out


def test_figures_are_written_with_the_facts_of_the_machine(trial: Path, tmp_path: Path) -> None:
    """Figures are written to the given file, or to the benchmark's folder."""
    trial.write_text(MEASURING.replace("10 / turn", "turn"))
    assert run(trial, "--rounds", "2").returncode == 0
    written = json.loads((tmp_path / "trial.json").read_text())
    assert written["rows"] == [[0, 1]]
    assert written["machine"].keys() >= {"cpus", "python", "load before"}
    (tmp_path / "trial.json").unlink()
    assert run(trial, "--answer", str(tmp_path / "elsewhere")).returncode == 0
    assert json.loads((tmp_path / "elsewhere").read_text())["rows"] == [[0, 1, 2]]
    assert not (tmp_path / "trial.json").exists()


def test_a_benchmark_that_fails_says_why(trial: Path, tmp_path: Path) -> None:
    """A failed benchmark writes no figures, and prints the error and the path of its log."""
    done = run(trial)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert str(tmp_path / "trial.log") in done.stdout.replace("\n", "")
    assert not (tmp_path / "trial.json").exists()
