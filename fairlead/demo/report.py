"""What the demo shows at its end, and writes to `report.json`.

Belongs here: figures and their table. Does not: how they were measured (`run`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead.plans.document import PlanDocument

#: Member to topic to partition numbers.
Ownership = Mapping[str, Mapping[str, list[int]]]


@dataclass(frozen=True)
class GroupReport:
    """One group before and after its plan.

    Parameters
    ----------
    plan
        The plan that was published; its weights are the measured lags, in records.
    before, after
        What the consumers themselves reported to own before the plan and after they rejoined.
    drain_without_plan_s, drain_with_plan_s
        Seconds from when nothing arrived any more until the last record was processed.
    """

    plan: PlanDocument
    before: Ownership
    after: Ownership
    drain_without_plan_s: float
    drain_with_plan_s: float

    @property
    def predicted(self) -> Ownership:
        """What the plan gives each consumer."""
        return {
            member: {topic: numbers.tolist() for topic, numbers in share.partitions.items()}
            for member, share in self.plan.members.items()
        }

    def lag(self, owned: Mapping[str, list[int]]) -> int:
        """Return the measured lag of a set of partitions, in records."""
        return int(sum(self.plan.weights[topic][numbers].sum() for topic, numbers in owned.items()))

    def heaviest(self, ownership: Ownership) -> int:
        """Return the lag of the consumer with the most of it, in records."""
        return max(map(self.lag, ownership.values()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as it is written to `report.json`."""
        stages = {"before": self.before, "predicted": self.predicted, "after": self.after}
        return {
            "group": self.plan.group,
            "assignor": self.plan.assignor,
            "plan_version": self.plan.version,
            "consumers": {
                member: {
                    stage: {
                        "lag": self.lag(ownership.get(member, {})),
                        "partitions": ownership.get(member, {}),
                    }
                    for stage, ownership in stages.items()
                }
                for member in sorted(self.plan.members)
            },
            "heaviest_lag": {stage: self.heaviest(owned) for stage, owned in stages.items()},
            "adopted": _normal(self.after) == _normal(self.predicted),
            "drain_seconds": {
                "without_plan": round(self.drain_without_plan_s, 2),
                "with_plan": round(self.drain_with_plan_s, 2),
            },
        }

    def render(self) -> RenderableType:
        """Return the table a person reads."""
        table = Table(
            title=f"Group {self.plan.group}: plan version {self.plan.version}, "
            f"by {self.plan.assignor}",
            title_justify="left",
            title_style="bold",
            show_footer=True,
        )
        table.add_column("consumer", footer="heaviest consumer")
        stages = {"before": self.before, "predicted": self.predicted, "after": self.after}
        for stage, ownership in stages.items():
            table.add_column(f"{stage}\npartitions", justify="right")
            table.add_column("\nlag", justify="right", footer=f"{self.heaviest(ownership):,}")
        for member in sorted(self.plan.members):
            cells = [member]
            for ownership in stages.values():
                owned = ownership.get(member, {})
                cells += [str(sum(map(len, owned.values()))), f"{self.lag(owned):,}"]
            table.add_row(*cells)
        faster = self.drain_without_plan_s / self.drain_with_plan_s
        verdict = Text.assemble(
            "Drained in ",
            (f"{self.drain_with_plan_s:.1f} s", "bold green"),
            f" with the plan, {self.drain_without_plan_s:.1f} s without: {faster:.2f} times as "
            "fast.\n",
        )
        return Group(table, verdict)


def _normal(ownership: Ownership) -> dict[str, dict[str, list[int]]]:
    return {
        member: {topic: sorted(numbers) for topic, numbers in owned.items() if numbers}
        for member, owned in ownership.items()
    }
