"""The effect that plans would have on groups in shadow mode: each day with and without plans.

Belongs here: replaying the samples of a day, and its figures. Does not: the replay
(`replay`), nor where figures are kept (`fairlead.store.shadow_plans`).
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import pyarrow as pa
from sqlalchemy import Engine

from fairlead.archive import SampleArchive
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Policy, policy_for
from fairlead.store.shadow_plans import ShadowDay, newest_shadow_days, record_shadow_day
from fairlead.surfaces.backtest.recording import Recording, replayable
from fairlead.surfaces.backtest.replay import RECORDED, Stretch, replay

_log = logging.getLogger(__name__)

#: Minimum time between two replays of a day. The group's planning runs make them.
EVERY: Final = timedelta(hours=1)
#: Minimum number of samples: fewer are not enough to measure speeds.
LEAST: Final = 6


def replay_shadow_groups(
    engine: Engine,
    archive: SampleArchive,
    samples: pa.Table,
    policies: Sequence[Policy],
    now: datetime,
) -> None:
    """Replay today for each group in shadow mode, and yesterday if it is not complete.

    An error of one group is logged and does not affect other groups.

    Parameters
    ----------
    samples
        The snapshot of all groups of a run.
    now
        Time-zone-aware.
    """
    groups = [name for name in samples["group"].to_pylist() if policy_for(name, policies).shadow]
    known = newest_shadow_days(engine, groups) if groups else {}
    for group in groups:
        try:
            policy, last = policy_for(group, policies), known.get(group)
            for day in _days(archive, group, now, policy=policy, last=last):
                record_shadow_day(engine, group, day)
        except Exception:  # noqa: BLE001 - a replay must not end a planning run
            _log.exception("group %s: replaying its samples failed", group)


def _days(
    archive: SampleArchive, group: str, now: datetime, *, policy: Policy, last: ShadowDay | None
) -> Iterator[ShadowDay]:
    """Yield the results for today, once an hour, and for the whole of yesterday."""
    today = now.astimezone(UTC).date()
    if last is not None and last.day == today and now - last.until < EVERY:
        return
    yesterday = today - timedelta(days=1)
    for day in (yesterday, today) if last is not None and last.day == yesterday else (today,):
        began = datetime.combine(day, time(), UTC)
        samples = archive.read(began, min(now, began + timedelta(days=1)), [group])
        effect = effect_of_plans(day, samples, policy)
        if effect is not None:
            yield effect


def effect_of_plans(day: date, samples: pa.Table, policy: Policy) -> ShadowDay | None:
    """Return the effect plans would have had on a day; None if too few samples can be replayed.

    Parameters
    ----------
    samples
        The samples of one group and day, by time.
    policy
        The group's policy. It is replayed as if plans were published.
    """
    samples, _ = replayable(samples)
    if samples.num_rows < LEAST:
        return None
    recording = Recording.of(samples, latest=policy.auto_offset_reset == "latest")
    in_charge = policy.assignors[0]
    acting = policy.model_copy(update={"shadow": False})
    recorded, observed, planned = (
        list(replay(recording, charge, acting)) for charge in (RECORDED, OBSERVED, in_charge)
    )
    return ShadowDay(
        day=day,
        until=samples["at"][-1].as_py(),
        over_objective_recorded_s=_over_objective_s(recorded),
        over_objective_s=_over_objective_s(observed),
        over_objective_planned_s=_over_objective_s(planned),
        plans=sum(outcome.published for outcome in planned),
        downtime_s=sum(outcome.downtime_s for outcome in planned),
    )


def _over_objective_s(stretches: Sequence[Stretch]) -> float:
    return sum(stretch.over_objective_s for stretch in stretches)
