"""`/ready` reports whether samples are recent and all parts (processes) of `fairlead up` run."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from fairlead.sandbox.part_states import PartState, published
from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.web import build_app
from tests.serving import serving
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

EVERY = timedelta(minutes=20)


@pytest.fixture
def address(
    settings: Settings, migrated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Serve pages from an empty database; return their address.

    The pages connect to the database with the role `fairlead_reader`.
    """
    monkeypatch.setattr("fairlead.surfaces.web.readiness.KAFKA_S", PATIENCE_S)
    engine = create_store_engine(f"{migrated}&options=-c%20role%3Dfairlead_reader")
    own = settings.model_copy(update={"state_dir": tmp_path})
    with serving(build_app(engine, own)) as served:
        yield served
    engine.dispose()


@pytest.fixture
def planner(migrated: str) -> Iterator[PlanStore]:
    """Return a plan store that connects to the same database with the role `fairlead_planner`."""
    engine = create_store_engine(f"{migrated}&options=-c%20role%3Dfairlead_planner")
    yield PlanStore(engine)
    engine.dispose()


def ready(address: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the report of `/ready`."""
    try:
        with urlopen(f"{address}/ready", timeout=PATIENCE_S) as answer:  # noqa: S310 - our own address
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_planner_is_ready_for_three_intervals_after_a_sample(
    address: str, planner: PlanStore
) -> None:
    """`/ready` answers 503 before the first sample, and if the last is over 3 intervals old."""
    status, found = ready(address)
    assert (status, found["last_sample"]) == (503, None)
    assert found["missing"] == [
        "no sample was taken yet: turn on the sensor group_samples or run `fairlead sample`"
    ]
    now = datetime.now(UTC)
    planner.record_sample(now - 2 * EVERY, EVERY)
    sampled = f"{now - 2 * EVERY:%Y-%m-%dT%H:%M:%SZ}"
    report = {"missing": [], "database": "ok", "kafka": "ok", "last_sample": sampled}
    assert ready(address) == (200, report)
    planner.record_sample(now - 4 * EVERY, EVERY)
    status, found = ready(address)
    assert status == 503
    (missing,) = found["missing"]
    assert re.match(
        r"no sample for \d+ min, though one is due every 20 min: do Dagster's daemon", missing
    )
    planner.record_sample(now - 4 * EVERY, 5 * EVERY)  # in a large fleet, the interval is longer
    assert ready(address)[0] == 200


def test_sample_with_a_future_time_counts_as_taken_now(address: str, planner: PlanStore) -> None:
    """If a sample has a future time, `/ready` shows the present time instead."""
    planner.record_sample(datetime.now(UTC) + timedelta(hours=1), EVERY)
    status, found = ready(address)
    assert status == 200
    assert datetime.fromisoformat(found["last_sample"]) <= datetime.now(UTC) + EVERY


def test_parts_that_do_not_run_are_missing(
    address: str, planner: PlanStore, tmp_path: Path
) -> None:
    """`/ready` reports parts of `fairlead up` that do not run.

    If a part that sampling needs, such as `code`, restarts, `/ready` answers 503 until the next
    sample.
    """
    planner.record_sample(datetime.now(UTC), EVERY)
    before = time.time() - 60
    with published(tmp_path) as publish:
        ended = "has ended (by signal SIGSEGV): it is started again in 1 s"
        publish({"code": PartState(before, ended), "spark": PartState(before, "is starting")})
        status, found = ready(address)
        assert (status, found["missing"]) == (503, [f"code {ended}", "spark is starting"])
        publish({"code": PartState(time.time() + 1, ""), "spark": PartState(time.time() + 1, "")})
        status, found = ready(address)
        assert status == 503
        (missing,) = found["missing"]
        assert missing.startswith("no sample since code was started at 20")
        publish({"code": PartState(before, ""), "spark": PartState(time.time() + 1, "")})
        assert ready(address)[0] == 200
    assert ready(address)[0] == 200
