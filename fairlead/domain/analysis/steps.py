"""The analysis of a group in five steps: read, estimate, forecast, diagnose, decide.

Belongs here: calling the first four steps, each with the results of the steps before it, and which
members are late (forecast to exceed the objective). Belongs elsewhere: what a step computes
(`read`, `estimate`, `forecast`, `diagnosis`), and the decision (`decide`).
"""

from dataclasses import dataclass

from fairlead.domain.analysis.diagnosis import Basis, Diagnosis, diagnose
from fairlead.domain.analysis.estimate import estimate
from fairlead.domain.analysis.forecast import Forecast, expect
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import RackTraffic
from fairlead.domain.analysis.read import read
from fairlead.domain.analysis.sizing import Size, size


@dataclass(frozen=True, eq=False)
class Analysis(Basis):
    """All results of an analysis before the decision."""

    #: Forecast of the group with its present owners.
    kept: Forecast
    diagnosis: Diagnosis
    #: Number of consumers now, and the number needed.
    size: Size
    #: Traffic between racks; None: racks are unknown, or the policy ignores them.
    traffic: RackTraffic | None
    #: Number of partitions that have subscribers but no owner.
    orphans: int

    @property
    def places(self) -> bool:
        """Whether a plan must assign partitions without an owner; false if no owners are known."""
        return 0 < self.orphans < int(self.problem.assignable.sum())


def analyse(question: Question) -> Analysis:
    """Analyse a group up to the diagnosis: read, estimate, forecast and diagnose."""
    problem, rules = question.problem, question.rules
    observations = read(question.series, question.reports)
    estimates = estimate(question, observations)
    outlook = expect(question, observations, estimates)
    kept = outlook.forecast(problem.owner, rules.horizon_s)
    late = outlook.sure_time_lag(problem.owner, rules.horizon_s) > rules.objective_s
    basis = Basis(question, observations, estimates, outlook, late)
    diagnosis = diagnose(basis)
    traffic = None
    if rules.racks:
        traffic = RackTraffic.of(problem, estimates.rates.per_s, question.record_bytes)
    return Analysis(
        **vars(basis),
        kept=kept,
        diagnosis=diagnosis,
        size=size(
            problem,
            outlook,
            estimates.peers,
            rules.target_utilisation,
            measured=estimates.speeds.measured,
            late=diagnosis.name != "healthy",
            known=diagnosis.name != "unknown",
            throttled=diagnosis.name == "throttled partition" and not late.any(),
        ),
        traffic=traffic,
        orphans=int((problem.assignable & (problem.owner < 0)).sum()),
    )
