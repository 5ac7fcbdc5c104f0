"""The assignors by name, for policies, the command line and consumers that follow plans.

Belongs here: names, and the check for unknown options. Belongs elsewhere: what an option means (see
the assignor).
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from assignors.assignment import Assignment
from assignors.fair import fair
from assignors.lag_aware import lag_aware
from assignors.problem import InvalidProblemError, Problem
from assignors.ranges import range_
from assignors.round_robin import round_robin
from assignors.sticky import sticky
from assignors.sticky_lag_aware import sticky_lag_aware

# A pure function of the problem; options are keyword-only.
Assignor = Callable[..., Assignment]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        "range": range_,
        "roundrobin": round_robin,
        "fair": fair,
        "sticky": sticky,
        "lag-aware": lag_aware,
        "sticky-lag-aware": sticky_lag_aware,
    }
)

#: Assignors that ignore lag: their result changes only with members, subscriptions or partitions.
LAG_BLIND = frozenset({"range", "roundrobin", "fair", "sticky"})


def assign(name: str, problem: Problem, /, **options: Any) -> Assignment:
    """Run an assignor by name.

    Raises
    ------
    InvalidProblemError
        The assignor or an option does not exist, or an option's value is invalid.

    Examples
    --------
    >>> assign("range", Problem.of({"t": 1}, {"a": ["t"]})).by_member()
    {'a': {'t': [0]}}
    """
    check_options(name, options)
    return ASSIGNORS[name](problem, **options)


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise an error if the assignor is unknown or does not have one of the options.

    Raises
    ------
    InvalidProblemError
        The message lists the known assignors or options.
    """
    known = option_defaults(name)
    for option in options:
        if option not in known:
            has = ", ".join(known) or "none"
            raise InvalidProblemError(f"options.{option}: {name} has no such option; it has: {has}")


def option_defaults(name: str) -> dict[str, Any]:
    """Return an assignor's options and their defaults.

    Raises
    ------
    InvalidProblemError
        The assignor does not exist.

    Examples
    --------
    >>> option_defaults("lag-aware"), option_defaults("sticky-lag-aware")["band"]
    ({}, 0.05)
    """
    if name not in ASSIGNORS:
        raise InvalidProblemError(f"assignor: {name!r} is not one of {', '.join(ASSIGNORS)}")
    return dict(_defaults(ASSIGNORS[name]))


@cache
def _defaults(assignor: Assignor) -> dict[str, Any]:
    _, *known = inspect.signature(assignor).parameters.values()
    return {option.name: option.default for option in known}
