"""How light the heaviest member can be at best.

Belongs here: bounds that hold for every assignment of a problem. Does not: finding an assignment.
"""

from assignors.problem import Problem


def lag_lower_bound(problem: Problem) -> int:
    """Return a lag that the heaviest member carries in every assignment.

    The heaviest partition goes to somebody as a whole; and all partitions that have a subscriber
    are shared by the members that read anything.
    """
    weights = problem.exact_weights[problem.assignable]
    if not weights.size:
        return 0
    return max(int(weights.max()), -(-int(weights.sum()) // int(problem.readers.size)))
