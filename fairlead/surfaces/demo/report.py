"""The demo's report, for the terminal and `report.json`.

Belongs here: figures and their table. Does not: how they were measured (`run`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead.domain.as_problem import Ownership, planned
from fairlead.domain.work_text import work_of_group
from fairlead.wire.document import PlanDocument

#: Topic to partition to its lag, in records.
Lags = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class DemoDiagnosis:
    """The planner's diagnosis of a group and its reason for a plan, or for none.

    Parameters
    ----------
    diagnosis, names, evidence
        The diagnosis; the members or partitions that it names; its evidence in one sentence.
    reason
        The reason of the decision.
    reported
        The reported work, as in `fairlead.domain.records.Findings`.
    """

    diagnosis: str
    names: tuple[str, ...]
    evidence: str
    reason: str
    reported: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for `report.json`."""
        return {
            "diagnosis": self.diagnosis,
            "names": list(self.names),
            "evidence": self.evidence,
            "reason": self.reason,
            "seconds_per_record": self.reported.get("partitions", {}),
        }

    def render(self) -> Text:
        """Return the lines for people."""
        style = "green" if self.diagnosis == "healthy" else "yellow"
        work = [f"\n{label}: {text}" for label, text in work_of_group(self.reported).items()]
        return Text.assemble((self.diagnosis, f"bold {style}"), f": {self.evidence}", *work)


@dataclass(frozen=True)
class NotPlanned:
    """A group that needs no plan.

    Parameters
    ----------
    group
        The group's id.
    diagnosed
        Its diagnosis.
    owned
        The partitions of its consumers.
    """

    group: str
    diagnosed: DemoDiagnosis
    owned: Ownership

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `report.json`."""
        return {
            "group": self.group,
            "assignor": None,
            "plan_version": None,
            **self.diagnosed.as_dict(),
            "consumers": {
                member: {"partitions": owned} for member, owned in sorted(self.owned.items())
            },
        }

    def render(self) -> RenderableType:
        """Return the report for people."""
        title = Text(f"Group {self.group}: no plan", style="bold italic")
        return Group(title, self.diagnosed.render(), "It needs no plan.\n")


@dataclass(frozen=True)
class GroupReport:
    """One group before and after its plan.

    Parameters
    ----------
    diagnosed
        The diagnosis before the plan.
    plan
        The published plan; its weights are the measured lags, in records.
    before, after
        Owners as reported by the consumers, before the plan and after they rejoined.
    lags_after
        Measured after the group worked under the plan.
    lags_without_plan, without_plan
        Lag and owners of the identical group without a plan, at the same time.
    drain_without_plan_s, drain_with_plan_s
        Seconds from the last arrival until the last record was processed.
    protocol
        `classic` or `consumer`: whether the members assign, or the broker.
    """

    diagnosed: DemoDiagnosis
    plan: PlanDocument
    before: Ownership
    after: Ownership
    lags_after: Lags
    lags_without_plan: Lags
    without_plan: Ownership
    drain_without_plan_s: float
    drain_with_plan_s: float
    protocol: str = "classic"

    @property
    def predicted(self) -> Ownership:
        """The owners in the plan."""
        return planned(self.plan)

    def lag(self, stage: str, owned: Mapping[str, Collection[int]]) -> int:
        """Return the lag of a set of partitions, in records.

        For the stages `after` and `without_plan`, it was measured after the groups had worked under
        the plan and without it; for other stages, when the group was planned.
        """
        measured = {"after": self.lags_after, "without_plan": self.lags_without_plan}
        if stage in measured:
            return sum(
                measured[stage][topic][number]
                for topic, numbers in owned.items()
                for number in numbers
            )
        weights = self.plan.weights
        return int(sum(weights[topic][[*numbers]].sum() for topic, numbers in owned.items()))

    def largest(self, stage: str, ownership: Ownership) -> int:
        """Return the lag of the most loaded consumer, in records."""
        return max((self.lag(stage, owned) for owned in ownership.values()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `report.json`."""
        stages = {"before": self.before, "predicted": self.predicted, "after": self.after}
        return {
            "group": self.plan.group,
            "assignor": self.plan.assignor,
            "plan_version": self.plan.version,
            "protocol": self.protocol,
            **self.diagnosed.as_dict(),
            "consumers": {
                member: {
                    stage: {
                        "lag": self.lag(stage, ownership.get(member, {})),
                        "partitions": ownership.get(member, {}),
                    }
                    for stage, ownership in stages.items()
                }
                for member in sorted(self.plan.members)
            },
            "most_loaded_lag": {
                stage: self.largest(stage, owned)
                for stage, owned in {**stages, "without_plan": self.without_plan}.items()
            },
            "adopted": same_owners(self.after, self.predicted),
            "drain_seconds": {
                "without_plan": round(self.drain_without_plan_s, 2),
                "with_plan": round(self.drain_with_plan_s, 2),
            },
        }

    def render(self) -> RenderableType:
        """Return the report for people."""
        table = Table(
            title=f"Group {self.plan.group}: plan version {self.plan.version}, "
            f"by {self.plan.assignor}",
            title_justify="left",
            title_style="bold",
            show_footer=True,
        )
        table.add_column("consumer", footer="most loaded\nconsumer")  # fits 80 columns
        stages = {"before": self.before, "predicted": self.predicted, "after": self.after}
        for stage, ownership in stages.items():
            table.add_column(f"{stage}\npartitions", justify="right")
            table.add_column("\nlag", justify="right", footer=f"{self.largest(stage, ownership):,}")
        for member in sorted(self.plan.members):
            cells = [member]
            for stage, ownership in stages.items():
                owned = ownership.get(member, {})
                cells += [str(sum(map(len, owned.values()))), f"{self.lag(stage, owned):,}"]
            table.add_row(*cells)
        stages_are = (
            "before: measured when the group was planned; predicted: the same records under the "
            "plan; after: measured when it had worked under the plan, while records arrived.\n"
        )
        with_plan = self.largest("after", self.after)
        without = self.largest("without_plan", self.without_plan)
        beside = (
            f"At that time the most loaded consumer had {with_plan:,} records with the plan, and "
            f"{without:,} in an identical group without a plan.\n"
        )
        faster = self.drain_without_plan_s / self.drain_with_plan_s
        verdict = Text.assemble(
            "Drained in ",
            (f"{self.drain_with_plan_s:.1f} s", "bold green"),
            f" with the plan, {self.drain_without_plan_s:.1f} s without: {faster:.2f} times as "
            "fast.\n",
        )
        return Group(table, Text(stages_are, style="dim"), beside, self.diagnosed.render(), verdict)


def same_owners(*ownerships: Ownership) -> bool:
    """Whether the same consumers own the same partitions."""
    first, *others = (
        {
            member: {topic: set(numbers) for topic, numbers in owned.items() if numbers}
            for member, owned in ownership.items()
            if any(owned.values())
        }
        for ownership in ownerships
    )
    return all(other == first for other in others)
