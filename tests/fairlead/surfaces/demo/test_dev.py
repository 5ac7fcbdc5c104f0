"""`fairlead dev`: one group's plans wait for a person, and what is printed leads there."""

import pytest

from fairlead.domain.policy import policy_for
from fairlead.settings import load_settings
from fairlead.surfaces.demo.dev import _first_steps
from fairlead.surfaces.demo.environment import POLICIES
from fairlead.surfaces.demo.scenario import ASKS_FIRST, DEV_GROUPS, DemoGroup
from fairlead.surfaces.up import Planning

pytestmark = pytest.mark.long


def shares(group: DemoGroup) -> list[int]:
    """Return the load of each consumer under `range`: its topics' partitions, in stretches."""
    loads = [0] * group.consumers
    for counts in group.backlog.values():
        each, more = divmod(len(counts), group.consumers)
        first = 0
        for member in range(group.consumers):
            count = each + (member < more)
            loads[member] += sum(counts[first : first + count])
            first += count
    return loads


def test_first_steps_lead_to_a_plan_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that is named waits for a person by the demo's policies, and no other does."""
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(POLICIES))
    policies = load_settings().policies
    waiting = [
        group for group in DEV_GROUPS if not policy_for(group.name, policies).approval.automatic
    ]
    assert waiting == [ASKS_FIRST]
    steps = _first_steps("http://127.0.0.1:3000", Planning(("planning_sensor",)))
    assert f"partition {ASKS_FIRST.name} (there within a minute)" in steps
    assert f"/assets/assignment_plan?view=partitions&partition={ASKS_FIRST.name}" in steps


def test_group_that_asks_needs_a_plan() -> None:
    """By `range` one consumer gets more than it can do; no partition alone is too much for one."""
    produced = ASKS_FIRST.load * ASKS_FIRST.consumers / ASKS_FIRST.records
    heaviest_partition = max(max(counts) for counts in ASKS_FIRST.backlog.values())
    assert max(shares(ASKS_FIRST)) * produced > 1.1
    assert heaviest_partition * produced < 0.9
