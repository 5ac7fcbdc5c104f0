"""A limit on the work of an assignor's search.

Belongs here: a limit that counts work, not time, so that results are the same on every machine.
Belongs elsewhere: the search (`relief`).
"""


class Effort:
    """A budget: the number of pairs of members that a search may examine.

    Parameters
    ----------
    pairs
        Maximum number; None: no limit.

    Examples
    --------
    >>> effort = Effort(5)
    >>> [effort.take(3), effort.take(3), effort.take(1)], effort.spent
    ([True, False, False], True)
    """

    def __init__(self, pairs: int | None) -> None:
        self.pairs = pairs
        self.spent = False
        self._taken = 0

    def take(self, pairs: int) -> bool:
        """Take pairs from the budget; return False if this call or an earlier one exceeds it."""
        self._taken += pairs
        self.spent |= self.pairs is not None and self._taken > self.pairs
        return not self.spent
