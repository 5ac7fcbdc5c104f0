"""Replays of a group's samples from the archive, with one process per assignor.

Belongs here: finding a group's samples, running the replays. Belongs elsewhere: what a replay does
(`replay`), and the summary (`report`).
"""

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from assignors.problem import InvalidProblemError
from assignors.registry import option_defaults
from fairlead.archive import SampleArchive
from fairlead.common.words import listed
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Policy
from fairlead.errors import ConfigurationError, FairleadError, GroupError
from fairlead.surfaces.backtest.recording import Recording, replayable
from fairlead.surfaces.backtest.replay import RECORDED, Stretch, replay

_EPOCH: Final = datetime(1970, 1, 2, tzinfo=UTC)
#: Columns of the rows of a backtest. `skipped` is the reason if a sample was not replayed; the
#: figures (the fields of `Stretch`) of such a sample are missing.
STRETCHES: Final = ["in_charge", "skipped", *(column.name for column in fields(Stretch))]


def find_samples(
    archive: SampleArchive,
    group: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> pa.Table:
    """Return a group's samples by time, from `since` (inclusive) to `until` (exclusive).

    Raises
    ------
    GroupError
        The archive has no sample of this group, or none in this period; the message lists the
        stored groups or the stored period.
    """
    now = datetime.now(UTC)
    moments = archive.read(_EPOCH, now, [group], columns=["group", "at"])["at"].to_pylist()
    if not moments:
        known = archive.groups(_EPOCH, now)
        raise GroupError(
            f"No sample of group {group} is stored, only samples of {listed(known, at_most=10)}"
            if known
            else "No samples are stored: the sensor group_samples takes one each minute"
        )
    within = [
        at for at in moments if (since is None or at >= since) and (until is None or at < until)
    ]
    if not within:
        first, last = (moments[end].isoformat(timespec="seconds") for end in (0, -1))
        raise GroupError(
            f"No sample of group {group} from this period is stored. The group has "
            f"{len(moments):,} samples from other times, from {first} to {last}"
        )
    return archive.read(within[0], within[-1], [group])


def backtest(samples: pa.Table, policy: Policy, assignors: Sequence[str] = ()) -> pd.DataFrame:
    """Replay a group's recorded arrivals, once per assignor and once with its own assignments.

    Parameters
    ----------
    samples
        The result of `find_samples`.
    policy
        The group's policy.
    assignors
        Names of `assignors.registry`; empty: the assignors of the policy.

    Returns
    -------
    Rows with the columns `STRETCHES`, one per assignor and sample, except the first sample.
    Rows of `RECORDED` have figures measured in the samples. Rows of `OBSERVED` have the figures of
    a replay with the group's own assignments. Samples are skipped if the group could not be read,
    had no member, or read nothing.

    Raises
    ------
    ConfigurationError
        There is no such assignor.
    """
    names = tuple(dict.fromkeys(assignors or policy.assignors))
    try:
        for name in names:
            option_defaults(name)
    except InvalidProblemError as error:
        raise ConfigurationError(str(error)) from None
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        each = pool.map(partial(_replayed, samples, policy), (RECORDED, OBSERVED, *names))
        try:
            return pd.DataFrame([row for rows in each for row in rows], columns=STRETCHES)
        except BrokenProcessPool:
            raise FairleadError(
                "A process of the replay ended, perhaps for lack of memory. Limit the period "
                "with --since and --until"
            ) from None


def _replayed(samples: pa.Table, policy: Policy, in_charge: str) -> list[dict[str, Any]]:
    """Replay a group's samples with one assignor; return rows with the columns `STRETCHES`."""
    samples, skipped = replayable(samples)
    rows: list[dict[str, Any]] = [{"at": at, "skipped": why} for at, why in skipped]
    if samples.num_rows > 1:
        latest = policy.auto_offset_reset == "latest"
        recording = Recording.of(samples, latest=latest)
        rows += [vars(stretch) for stretch in replay(recording, in_charge, policy)]
    return [{"in_charge": in_charge, **row} for row in rows]
