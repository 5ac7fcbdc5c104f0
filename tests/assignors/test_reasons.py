"""Reasons of moves agree with the final plan, although plans are computed in many steps."""

import random
import re
from collections import Counter
from typing import Final

from assignors.problem import Member, Problem
from assignors.registry import assign
from tests.assignors.moves import moves

RELIEVES: Final = re.compile(r"relieves (.*), whose load is .*% above the lower bound")
MAKES_ROOM: Final = re.compile(r"makes room on (.*) for (.*)")


def crowded(seed: int) -> tuple[Problem, dict[str, int]]:
    """Return a random group and assignor options; half of the group's members own everything.

    While the assignor computes a plan, it moves some partitions repeatedly.
    """
    rng = random.Random(seed)
    names = [f"m{number}" for number in range(rng.randint(3, 8))]
    count = rng.randint(10, 60)
    owners = [rng.choice(names[: len(names) // 2]) for _ in range(count)]
    members = {
        name: Member(["t"], owned={"t": [p for p, owner in enumerate(owners) if owner == name]})
        for name in names
    }
    lags = [int(1000 / (rng.random() * count + 1)) + 1 for _ in range(count)]
    problem = Problem.of({"t": count}, members, {"t": lags})
    return problem, {"max_count_skew": rng.randint(0, 2)} if seed % 2 else {}


def test_reasons_name_the_members_of_the_move() -> None:
    """If a move's reason is "makes room on X for t-0", the move is from X, and X gets t-0."""
    kinds: Counter[str] = Counter()
    for seed in range(300):
        problem, options = crowded(seed)
        plan = moves(problem, assign("sticky-lag-aware", problem, band=0.0, **options))
        ends = {f"{move.topic}-{move.partition}": move for move in plan}
        for move in plan:
            reason = move.reason
            if relieved := RELIEVES.fullmatch(reason):
                assert relieved[1] == move.from_member, f"seed {seed}: {move}"
            elif roomy := MAKES_ROOM.fullmatch(reason):
                assert roomy[1] == move.from_member, f"seed {seed}: {move}"
                assert ends[roomy[2]].to_member == roomy[1], f"seed {seed}: {move}"
            kinds[reason.split(" ", 1)[0]] += 1
    assert min(kinds["relieves"], kinds["makes"], kinds["evens"]) > 0
    assert kinds["is"] < kinds.total() / 100  # the reason "is passed on in an exchange"
