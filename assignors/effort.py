"""How much an assignor may look at before it is content with what it has.

Belongs here: the count, which is of work and not of time, so that equal problems have equal answers
on every machine. Does not: what is looked at (`relief`).
"""


class Effort:
    """A budget of pairs of members to look at, shared by all that it is handed to.

    Parameters
    ----------
    pairs
        How many; None: as many as it takes.

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
        """Whether so many more may be looked at; once they may not, nothing more is."""
        self._taken += pairs
        self.spent |= self.pairs is not None and self._taken > self.pairs
        return not self.spent
