"""How an application processes records, and the flaws of its reports of work."""

from dataclasses import dataclass
from typing import Literal

#: How an application processes records. `records`: one after another, or batch by batch. `flush`:
#: most of the work is done after every N-th record. `collect`: after all records of a batch were
#: collected. `workers`: in other threads, which get records from the poll loop. `tasks`: in several
#: asyncio tasks.
Application = Literal["records", "flush", "collect", "workers", "tasks"]


@dataclass(frozen=True)
class ReportHabit:
    """How the consumers of a group work and report.

    Parameters
    ----------
    application
        How the application processes records.
    spread
        Coefficient of variation of the times per record.
    flush_every
        Number of records of a consumer between two flushes.
    silent
        Share of consumers that do not report.
    missing, stale, impossible
        Chances that a partition's report is missing in a sample, is the one of the previous sample,
        or has impossible values.
    lying
        Share of consumers whose times are false: they are multiplied by random factors.
    noise
        Standard deviation of the logarithm of these factors. Their mean is 1.
    seed
        Seed of all random draws.
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
