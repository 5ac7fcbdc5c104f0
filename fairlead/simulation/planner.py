"""The planner in a closed loop: today's judgement, with what it remembers between decisions.

Belongs here: turning a moment into a question, and keeping the answer's memory. Does not: judging
(`fairlead.domain.judgement`).
"""

from collections.abc import Mapping

from fairlead.domain.judgement.capacities import Capacity
from fairlead.domain.judgement.decision import Question, judge
from fairlead.domain.judgement.rules import Rules
from fairlead.simulation.controllers import ByPlans, Moment
from fairlead.simulation.reading import Int32


class Planner(ByPlans):
    """Judges at each decision; its plans are published at once.

    Parameters
    ----------
    rules
        Of the policy.
    eager
        Whether every partition of the group stands still at each rebalance.
    plans
        Whether what it plans is done; else it only says what is the matter.
    """

    def __init__(self, rules: Rules, *, eager: bool = False, plans: bool = True) -> None:
        super().__init__()
        self._rules, self._eager, self._plans = rules, eager, plans
        self._capacities: Mapping[str, Capacity] = {}

    def plan(self, moment: Moment) -> Int32 | None:
        """Ask what is the matter, and whether a plan would help."""
        judgement = judge(
            Question(
                problem=moment.problem,
                looks=moment.looks(),
                rules=self._rules,
                capacities=self._capacities,
                changed_at=self.changed_at,
                eager=self._eager,
            )
        )
        self._capacities = judgement.capacities
        self.judgements.append((moment.at, judgement))
        return judgement.owner if self._plans else None
