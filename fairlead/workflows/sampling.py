"""Sampling of all groups that the setting `discovery` covers.

Belongs here: which groups are sampled, dividing groups among requests, and storing the results.
Belongs elsewhere: when to sample (`sampling_interval`), and requests to brokers
(`fairlead.kafka.gateway`).
"""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import SampleArchive, Taken
from fairlead.domain.advice import CLASSIC
from fairlead.domain.plan_requests import PlanRequest
from fairlead.domain.regression import Regression
from fairlead.domain.samples import HISTORY, SAMPLES, new_snapshot_id
from fairlead.errors import FileSystemError, StoreUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.spark.warehouse import Warehouse
from fairlead.store.clock import check_clock
from fairlead.store.plans import PlanStore
from fairlead.workflows.automatic_rollback import roll_back_regressions
from fairlead.workflows.diagnosing import diagnose, members_changed
from fairlead.workflows.following import follow
from fairlead.workflows.rebalancing import STAYS_S
from fairlead.workflows.sampling_interval import interval

_log = logging.getLogger(__name__)

#: Maximum number of groups in a request. Small, so that a group's end offsets are read only seconds
#: after its commits.
GROUPS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Sampled:
    """The result of taking a sample.

    Parameters
    ----------
    taken
        When the sample began, its size, and the time that it took.
    requests
        Maps each group that needs a plan to the reasons for a new plan.
    unkept
        Why the sample could not be written to the archive; "" if it was written.
    """

    taken: Taken
    requests: Mapping[str, PlanRequest]
    unkept: str = ""


def covered_groups(gateway: KafkaGateway, settings: Settings) -> list[str]:
    """Return the groups of the cluster that the setting `discovery` covers, ascending."""
    return [name for name in gateway.list_groups() if settings.discovery.covers(name)]


def take(
    gateway: KafkaGateway,
    archive: SampleArchive,
    settings: Settings,
    groups: Sequence[str],
    store: PlanStore | None = None,
) -> Sampled:
    """Sample groups and write the sample to the archive; with `store`, also diagnose the groups.

    Deletes samples that are too old. With `store`, also proposes rollbacks of plans that made their
    groups worse, and makes brokers follow plans. Does not wait for groups that rebalance, since the
    next sample can read them. If the sample cannot be written, for example because the disk is
    full, it is analysed nevertheless.

    Parameters
    ----------
    store
        The plan store, which has the results of earlier analyses, too. None: groups are not
        diagnosed.

    Returns
    -------
    The cost of the sample; with `store`, also the groups that need a plan.

    Raises
    ------
    KafkaUnavailableError
        Brokers do not answer in time. Nothing is written.
    ClocksApartError
        This machine's clock differs from the database's. Nothing is written.
    StoreUnavailableError
        The database does not answer. The sample is written, but not analysed.
    """
    if store is not None:
        with suppress(StoreUnavailableError):  # raised again below, once the sample is stored
            check_clock(store.engine)
    began, clock = datetime.now(UTC), time.monotonic()
    sample_id = new_snapshot_id(began)
    before = _before(archive, groups)
    seen = [
        gateway.snapshot(portion, snapshot_id=sample_id, patience_s=0.0, before=before).samples
        for portion in (
            groups[first : first + GROUPS_AT_ONCE]
            for first in range(0, len(groups), GROUPS_AT_ONCE)
        )
    ]
    sample = pa.concat_tables([SAMPLES.empty_table(), *seen])
    unkept = _write(archive, sample, sample_id, settings)
    took_s = time.monotonic() - clock
    requests: Mapping[str, PlanRequest] = {}
    try:
        if store is not None and seen:
            requests, worse = _diagnosed(archive, seen, settings, groups, store)
            now = datetime.now(UTC)
            roll_back_regressions(store, worse, settings.policies, live=gateway.live_group, now=now)
    finally:  # record the cost even if the diagnoses failed
        analysed_s = time.monotonic() - clock - took_s
        # If several groups read a partition, it is counted once for each of these groups.
        partitions = sum(pc.list_value_length(sample["end"]).to_pylist())
        taken = Taken(began, took_s, sample.num_rows, partitions, analysed_s)
        archive.note(taken)
    if store is not None:
        store.record_sample(began, interval(taken, settings.sampling))
        by_brokers = sample.filter(pc.not_equal(sample["group_type"], CLASSIC))
        if by_brokers.num_rows:
            _update_brokers(gateway, settings, by_brokers["group"].to_pylist(), store)
    return Sampled(taken, requests, unkept)


def _before(archive: SampleArchive, groups: Sequence[str]) -> pa.Table:
    """Return the newest sample of each group; empty if the archive cannot be listed."""
    try:
        return archive.newest(groups)
    except FileSystemError as error:
        _log.warning("earlier samples cannot be read, so without stable offsets: %s", error)
        return SAMPLES.empty_table().select(HISTORY)


def _write(archive: SampleArchive, sample: pa.Table, sample_id: str, settings: Settings) -> str:
    """Write a sample, and prune the archive; return why the sample was not written, or ""."""
    unkept = ""
    try:
        archive.append(sample, sample_id)
    except FileSystemError as error:
        unkept = str(error)
        _log.warning("this sample is analysed, but not stored: %s", error)
    try:
        snapshots = Warehouse(archive.warehouse).snapshot_ids()
        archive.tidy(datetime.now(UTC), settings.sampling.retention, keep=snapshots)
    except FileSystemError as error:
        _log.warning("the archive of samples cannot be pruned: %s", error)
    return unkept


def _update_brokers(
    gateway: KafkaGateway, settings: Settings, groups: Sequence[str], store: PlanStore
) -> None:
    """Make brokers follow plans, for groups in which they assign partitions; see `following`.

    Omits the last and longest of the three rebalance triggers, because the next sample comes soon.
    """
    for adoption in follow(
        gateway,
        settings.kafka,
        groups,
        lambda assigned: store.in_state("published", groups=assigned),
        stays_s=STAYS_S[:2],
    ):
        if not adoption.reached:
            _log.info(
                "group %s: the broker does not follow its plan: %s", adoption.group, adoption.reason
            )


def _diagnosed(
    archive: SampleArchive,
    seen: Sequence[pa.Table],
    settings: Settings,
    groups: Sequence[str],
    store: PlanStore,
) -> tuple[Mapping[str, PlanRequest], Mapping[str, Regression]]:
    """Analyse a sample, and store the result; return plan requests and regressions.

    If a group's published plan may have made the group worse, the group gets no request for a new
    plan, since the plan may be rolled back. This does not apply if the published plan is itself a
    rollback, because rollbacks are never rolled back.
    """
    diagnosed = diagnose(archive, seen, settings.policies, store.memories(groups))
    followed = store.in_state("published", groups=diagnosed.requests) if diagnosed.requests else []
    planned = {plan.group for plan in followed if plan.rolled_back_from is None}
    doubted = planned & diagnosed.worse.keys()
    wanted = {name: why for name, why in diagnosed.requests.items() if name not in doubted}
    requests = members_changed(wanted, seen, followed)
    store.record_findings(diagnosed.findings, requests)
    return requests, diagnosed.worse
