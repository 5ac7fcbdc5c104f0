"""Records that are meant to fill brokers' heaps keep no healthy group from its next plan."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fairlead.wire.signing import Signer
from tests.cluster import KafkaCluster
from tests.jvm.asking import Checks
from tests.jvm.remote import MEMBERS, PLANS, Cluster, Group, shown
from tests.records import PUBLIC, SIGNER
from tests.waiting import eventually

log = logging.getLogger(__name__)

GROUPS, EACH = 4, 40
#: Two megabytes of ranges.
ODD = ",".join(str(2 * number) for number in range(250_000))
#: Plans by which the usual time is known, and how many times as long any other one may take: the
#: heap of a broker that is nearly full is collected all the time, and nothing is adopted.
USUAL, LONGER = 4, 10
SHARES = ({"a": [0, 1, 2, 3, 4], "b": [5]}, {"a": [0], "b": [1, 2, 3, 4, 5]})


@pytest.fixture(params=[None, SIGNER], ids=["without keys", "with keys"])
def signer(request: pytest.FixtureRequest) -> Signer | None:
    """Return who signs plans."""
    signer: Signer | None = request.param
    return signer


@pytest.fixture
def brokers(signer: Signer | None, tmp_path: Path) -> Iterator[KafkaCluster]:
    """Return three brokers with heaps of 512 MB; with keys they follow what is signed alone."""
    settings = {
        "group.consumer.heartbeat.interval.ms": "300",
        "group.consumer.min.heartbeat.interval.ms": "300",
        "message.max.bytes": "8388608",
        **({"fairlead.public.keys": PUBLIC} if signer else {}),
    }
    with KafkaCluster(tmp_path, assignor=True, settings=[settings] * 3) as brokers:
        yield brokers


@pytest.fixture
def groups(brokers: KafkaCluster, signer: Signer | None) -> Iterator[list[Group]]:
    """Return healthy groups, of two members each."""
    cluster = Cluster(brokers, signer)
    for topic in (PLANS, MEMBERS):
        cluster.create(topic, 4, compact=True)
    with ExitStack() as stack:
        groups = [
            stack.enter_context(Group(cluster, f"healthy-{n}", cluster.create(f"t-{n}", 6), 6))
            for n in range(GROUPS)
        ]
        for group in groups:
            group.join("a", "b")
        yield groups


@pytest.mark.kafka
@pytest.mark.test_long(
    guarded_by="tests/jvm/test_group_assignor.py::test_small_plans_of_millions_of_partitions_harm_nobody"
)
def test_bombs_keep_no_group_from_its_next_plan(
    brokers: KafkaCluster, groups: list[Group], signer: Signer | None, checks: Checks
) -> None:
    """Unsigned, signed by a stranger and by the planner's key; neither then nor after a restart."""
    version = 0

    def adopted_s() -> list[float]:
        nonlocal version
        version += 1
        taken_s = []
        for group in groups:
            started = time.monotonic()  # clock: ratio to the usual time
            group.adopt(version, SHARES[version % 2])
            taken_s.append(time.monotonic() - started)  # clock: ratio to the usual time
        return taken_s

    usual_s = max(max(adopted_s()) for _ in range(USUAL))
    found = {"usual": [usual_s]}
    for whose, key in (
        ("unsigned", None),
        ("stranger", Signer.new(SIGNER.key_id)),
        ("ours", signer),
    ):
        hostile = Cluster(brokers, key)
        for number in range(EACH):
            hostile.inflate(f"{whose}-{number}")
            hostile.inflate(f"{whose}-wide-{number}", ODD)
        found[whose] = adopted_s()
    for broker in brokers.brokers.values():
        broker.kill()
        broker.start()
        eventually(lambda: shown(broker, checks)["Complete"], "it has read the plans")  # noqa: B023 - at once
    for group in groups:
        group.cluster = Cluster(brokers, signer)  # whose clients do not wait to connect again
        eventually(group.joined, "the members are back")
    found["restarted"] = adopted_s()
    log.warning("adopted after, s: %s", found)
    for broker in brokers.brokers.values():
        told = shown(broker, checks)
        log.warning("%s", told)
        assert told["GroupsDropped"] > 0
        assert (told["RecordsSkipped"] >= 4 * EACH) == (signer is not None)
    late = {when: taken_s for when, taken_s in found.items() if max(taken_s) > LONGER * usual_s}
    assert late == {}
