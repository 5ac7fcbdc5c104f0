"""How an application processes records, and the flaws of its reports of work."""

from dataclasses import dataclass
from typing import Literal

Application = Literal["records", "flush", "collect", "workers", "tasks"]
"""`records`: one record at a time, or batches that are iterated over. `flush`: most of the work
happens after every N-th record. `collect`: after all records of a batch. `workers`: in other
threads, which the poll loop passes the records to. `tasks`: several tasks take records."""


@dataclass(frozen=True)
class ReportHabit:
    """How the consumers of a group work and report.

    Parameters
    ----------
    application
        How the application processes records.
    spread
        Coefficient of variation of the times of single records.
    flush_every
        Records of a consumer from one flush to the next.
    silent
        Share of consumers that do not report.
    missing, stale, impossible
        Chance that a partition's report is missing in a sample, is that of the sample before, or
        is impossible.
    noise
        Standard deviation of the logarithm of the random factor, on average 1, by which `lying`
        consumers multiply the times of each partition at each sample.
    lying
        Share of consumers whose times are false.
    seed
        Of all of this.
    """

    application: Application = "records"
    spread: float = 0.3
    flush_every: int = 500
    silent: float = 0.0
    missing: float = 0.0
    stale: float = 0.0
    impossible: float = 0.0
    noise: float = 0.0
    lying: float = 0.0
    seed: int = 0
