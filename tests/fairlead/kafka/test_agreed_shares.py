"""Samples of groups whose members agree on an assignment other than the one by `range`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from fairlead.domain.groups import GroupDescription, LiveMember
from fairlead.domain.samples import ownership
from fairlead.errors import GroupError
from fairlead.kafka.agreed_shares import with_agreed_shares, with_records
from fairlead.kafka.descriptions import STABLE
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings, Settings
from fairlead.surfaces.survey.finding import follows
from fairlead.wire.agreement import AssignmentRecord
from fairlead.wire.partitions import pairs
from fairlead.workflows.adoption import compare
from tests.fairlead.followers.confluent.group import ConfluentGroup, running
from tests.fairlead.followers.helpers import make_plan
from tests.waiting import eventually


def members(**given: tuple[int, ...]) -> list[LiveMember]:
    """Return members that subscribe to `t`, with the partitions that `range` assigned to each."""
    return [
        LiveMember(name, name, None, name, ("t",), {"t": numbers} if numbers else {}, None)
        for name, numbers in given.items()
    ]


def assignment(generation: int, **shares: tuple[int, ...]) -> AssignmentRecord:
    """Return an assignment record of topic `t`."""
    return AssignmentRecord(
        generation,
        "a",
        ("t",),
        {m: {"t": numbers} if numbers else {} for m, numbers in shares.items()},
    )


def present_shares(
    given: Sequence[LiveMember], assignments: Iterable[AssignmentRecord]
) -> tuple[LiveMember, ...]:
    """Return a stable group's members with the partitions that assignment records give them."""
    return with_records(GroupDescription("g", STABLE, "range", tuple(given)), assignments).members


def owned(found: tuple[LiveMember, ...]) -> Mapping[str, tuple[int, ...]]:
    return {member.name: member.partitions.get("t", ()) for member in found}


def test_first_assignment_of_the_newest_generation_decides() -> None:
    """Later records of the newest generation, and records of earlier generations, are ignored."""
    assignments = [
        assignment(1, a=(0, 1, 2, 3)),
        assignment(2, a=(3,), b=(0, 1, 2)),
        assignment(2, a=(0,), b=(1, 2, 3)),
    ]
    found = present_shares(
        members(a=(0, 1), b=(2, 3)), [*assignments, assignment(1, a=(0, 1), b=(2, 3))]
    )
    assert owned(found) == {"a": (3,), "b": (0, 1, 2)}


def test_member_that_is_not_listed_keeps_its_range_share() -> None:
    """Plain consumers, and members that join late, are not listed in the assignment record."""
    found = present_shares(
        members(a=(0, 1), b=(2, 3), c=(4,)), [assignment(7, a=(3,), b=(0, 1, 2))]
    )
    assert owned(found) == {"a": (3,), "b": (0, 1, 2), "c": (4,)}


@pytest.mark.parametrize(
    "stale",
    [
        pytest.param(assignment(9, a=(3,), gone=(0, 1, 2)), id="lists a member that is gone"),
        pytest.param(assignment(9, a=(2,), b=(0, 1)), id="deals out less than range gave"),
        pytest.param(assignment(9, a=(3, 4), b=(0, 1, 2)), id="deals out more than range gave"),
        pytest.param(assignment(9, a=(2, 3), b=(0, 1, 2)), id="deals a partition out twice"),
        pytest.param(AssignmentRecord(9, "a", ("t",), {}), id="lists nobody"),
    ],
)
def test_assignment_that_does_not_fit_the_group_is_ignored(stale: AssignmentRecord) -> None:
    """If a record does not fit the present members, the assignment by `range` is returned."""
    given = members(a=(0, 1), b=(2, 3))
    assert present_shares(given, [stale]) == tuple(given)


def test_group_with_an_assignment_record_is_known_to_follow() -> None:
    """The group's protocol becomes `range+fairlead`; a survey reports that clients follow plans."""
    described = GroupDescription("g", STABLE, "range", tuple(members(a=(0, 1))))
    fits, stale = (
        with_records(described, [assignment(7, **{name: (0, 1)})]).protocol
        for name in ("a", "gone")
    )
    assert (fits, stale) == ("range+fairlead", "range")
    advice = follows({"group_type": "classic", "protocol": fits}, members=1)
    assert advice == "its clients follow plans already"


def test_unreachable_coordination_topic_is_reported_and_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log has a warning, and the sample has the owners that the broker reports."""
    # clock: no broker answers
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=0.2)
    described = GroupDescription("g", STABLE, "range", tuple(members(a=(0,))))
    assert with_agreed_shares({"g": described}, kafka) == {"g": described}
    assert "fairlead.coordination cannot be read" in caplog.text


@pytest.fixture
def group(settings: Settings, unique_name: str, tmp_path: Path) -> Iterator[ConfluentGroup]:
    """Return a group without members that reads one topic of six partitions."""
    servers = settings.kafka.bootstrap_servers
    with running(ConfluentGroup(servers, unique_name, tmp_path)) as group:
        yield group


@pytest.mark.kafka
def test_gateway_reports_the_shares_of_followers(group: ConfluentGroup, settings: Settings) -> None:
    """The gateway returns the shares that members agreed on, even if a plain consumer joins."""
    group.publish(1, a=[0], b=[1, 2, 3, 4, 5])
    for name in "ab":
        group.start(name)
    group.settles(version=1, a=[0], b=[1, 2, 3, 4, 5])
    kafka = settings.kafka.model_copy(update={"coordination_topic": group.coordination_topic})
    with KafkaGateway(kafka) as gateway:
        live = gateway.live_group(group.name)
        plan = make_plan(
            {"a": {group.topic: [0]}, "b": {group.topic: [1, 2, 3, 4, 5]}},
            partition_counts={group.topic: 6},
        )
        shares = {member.name: member.partitions for member in live.members}
        assert compare(plan, shares).adherence == 1
        (row,) = gateway.snapshot([group.name]).samples.to_pylist()
        assert ownership(row) == {"a": {group.topic: [0]}, "b": {group.topic: [1, 2, 3, 4, 5]}}

        plain = group.start("plain", plain=True)
        eventually(lambda: bool(plain.owned), "the plain consumer has joined")
        group.settles()

        def agrees() -> bool:
            live = gateway.live_groups([group.name])[group.name]
            truly = {name: worker.owned for name, worker in group.workers.items()}
            if isinstance(live, GroupError):  # the group rebalances
                return False
            return truly == {m.name: list(pairs(m.partitions)) for m in live.members}

        eventually(agrees, group.history)
