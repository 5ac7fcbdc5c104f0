"""Throttled partitions, whose reading rate is limited by something outside their consumer."""

from dataclasses import dataclass

import numpy as np

from fairlead.simulation.world import Float64


@dataclass(frozen=True)
class Crawl:
    """A partition that every owner reads slowly for a while.

    Parameters
    ----------
    partition
        Index of the partition.
    per_s
        Number of records read per second; 0 for none, as with a poison pill.
    from_s, until_s
        Seconds from the start.
    """

    partition: int
    per_s: float = 0.0
    from_s: float = 0.0
    until_s: float = np.inf


def limits(crawls: tuple[Crawl, ...], at: Float64, partitions: int) -> Float64:
    """Return how many records can be read per second at most, shape (N, P); inf: no limit."""
    most: Float64 = np.full((at.size, partitions), np.inf)
    for crawl in crawls:
        most[(at >= crawl.from_s) & (at < crawl.until_s), crawl.partition] = crawl.per_s
    return most
