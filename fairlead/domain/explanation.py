"""Explanation of the policy of a group: which policy decides, why, and all its values.

Belongs here: facts and sentences for people. Belongs elsewhere: choosing the policy
(`fairlead.domain.policy`), printing (`fairlead.surfaces.cli`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assignors.registry import option_defaults
from fairlead.domain.approval import requirements
from fairlead.domain.policy import SHARED_OPTIONS, Discovery, Policy, ranked, specificity

DEFAULT: Final = "default"
#: Keys of a policy that `_values` leaves out.
_APART: Final = frozenset({"groups", "options", "approval"})


@dataclass(frozen=True)
class Match:
    """A policy whose pattern matches the group.

    Parameters
    ----------
    place
        Position among the `[[policies]]` of the file, from 1.
    pattern
        The policy's `groups`.
    literals
        Number of literal characters in the pattern.
    decides
        Whether this is the policy that applies to the group.
    """

    place: int
    pattern: str
    literals: int
    decides: bool


@dataclass(frozen=True)
class Value:
    """A value of the policy that decides.

    Parameters
    ----------
    key
        As in the file: `approval.max_moves`, `options.sticky-lag-aware.band`.
    value
        Value as JSON, durations in ISO 8601. None: no limit, or not set.
    source
        Where the value comes from: `[[policies]] 2` (the second policy in the file) or `default`.
        If the value of an assignor's option comes from a key of the policy, the key is added.
    """

    key: str
    value: Any
    source: str


@dataclass(frozen=True)
class Explanation:
    """The policy of a group.

    Parameters
    ----------
    group
        The consumer group.
    planned
        Whether plans are made for the group. The settings of `discovery` decide this.
    why
        A sentence: which policy decides, and why.
    matches
        All policies that match the group; the first one decides.
    values
        All values of the policy that decides.
    approval
        Conditions on which a plan is approved, as sentences.
    """

    group: str
    planned: bool
    why: str
    matches: tuple[Match, ...]
    values: tuple[Value, ...]
    approval: tuple[str, ...]


def explain(
    group: str, policies: Sequence[Policy], discovery: Discovery | None = None
) -> Explanation:
    """Explain which policy decides for a group, with its values.

    Parameters
    ----------
    group
        The consumer group; it need not exist.
    policies, discovery
        The settings. Without `discovery`, all groups are planned.

    Examples
    --------
    >>> rules = [Policy(groups="*"), Policy(groups="orders-*", max_moves=9)]
    >>> found = explain("orders-eu", rules)
    >>> found.why
    '[[policies]] 2 (orders-*) decides: 2 match, and this one has the most literal characters'
    >>> [(one.key, one.value) for one in found.values if one.source != "default"]
    [('max_moves', 9), ('options.sticky-lag-aware.max_moves', 9), ('options.sticky.max_moves', 9)]
    """
    matching = ranked(group, policies)
    policy = matching[0][1] if matching else Policy()
    source = f"[[policies]] {matching[0][0]}" if matching else DEFAULT
    return Explanation(
        group=group,
        planned=discovery is None or discovery.covers(group),
        why=_why(matching),
        matches=tuple(
            Match(place, candidate.groups, specificity(candidate), decides=rank == 0)
            for rank, (place, candidate) in enumerate(matching)
        ),
        values=(*_values(policy, source), *_option_values(policy, source)),
        approval=tuple(requirements(policy)),
    )


def _why(matching: Sequence[tuple[int, Policy]]) -> str:
    if not matching:
        return "no policy matches: the defaults apply"
    place, first = matching[0]
    decides = f"[[policies]] {place} ({first.groups}) decides"
    if len(matching) == 1:
        return f"{decides}: no other matches"
    equals = sum(specificity(policy) == specificity(first) for _, policy in matching)
    if equals > 1:
        return f"{decides}: of {equals} equally specific matches, the first applies"
    return f"{decides}: {len(matching)} match, and this one has the most literal characters"


def _values(policy: Policy, source: str) -> Iterator[Value]:
    """Yield the keys of a policy in the order in which they are documented."""
    plain = policy.model_dump(mode="json")
    for key in Policy.model_fields:
        if key in _APART:
            continue
        origin = source if key in policy.model_fields_set else DEFAULT
        if not isinstance(plain[key], dict):
            yield Value(key, plain[key], origin)
        else:
            for inner, value in plain[key].items():
                yield Value(f"{key}.{inner}", value, origin)
    for key, value in plain["approval"].items():
        is_set = key in policy.approval.model_fields_set
        yield Value(f"approval.{key}", value, source if is_set else DEFAULT)


def _option_values(policy: Policy, source: str) -> Iterator[Value]:
    """Yield the options of each assignor."""
    for name in policy.assignors:
        own, run_with = policy.options.get(name, {}), policy.assignor_options(name)
        for option, default in option_defaults(name).items():
            key = f"options.{name}.{option}"
            if option in own:
                yield Value(key, own[option], source)
            elif option in run_with and option in SHARED_OPTIONS:
                yield Value(key, run_with[option], f"{source}: {option}")
            else:
                yield Value(key, default, DEFAULT)
