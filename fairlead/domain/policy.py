"""Policies: which groups are planned, by which assignor, and what may be published unasked.

Belongs here: what `fairlead.toml` says of groups, and which rule holds for one. Does not: carrying
a decision out (`fairlead.workflows`), nor saying which rule decides
(`fairlead.domain.explanation`).
"""

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from fairlead.common.hours import parse_hours, time_zone
from fairlead.common.nearest import WrongAt, no_such
from fairlead.common.words import length
from fairlead.common.wrong_values import what_is_wrong
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.identity import FourEyes

#: What stands for any characters in a shell pattern; [!]] is a set too.
_WILDCARDS = re.compile(r"[*?]|\[!?.[^]]*\]", re.DOTALL)

_NO_RACKS: Final = 'must be "ignore", "prefer" or a price: { price_per_gb = 0.02 }'

#: Keys of a policy that are options of each assignor that has one of this name.
SHARED_OPTIONS: Final = ("max_moves",)

Status = Literal["OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS"]
#: ISO 8601 (PT6H) or seconds.
Duration = Annotated[timedelta, Field(gt=timedelta(0))]


#: `by_duration:` and what Java's Duration parses: days, hours, minutes, seconds (KIP-1106).
_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=[\dT])(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d{1,9})?S)?)?", re.IGNORECASE
)


def _checked_reset(text: str) -> str:
    if text in {"earliest", "latest", "none"} or _BY_DURATION.fullmatch(text):
        return text
    raise ValueError('Input should be "earliest", "latest", "none" or "by_duration:PT1H"')


def _checked_hours(text: str) -> str:
    parse_hours(text)
    return text


def _checked_zone(name: str) -> str:
    time_zone(name)
    return name


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Approval(_Rule):
    """What a plan must satisfy to be approved without a person.

    With `automatic` false, every plan waits for a person.
    """

    automatic: bool = False
    max_moves: int | None = Field(default=None, ge=0, description="Owned partitions moved at most.")
    min_improvement: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="How late the group is forecast falls by this share at least.",
    )
    forbidden_statuses: tuple[Status, ...] = Field(
        default=("STOP", "DATA_LOSS"), description="No partition of the group has one of these."
    )
    hours: tuple[Annotated[str, AfterValidator(_checked_hours)], ...] = Field(
        default=(),
        description='When: ["Mon-Fri 22:00-06:00"], by the clock of `time_zone`; none: always.',
    )
    time_zone: Annotated[str, AfterValidator(_checked_zone)] = Field(
        default="UTC", description="An IANA time zone, such as Europe/Berlin."
    )


class RackPrice(_Rule):
    """What traffic between racks costs."""

    price_per_gb: float = Field(ge=0.0, description="What a gigabyte between racks costs.")
    least_saving_per_day: float = Field(
        default=1.0,
        ge=0.0,
        description="A plan for racks alone saves as much a day, at least, in the same money.",
    )


class Policy(_Rule):
    """How the groups that match a pattern are planned.

    The most specific pattern that matches decides: the one with the most literal characters, the
    earlier one where these are equal. It decides alone: nothing is taken from the others.
    """

    groups: str = Field(default="*", description="A shell pattern over group ids: orders-*")
    cohort: str | None = Field(
        default=None,
        description="Plan all matching groups in one cohort of this name; default: each its own.",
    )
    cadence: Duration | None = Field(
        default=None,
        description="Planned once in each stretch of this length; default: at every tick of the "
        "schedule.",
    )
    assignors: tuple[str, ...] = Field(
        default=("sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"),
        min_length=1,
        description="Candidates, each computed on the same snapshot.",
    )
    objective: Duration = Field(
        default=timedelta(minutes=1),
        description="How far behind is too far: while no partition is forecast further behind, the "
        "answer is 'no change'.",
    )
    horizon: Duration = Field(
        default=timedelta(minutes=30), description="How far ahead lateness is forecast."
    )
    headroom: float = Field(
        default=0.95,
        gt=0.0,
        le=1.0,
        description="How full a member may be planned to be: what arrives over what it can do.",
    )
    pause: Annotated[timedelta, Field(ge=timedelta(0))] = Field(
        default=timedelta(seconds=10),
        description="For how long a partition stands still that is moved: the price of a move.",
    )
    racks: Literal["ignore", "prefer"] | RackPrice = Field(
        default="prefer",
        description="Of traffic between racks, where consumers name theirs. prefer: among plans "
        "that meet the objective the one with the least, and a plan for it alone where it spares "
        "a tenth of what the group reads; with a price: where it saves enough; ignore: it does "
        "not count.",
    )
    max_moves: int | None = Field(
        default=None,
        ge=0,
        description="A plan moves so many owned partitions at most: told to the assignors that "
        "can heed it; the candidates of others that move more are passed over.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Assignor name to its options; of two `max_moves` the smaller counts.",
    )
    choose: Literal["first", "best"] = Field(
        default="first",
        description="first: the first of `assignors`; the others are for comparison. best: the one "
        "that is least late, then least full, then moves least, then the order of `assignors`.",
    )
    cooldown: Duration | None = Field(
        default=None,
        description="Time without another plan after one was published or withdrawn, "
        "unless a partition lacks an owner.",
    )
    auto_offset_reset: Annotated[str, AfterValidator(_checked_reset)] = Field(
        default="earliest",
        description="The consumers' auto.offset.reset: earliest, latest, none or by_duration:PT1H. "
        "The lag of a partition without a commit: nothing with latest, else its whole log.",
    )
    expires_after: Duration | None = Field(
        default=None,
        description="A plan that waits for longer can neither be approved nor published;"
        " default: it can.",
    )
    four_eyes: FourEyes | None = Field(
        default=None,
        description="Whoever approves is not who proposed: as the database knows them, or, on "
        "pages, as the proxy in front of them tells two people.",
    )
    observe: bool = Field(
        default=False,
        description="Plans are stored, and none is approved or published; what would have come of "
        "them is replayed.",
    )
    approval: Approval = Approval()

    @field_validator("assignors")
    @classmethod
    def _known_assignors(cls, assignors: tuple[str, ...]) -> tuple[str, ...]:
        from assignors.registry import option_defaults  # noqa: PLC0415 - arrays, for who has policies

        for name in assignors:
            option_defaults(name)  # raises where there is no such assignor
        return assignors

    @field_validator("four_eyes", mode="before")
    @classmethod
    def _whose_eyes(cls, given: Any) -> Any:
        """Take false for no; true does not say who sees that there are two."""
        if given is True or given in ("true", "True"):
            raise ValueError(
                'say who tells two people apart: "database", by their logins, or "proxy", by whom '
                "the proxy in front of the pages names"
            )
        return None if given is False else given

    @field_validator("racks", mode="before")
    @classmethod
    def _word_or_price(cls, given: Any) -> Any:
        """Say of a price what is wrong with it, and not that it is no word either."""
        if isinstance(given, RackPrice) or given in ("ignore", "prefer"):
            return given
        if not isinstance(given, dict):
            raise ValueError(_NO_RACKS)  # noqa: TRY004 - what pydantic takes
        try:
            return RackPrice(**given)
        except ValidationError as error:
            first = error.errors()[0]
            key, what = str(first["loc"][0]), what_is_wrong(first)
            if first["type"] == "extra_forbidden":
                what = no_such("key", key, RackPrice.model_fields)
            raise WrongAt(what, key) from None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """Refuse what cannot be done before any group is planned by it."""
        from assignors.registry import ASSIGNORS  # noqa: PLC0415 - as above

        for name, options in self.options.items():
            if name not in ASSIGNORS:
                raise WrongAt(f"there is no assignor {name!r}", "options", name)
            for option, value in options.items():
                _check_option(name, option, value)
        if self.four_eyes and self.approval.automatic:
            raise WrongAt(
                "the policy cannot be the second pair of eyes: four_eyes asks for a person, "
                "automatic for none",
                "four_eyes",
            )
        return self

    def rules(self) -> Rules:
        """Return what this policy asks of the analysis.

        Examples
        --------
        >>> Policy(objective="PT2M").rules().objective_s
        120.0
        """
        return Rules(
            objective_s=self.objective.total_seconds(),
            horizon_s=self.horizon.total_seconds(),
            headroom=self.headroom,
            pause_s=self.pause.total_seconds(),
            max_moves=self.max_moves,
            cooldown_s=self.cooldown.total_seconds() if self.cooldown else None,
            racks=self.racks != "ignore",
            **(self.racks.model_dump() if isinstance(self.racks, RackPrice) else {}),
        )

    @property
    def doubt(self) -> str:
        """What of this policy can hardly be meant; "": nothing.

        Examples
        --------
        >>> Policy(objective="PT30M", horizon="PT10M").doubt
        'the objective, 30 min, is longer than the horizon, 10 min: lateness is foreseen too late'
        """
        if self.objective <= self.horizon:
            return ""
        return (
            f"the objective, {length(self.objective.total_seconds())}, is longer than the horizon, "
            f"{length(self.horizon.total_seconds())}: lateness is foreseen too late"
        )

    def assignor_options(self, name: str) -> dict[str, Any]:
        """Return the options an assignor is run with: its own over those of the policy.

        Examples
        --------
        >>> policy = Policy(max_moves=20, options={"sticky-lag-aware": {"band": 0.2}})
        >>> policy.assignor_options("sticky-lag-aware"), policy.assignor_options("fair")
        ({'max_moves': 20, 'band': 0.2}, {})
        """
        from assignors.registry import option_defaults  # noqa: PLC0415 - as above

        known = option_defaults(name)
        shared = {key: getattr(self, key) for key in SHARED_OPTIONS if key in known}
        given = {key: value for key, value in shared.items() if value is not None}
        return given | self.options.get(name, {})


def _check_option(assignor: str, option: str, value: Any) -> None:
    """Ask the assignor itself, which knows its options and the values that they can have."""
    from assignors.problem import InvalidProblemError, Problem  # noqa: PLC0415 - as above
    from assignors.registry import assign  # noqa: PLC0415 - as above

    try:
        assign(assignor, Problem.of({}, {}), **{option: value})
    except InvalidProblemError as error:
        message = str(error).removeprefix(f"options.{option}: ")
        raise WrongAt(message, "options", assignor, option) from None


class Discovery(_Rule):
    """Which consumer groups of the cluster are planned at all."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def covers(self, group: str) -> bool:
        """Whether some include pattern and no exclude pattern matches."""
        return any(fnmatchcase(group, pattern) for pattern in self.include) and not any(
            fnmatchcase(group, pattern) for pattern in self.exclude
        )


def policy_for(group: str, policies: Iterable[Policy]) -> Policy:
    """Return the policy that decides for a group; the defaults where none matches.

    Examples
    --------
    >>> rules = [Policy(groups="*"), Policy(groups="orders-*", choose="first")]
    >>> policy_for("orders-eu", rules).groups
    'orders-*'
    """
    matching = [policy for policy in policies if fnmatchcase(group, policy.groups)]
    return max(matching, key=specificity, default=Policy())


def ranked(group: str, policies: Sequence[Policy]) -> list[tuple[int, Policy]]:
    """Return the policies that match a group, the one that decides first.

    Each comes with its place in the file, counted from 1.

    Examples
    --------
    >>> rules = [Policy(groups="*"), Policy(groups="orders-*"), Policy(groups="audit")]
    >>> [(place, policy.groups) for place, policy in ranked("orders-eu", rules)]
    [(2, 'orders-*'), (1, '*')]
    """
    matching = [
        (place, policy)
        for place, policy in enumerate(policies, 1)
        if fnmatchcase(group, policy.groups)
    ]
    return sorted(matching, key=lambda found: -specificity(found[1]))


def specificity(policy: Policy) -> int:
    """Return how many literal characters a policy's pattern has."""
    return len(_WILDCARDS.sub("", policy.groups))
