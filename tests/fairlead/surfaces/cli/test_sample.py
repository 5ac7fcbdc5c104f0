"""`fairlead sample` continues on a full disk and after errors."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairlead.archive import Taken
from fairlead.errors import ConfigurationError
from fairlead.store.history_queries import read_groups
from fairlead.store.monitoring import last_sample
from fairlead.surfaces.cli import app, sample
from fairlead.workflows.sampling import Sampled
from tests.fixtures.pipelines import MakeGroup
from tests.full_disk import without_room
from tests.pipeline import Pipeline
from tests.programs import FAIRLEAD, ended

UNKEPT = "this sample is analysed, but not stored: cannot write "


@pytest.mark.kafka
@pytest.mark.postgres
def test_groups_are_analysed_on_a_full_disk(
    pipeline: Pipeline,
    make_group: MakeGroup,
    tmp_path: Path,
) -> None:
    """Samples are analysed even if they cannot be stored; each failure prints a line."""
    pipeline.recall(make_group("a", trouble=True))
    once = ended(*without_room(FAIRLEAD, "sample", "--once"), status=1)
    assert once.stdout.startswith("Sampled 1 group, 4 partitions, in ")
    (line,) = (line for line in once.stderr.splitlines() if line.startswith(UNKEPT))
    assert line.startswith(f"{UNKEPT}{tmp_path / 'warehouse' / 'samples'}/2")
    assert line.endswith("set state_dir or warehouse to another place")
    assert "Traceback" not in once.stderr
    engine = pipeline.store.engine
    assert [row["diagnosis"] for row in read_groups(engine)] == ["unbalanced"]
    before = last_sample(engine)
    assert before is not None

    config = tmp_path / "fairlead.toml"
    config.write_text(f'{config.read_text()}\n[sampling]\nevery = "PT0.1S"\nshare = 1.0\n')
    with subprocess.Popen(
        without_room(FAIRLEAD, "sample"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as service:
        assert service.stdout is not None
        lines: list[str] = []
        try:
            while sum(line.startswith("Sampled 1 group,") for line in lines) < 2:
                lines.append(service.stdout.readline())
                assert lines[-1], lines
        finally:
            service.kill()
    assert sum(line.startswith(UNKEPT) for line in lines) >= 2
    after = last_sample(engine)
    assert after is not None
    assert after.began > before.began
    assert [row["diagnosis"] for row in read_groups(engine)] == ["unbalanced"]


@pytest.mark.parametrize("error", [ConfigurationError("no login"), LookupError("unforeseen")])
def test_service_continues_after_an_error_in_one_sample(
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The service prints Fairlead's errors, logs others with a traceback, and continues."""
    series = [Sampled(Taken(datetime.now(UTC), 0.1, 3, 12), {})]
    errors: list[BaseException | None] = [error, None, KeyboardInterrupt()]

    def sample_once(*_: object) -> Sampled:
        raised = errors.pop(0)
        if raised is not None:
            raise raised
        return series.pop()

    monkeypatch.setattr(sample, "_sampled", sample_once)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("FAIRLEAD_SAMPLING__EVERY", "PT0.01S")
    result = CliRunner().invoke(app, ["sample"])
    assert "Sampled 3 groups" in result.stdout
    assert errors == []
    logged = [record.exc_info and record.exc_info[1] for record in caplog.records]
    if isinstance(error, ConfigurationError):
        assert (result.stderr.splitlines()[0], logged) == ("fairlead: no login", [])
    else:
        assert logged == [error]
