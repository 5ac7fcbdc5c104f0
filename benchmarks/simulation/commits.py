"""Commits in a scenario: partitions without commits, and clients that commit in `poll`."""

import numpy as np

from benchmarks.simulation.reading import ScenarioReading
from benchmarks.simulation.reports import SimulatedReports
from fairlead.simulation.commits import SimulatedCommits
from fairlead.simulation.world import Float64, Int64, Mask


class ScenarioCommits(SimulatedCommits):
    """Commits as the scenario defines them. Consumers commit in the first `poll` after an interval.

    Parameters
    ----------
    reading
        The simulated reading of P partitions.
    reports
        Reports of the consumers' work, which are committed with offsets. None: the controller reads
        no reports.
    """

    def __init__(self, reading: ScenarioReading, reports: SimulatedReports | None = None) -> None:
        super().__init__(reading)
        self._of, self._reports = reading, reports

    def _commit(self, step: int, partitions: Mask, given: Int64, moment: Float64) -> None:
        world = self._of.world
        partitions = partitions & ~world.uncommitted[min(step, world.steps - 1)]
        if self._reports is not None:
            self._reports.committed(step, partitions, given, moment, self._committed)
        super()._commit(step, partitions, given, moment)

    def _interval_s(self, step: int) -> Float64:
        """Return each member's seconds between commits, rounded up to a whole number of polls."""
        reading, world = self._of, self._of.world
        every = super()._interval_s(step)
        if not reading.client.poll_records or not step:
            return every
        owned = reading.owner >= 0
        before, after = reading.waiting[step - 1], reading.waiting[step]
        read = np.where(owned, before + world.arrivals[step - 1] - after, 0.0)
        per_s = np.bincount(reading.owner[owned], read[owned], every.size) / world.step_s
        waits = np.bincount(reading.owner[owned], after[owned], every.size) > 0
        poll_s = np.where(waits, reading.client.poll_records / np.maximum(per_s, 1e-9), 0.0)
        polls = np.ceil(every / np.maximum(poll_s, 1e-9))
        return np.where(waits, polls * poll_s, every)
