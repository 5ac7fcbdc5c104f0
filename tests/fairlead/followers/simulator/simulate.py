"""Run the histories of a range of seeds, and shrink those that fail.

    python -m tests.fairlead.followers.simulator.simulate 1 10001

`called` or `led` after the seeds: only those of groups that agree by roll calls, or whose leader
decides.
"""

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fairlead.followers.simulator import history, led_history
from tests.fairlead.followers.simulator.history import Action

# clocks: how long it took, for who started it


@dataclass(frozen=True)
class Kind:
    """Histories of one kind: how they are drawn from a seed, and run."""

    draw: Callable[[int], list[Action]]
    run: Callable[[int, Sequence[Action]], object]

    def fails(self, seed: int, actions: Sequence[Action]) -> str | None:
        """Say how a history fails; None: it does not."""
        try:
            self.run(seed, actions)
        except Exception as error:  # noqa: BLE001 - whatever it is
            return f"{type(error).__name__}: {error}"
        return None

    def shrink(self, seed: int, actions: Sequence[Action]) -> list[Action]:
        """Leave out of a history that fails whatever it fails without."""
        kept = list(actions)
        for size in (8, 4, 2, 1):
            begin = 0
            while begin < len(kept):
                fewer = kept[:begin] + kept[begin + size :]
                if self.fails(seed, fewer) is not None:
                    kept = fewer
                else:
                    begin += size
        return kept


KINDS = {
    "called": Kind(history.draw, history.run),
    "led": Kind(led_history.draw, led_history.run),
}


def main(first: int, last: int, *names: str) -> int:
    """Run the histories of a range of seeds; returns how many fail."""
    logging.disable(logging.CRITICAL)
    return sum(_run(name, KINDS[name], first, last) for name in names or KINDS)


def _run(name: str, kind: Kind, first: int, last: int) -> int:
    began, failed = time.monotonic(), 0
    for seed in range(first, last):
        actions = kind.draw(seed)
        if (problem := kind.fails(seed, actions)) is not None:
            failed += 1
            print(f"{name}, seed {seed}: {problem}", flush=True)  # noqa: T201 - this is a command
            if failed <= 3:
                small = kind.shrink(seed, actions)
                print(  # noqa: T201
                    f"  shrunk to {small}\n  {kind.fails(seed, small)}", flush=True
                )
    took_s = time.monotonic() - began
    print(f"{name}: {last - first} histories in {took_s:.0f} s, {failed} failed")  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]) > 0)
