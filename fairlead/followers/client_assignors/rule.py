"""The decision of a group leader that uses one of Fairlead's assignors without plans.

Belongs here: building the assignment problem from the members' subscriptions and sticky user data.
Belongs elsewhere: the rules (`assignors`), fetching lags (`lags`), a client's own types
(`kafka_python`, `aiokafka`).
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import assign, check_options
from assignors.user_data import UserData, decode, encode
from fairlead.errors import ConfigurationError
from fairlead.followers.client_assignors.lags import FetchLags, Lags, lags_in_time
from fairlead.wire.fit import Shares

log = logging.getLogger(__name__)

Assignor = TypeVar("Assignor")

#: Rules that keep present owners if possible.
_STICKY = frozenset({"sticky", "sticky-lag-aware"})
#: Rules that use lag.
_BY_LAG = frozenset({"lag-aware", "sticky-lag-aware"})


@dataclass(frozen=True)
class JoinedMember:
    """One member of the group, as the group leader sees it."""

    member_id: str
    topics: Sequence[str]
    user_data: bytes | None = None
    instance_id: str | None = None


class DirectRule:
    """An assignor that a consumer uses without plans.

    Parameters
    ----------
    name
        The rule's name in `assignors.registry`, also used as the assignor's name in the group
        protocol. `sticky` has the name and user data of Kafka's StickyAssignor (KIP-54). So Java
        consumers that use StickyAssignor can be in the same group.
    options
        Options of the rule.
    fetch_lags, group, connection
        A function that fetches lags, the group id, and a consumer's configuration. Used only by
        assignors that use lag.

    Raises
    ------
    ConfigurationError
        An option does not exist, or an assignor that uses lag lacks `group` or `connection`.
    """

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any],
        fetch_lags: Callable[[str, Mapping[str, Any], Collection[str]], Lags],
        group: str | None,
        connection: Mapping[str, Any] | None,
    ) -> None:
        try:
            check_options(name, options)
        except InvalidProblemError as error:
            raise ConfigurationError(str(error)) from error
        self._name = name
        self._options = options
        self._owned: Mapping[str, Sequence[int]] | None = None
        self._generation: int | None = None
        self._fetch_lags: FetchLags | None = None
        if name in _BY_LAG:
            if group is None or connection is None:
                raise ConfigurationError(
                    f"The assignor {name} needs lags: pass the group and the connection"
                )
            self._fetch_lags = partial(fetch_lags, group, connection)

    def subscription(self) -> bytes:
        """Return the user data of this member's subscription."""
        if self._name not in _STICKY or self._owned is None:
            return b""
        return encode(UserData(self._owned, self._generation))

    def assign(
        self, members: Sequence[JoinedMember], partition_counts: Mapping[str, int]
    ) -> Shares:
        """Return the leader's assignment: partition numbers by member id and topic."""
        problem = Problem.of(
            partition_counts,
            {member.member_id: self._member(member) for member in members},
            lags_in_time(self._fetch_lags, partition_counts) if self._fetch_lags else None,
        )
        try:
            return assign(self._name, problem, **self._options).by_member()
        except ModuleNotFoundError as error:
            log.error(  # noqa: TRY400 - a traceback would not help
                "The assignor %s needs %s if members read different topics; fair is used "
                "instead. Install Fairlead's wheel with its extra `flow` in every consumer",
                self._name,
                error.name,
            )
            return assign("fair", problem).by_member()

    def assigned(self, owned: Mapping[str, Sequence[int]], generation: int | None) -> None:
        """Remember the new assignment, which a sticky assignor sends at the next rebalance."""
        self._owned, self._generation = owned, generation

    def _member(self, member: JoinedMember) -> Member:
        claim = UserData({})
        if self._name in _STICKY:
            try:
                claim = decode(bytes(member.user_data or b""))
            except InvalidProblemError as error:
                log.warning(
                    "Member %s: its claims to partitions are ignored: %s", member.member_id, error
                )
        return Member(
            sorted(set(member.topics)),  # other clients may repeat topics and partitions
            owned={topic: sorted(set(owned)) for topic, owned in claim.owned.items()},
            generation=claim.generation,
            instance_id=member.instance_id or None,
        )


def assignor_class(base: type[Assignor], rule: str) -> type[Assignor]:
    """Return a client's assignor class for a rule in `assignors.registry`.

    Parameters
    ----------
    base
        The client's `DirectAssignor`.
    rule
        The rule's name.
    """
    title = "".join(word.capitalize() for word in rule.split("-"))
    return type(f"{title}Assignor", (base,), {"name": rule, "__module__": base.__module__})
