"""The analysis of a group in five steps: read, estimate, forecast, diagnose, decide.

Belongs here: the first four, each with the results of the previous steps as input. Does not: the
work of a step (`read`, `estimate`, `forecast`, `diagnosis`), nor the decision (`decide`).
"""

from dataclasses import dataclass

from assignors.problem import Problem
from fairlead.domain.analysis.diagnosis import Basis, Diagnosis, diagnose
from fairlead.domain.analysis.estimate import Estimates, estimate
from fairlead.domain.analysis.forecast import Forecast, Outlook, expect
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import RackTraffic
from fairlead.domain.analysis.read import Observations, read
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Mask
from fairlead.domain.analysis.sizing import Size, size
from fairlead.domain.analysis.weighing import CandidateInputs


@dataclass(frozen=True, eq=False)
class Analysis:
    """The results of an analysis before the decision.

    Parameters
    ----------
    question, observations, estimates, outlook
        The input, and the results of the steps.
    kept
        Forecast of the group with its present owners.
    late
        Members that will be behind by more than the objective, even if fewer records arrive than
        estimated; bool of shape (M,).
    diagnosis
        The problem of the group.
    size
        Number of consumers now, and the number needed.
    inputs
        Input for computing candidates.
    orphans
        Number of partitions with subscribers and without an owner.
    """

    question: Question
    observations: Observations
    estimates: Estimates
    outlook: Outlook
    kept: Forecast
    late: Mask
    diagnosis: Diagnosis
    size: Size
    inputs: CandidateInputs
    orphans: int

    @property
    def places(self) -> bool:
        """Whether partitions without an owner get one; false if no partition has a known owner."""
        return 0 < self.orphans < int(self.problem.assignable.sum())

    @property
    def problem(self) -> Problem:
        """Partitions, members and present owners."""
        return self.question.problem

    @property
    def rules(self) -> Rules:
        """The policy's rules."""
        return self.question.rules


def analyse(question: Question) -> Analysis:
    """Read, estimate, forecast and diagnose."""
    problem, rules = question.problem, question.rules
    observations = read(question.series, question.reports, question.observations)
    estimates = estimate(question, observations)
    outlook = expect(question, observations, estimates)
    kept = outlook.forecast(problem.owner, rules.horizon_s)
    late = outlook.sure_time_lag(problem.owner, rules.horizon_s) > rules.objective_s
    diagnosis = diagnose(Basis(question, observations, estimates, outlook, late))
    traffic = None
    if rules.racks:
        traffic = RackTraffic.of(problem, estimates.rates.per_s, question.record_bytes)
    return Analysis(
        question=question,
        observations=observations,
        estimates=estimates,
        outlook=outlook,
        kept=kept,
        late=late,
        diagnosis=diagnosis,
        size=size(
            problem,
            outlook,
            estimates.peers,
            rules.target_utilisation,
            late=diagnosis.name != "healthy",
            known=diagnosis.name != "unknown",
            throttled=diagnosis.name == "throttled partition" and not late.any(),
        ),
        inputs=CandidateInputs(
            problem,
            outlook,
            estimates.held,
            rules,
            estimates.peers,
            estimates.speeds.at_most,
            traffic,
        ),
        orphans=int((problem.assignable & (problem.owner < 0)).sum()),
    )
