"""The present members and partitions of a simulated group, as an assignment problem.

Belongs here: conversion between the world's numbers and those of a `Problem`. Belongs elsewhere:
decisions.
"""

from dataclasses import dataclass

import numpy as np

from assignors.problem import Problem
from fairlead.simulation.world import Int32, Int64, World


@dataclass(frozen=True, eq=False)
class PresentMembers:
    """The members and partitions that are present in a step.

    Parameters
    ----------
    world
        The world, with P partitions and M members.
    members, partitions
        The world's numbers of the present members and partitions, ascending, int64.
    """

    world: World
    members: Int64
    partitions: Int64

    @classmethod
    def at(cls, world: World, step: int) -> "PresentMembers":
        """Return the members and partitions that are present in a step."""
        return cls(world, np.flatnonzero(world.present[step]), np.flatnonzero(world.exists[step]))

    def problem(self, owner: Int32, weights: Int64) -> Problem:
        """Return the assignment problem of the present group.

        Parameters
        ----------
        owner, weights
            Owner and weight of each partition of the world, shape (P,). In the problem, partitions
            of absent owners have no owner.
        """
        roster, members = self.world.roster, len(self.members)
        counts = np.bincount(self.world.topic_of[self.partitions], minlength=len(roster.topics))
        reader, topic = np.nonzero(roster.subscribed[self.members])
        read = np.bincount(reader, minlength=members)
        return Problem(
            topics=roster.topics,
            partition_counts=counts.astype(np.int64),
            members=tuple(roster.members[number] for number in self.members),
            subscription_offsets=np.concatenate(([0], np.cumsum(read))).astype(np.int64),
            subscription_topics=topic.astype(np.int32),
            weights=weights[self.partitions],
            owner=self.inside(owner),
            capacities=np.ones(members),
            instance_ids=(None,) * members,
            racks=(None,) * members,
        )

    def inside(self, owner: Int32) -> Int32:
        """Convert owners from the world's member numbers to the problem's member numbers.

        The result contains only present partitions. -1: no present member owns the partition.
        """
        number = np.full(len(self.world.roster.members) + 1, -1, np.int32)
        number[self.members] = np.arange(self.members.size)
        return number[owner[self.partitions]]

    def outside(self, owner: Int32) -> Int32:
        """Convert owners from the problem's member numbers to the world's member numbers.

        The result contains all P partitions, as int32. Partitions that are not present get -1.
        """
        everywhere = np.full(self.world.partitions, -1, np.int32)
        owned = owner >= 0
        everywhere[self.partitions[owned]] = self.members[owner[owned]]
        return everywhere
