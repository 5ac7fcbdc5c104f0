"""The analysis of a group in five steps: read, estimate, forecast, diagnose, decide.

Belongs here: the first four, each with the results of the previous steps as input. Does not: the
work of a step (`read`, `estimate`, `forecast`, `diagnosis`), nor the decision (`decide`).
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
    """The results of an analysis before the decision: the basis of the diagnosis, and more."""

    #: Forecast of the group with its present owners.
    kept: Forecast
    diagnosis: Diagnosis
    #: Number of consumers now, and the number needed.
    size: Size
    #: Traffic between racks; None: impossible, or ignored.
    traffic: RackTraffic | None
    #: Number of partitions with subscribers and without an owner.
    orphans: int

    @property
    def places(self) -> bool:
        """Whether partitions without an owner get one; false if no partition has a known owner."""
        return 0 < self.orphans < int(self.problem.assignable.sum())


def analyse(question: Question) -> Analysis:
    """Read, estimate, forecast and diagnose."""
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
