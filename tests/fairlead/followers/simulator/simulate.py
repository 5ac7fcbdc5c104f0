"""Run the histories of a range of seeds, and shrink those that fail.

python -m tests.fairlead.followers.simulator.simulate 1 10001
"""

import logging
import sys
from collections.abc import Sequence

from tests.fairlead.followers.simulator.history import Action, draw, run


def failure(seed: int, actions: Sequence[Action]) -> str | None:
    """Return the error of a history, or None if it succeeds."""
    try:
        run(seed, actions)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return f"{type(error).__name__}: {error}"
    return None


def shrink(seed: int, actions: Sequence[Action]) -> list[Action]:
    """Return the actions of a failing history without those it does not need to fail."""
    rest = list(actions)
    for size in (8, 4, 2, 1):
        begin = 0
        while begin < len(rest):
            fewer = rest[:begin] + rest[begin + size :]
            if failure(seed, fewer) is not None:
                rest = fewer
            else:
                begin += size
    return rest


def main(first: int, last: int) -> int:
    """Run the histories of a range of seeds; return how many fail."""
    logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(first, last):
        if (problem := failure(seed, draw(seed))) is not None:
            failed += 1
            small = shrink(seed, draw(seed))
            print(f"seed {seed}: {problem}\n  shrunk to {small}", flush=True)  # noqa: T201 - a command
    print(f"{last - first} histories, {failed} failed")  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
