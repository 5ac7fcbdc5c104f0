"""Whether the planner works, as `/ready` reports it.

Belongs here: the checks and their messages. Belongs elsewhere: the route (`app`).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Engine

from fairlead.common.words import length
from fairlead.kafka.requests import kafka_answers
from fairlead.sandbox.part_states import PartState, part_states
from fairlead.settings import Settings
from fairlead.store.monitoring import SampleAge, last_sample

#: Seconds to wait for Kafka's answer; the clients of `/ready` usually wait longer.
KAFKA_S: Final = 2.0
#: The processes that `fairlead up` runs to take samples.
_SAMPLING: Final = ("code", "daemon")


def readiness(engine: Engine, settings: Settings) -> dict[str, Any]:
    """Return the answer of `/ready`. The planner is ready if the list `missing` in it is empty.

    The answer contains Kafka's state, but Kafka is never in `missing`. If brokers do not answer, no
    samples are taken, so `missing` soon contains a message about samples.

    Raises
    ------
    StoreUnavailableError
        The database does not answer.
    """
    last, parts = last_sample(engine), part_states(settings.state_dir)
    return {
        "missing": [
            *(f"{name} {part.missing}" for name, part in parts.items() if part.missing),
            *_missing_samples(last, parts),
        ],
        "database": "ok",
        "kafka": "ok" if kafka_answers(settings.kafka, within_s=KAFKA_S) else "does not answer",
        "last_sample": None if last is None else _written(last.began),
    }


def _missing_samples(last: SampleAge | None, parts: Mapping[str, PartState]) -> Iterator[str]:
    """Yield why there is no recent sample."""
    if last is None:
        yield "no sample was taken yet: turn on the sensor group_samples or run `fairlead sample`"
    elif last.overdue:
        yield (
            f"no sample for {length(last.age)}, though one is due every "
            f"{length(last.interval)}: do Dagster's daemon and the code location "
            "run, and is the sensor group_samples on?"
        )
    else:
        for name in _SAMPLING:
            if name in parts and last.began.timestamp() < parts[name].since:
                since = datetime.fromtimestamp(parts[name].since, UTC)
                yield f"no sample since {name} was started at {_written(since)}"


def _written(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
