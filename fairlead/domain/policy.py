"""Policies: which groups are planned, how, and which plans are approved automatically.

Belongs here: policies in `fairlead.toml`, and choosing a group's policy. Belongs elsewhere:
carrying out decisions (`fairlead.workflows`), explaining the choice
(`fairlead.domain.explanation`).
"""

import re
from collections.abc import Iterable
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
from fairlead.common.nearest import WrongAt
from fairlead.common.words import length
from fairlead.common.wrong_values import what_is_wrong
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.identity import FourEyes

#: Wildcards of a shell pattern, including sets such as `[!]]`.
_WILDCARDS = re.compile(r"[*?]|\[!?.[^]]*\]", re.DOTALL)

_NO_RACKS: Final = 'must be "ignore", "prefer" or a price: { price_per_gb = 0.02 }'

#: Keys of a policy that are also names of assignor options. Every assignor with an option of this
#: name gets the policy's value, unless `options` sets the option for this assignor.
SHARED_OPTIONS: Final = ("max_moves",)

Status = Literal["OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS"]
#: A duration in ISO 8601 (PT6H) or seconds.
Duration = Annotated[timedelta, Field(gt=timedelta(0))]


#: `by_duration:` and a duration that Java can parse: days, hours, minutes, seconds (KIP-1106).
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
    """Conditions for automatic approval. If `automatic` is false, a person approves each plan."""

    automatic: bool = False
    max_moves: int | None = Field(default=None, ge=0, description="Maximum moves of a plan.")
    min_improvement: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Minimum share by which a plan must reduce the forecast lag.",
    )
    forbidden_statuses: tuple[Status, ...] = Field(
        default=("STOP", "DATA_LOSS"),
        description="If a partition has one of these statuses, a person must approve.",
    )
    hours: tuple[Annotated[str, AfterValidator(_checked_hours)], ...] = Field(
        default=(),
        description="Times of automatic approval in `time_zone`, such as "
        '["Mon-Fri 22:00-06:00"]. If empty, at any time.',
    )
    time_zone: Annotated[str, AfterValidator(_checked_zone)] = Field(
        default="UTC", description="An IANA time zone, such as Europe/Berlin."
    )


class RackPrice(_Rule):
    """The price of traffic between racks."""

    price_per_gb: float = Field(
        ge=0.0, description="Price of a gigabyte that is read from another rack."
    )
    least_saving_per_day: float = Field(
        default=1.0,
        ge=0.0,
        description="Minimum daily saving of a plan that only reduces traffic between racks, in "
        "the currency of `price_per_gb`.",
    )


class Policy(_Rule):
    """How to plan the groups that match a pattern.

    If the patterns of several policies match a group, the policy whose pattern has the most literal
    characters applies. If several have the same number, the first of these in the file applies. The
    other policies have no effect on the group.
    """

    groups: str = Field(default="*", description="A shell pattern for group ids, such as orders-*.")
    cohort: str | None = Field(
        default=None,
        description="Name of the cohort in which all matching groups are planned together. By "
        "default, each group is a separate cohort.",
    )
    cadence: Duration | None = Field(
        default=None,
        description="Interval at which the group is planned. By default, at every tick of the "
        "schedule.",
    )
    assignors: tuple[str, ...] = Field(
        default=("sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"),
        min_length=1,
        description="Assignors that compute candidates, all from the same snapshot.",
    )
    objective: Duration = Field(
        default=timedelta(minutes=1),
        description="Maximum forecast lag: no plan is made while all partitions are within it.",
    )
    horizon: Duration = Field(
        default=timedelta(minutes=30), description="Time span of the forecast."
    )
    target_utilisation: float = Field(
        default=0.95,
        gt=0.0,
        le=1.0,
        description="Maximum planned utilisation of a consumer: arrival rate over capacity.",
    )
    move_downtime: Annotated[timedelta, Field(ge=timedelta(0))] = Field(
        default=timedelta(seconds=10),
        description="Assumed time for which a moved partition is not read.",
    )
    racks: Literal["ignore", "prefer"] | RackPrice = Field(
        default="prefer",
        description="How traffic between racks counts, if consumers set client.rack. With prefer, "
        "the plan with the least traffic is chosen among equally good plans. A plan that only "
        "reduces traffic must save at least a tenth of what the group reads or, if a price is set, "
        "`least_saving_per_day`. With ignore, traffic does not count.",
    )
    max_moves: int | None = Field(
        default=None,
        ge=0,
        description="Maximum number of owned partitions that a plan moves. Candidates that move "
        "more are not chosen. `sticky` and `sticky-lag-aware` keep to the limit.",
    )
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Options by assignor name. If they also set `max_moves`, the smaller value "
        "applies.",
    )
    choose: Literal["first", "best"] = Field(
        default="first",
        description="Which candidate becomes the plan. first: the first usable one, in the order "
        "of `assignors`; the others are only for comparison. best: the candidate with the lowest "
        "forecast lag, then the least traffic between racks (with `racks`), then the lowest "
        "utilisation, then the fewest moves.",
    )
    cooldown: Duration | None = Field(
        default=None,
        description="How long a group gets no new plan after a plan was published or withdrawn. A "
        "plan for partitions without an owner does not wait.",
    )
    auto_offset_reset: Annotated[str, AfterValidator(_checked_reset)] = Field(
        default="earliest",
        description="The consumers' auto.offset.reset: earliest, latest, none or by_duration:PT1H. "
        "The lag of a partition without a commit is 0 with latest, and otherwise the whole log.",
    )
    expires_after: Duration | None = Field(
        default=None,
        description="Time after which a waiting plan can no longer be approved or published. By "
        "default, waiting plans do not expire.",
    )
    four_eyes: FourEyes | None = Field(
        default=None,
        description="Whether a person other than the proposer must approve. database: with another "
        "database login. proxy: likewise, or two people approve on web pages, and the proxy names "
        "them.",
    )
    shadow: bool = Field(
        default=False,
        description="Whether plans are only stored, and cannot be approved or published.",
    )
    approval: Approval = Approval()

    @field_validator("assignors")
    @classmethod
    def _known_assignors(cls, assignors: tuple[str, ...]) -> tuple[str, ...]:
        from assignors.registry import option_defaults  # noqa: PLC0415 - imports arrays, which reading settings does not need

        for name in assignors:
            option_defaults(name)  # raises an error for an unknown assignor
        return assignors

    @field_validator("four_eyes", mode="before")
    @classmethod
    def _whose_eyes(cls, value: Any) -> Any:
        """Convert false to None. Refuse true, which does not say whose names to compare."""
        if value is True or value in ("true", "True"):
            raise ValueError(
                'must be "database" (another database login approves) or "proxy" (another database '
                "login, or two people on web pages, approve)"
            )
        return None if value is False else value

    @field_validator("racks", mode="before")
    @classmethod
    def _word_or_price(cls, value: Any) -> Any:
        """Parse a price here: pydantic's error would also suggest "ignore" and "prefer"."""
        if isinstance(value, RackPrice) or value in ("ignore", "prefer"):
            return value
        if not isinstance(value, dict):
            raise ValueError(_NO_RACKS)  # noqa: TRY004 - pydantic reports only ValueErrors
        try:
            return RackPrice(**value)
        except ValidationError as error:
            first = error.errors()[0]
            raise WrongAt(what_is_wrong(first, RackPrice), str(first["loc"][0])) from None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        """Refuse contradictory settings, and options that an assignor does not accept."""
        from assignors.registry import ASSIGNORS  # noqa: PLC0415 - as above

        for name, options in self.options.items():
            if name not in ASSIGNORS:
                raise WrongAt(f"there is no assignor {name!r}", "options", name)
            for option, value in options.items():
                _check_option(name, option, value)
        if self.four_eyes and self.approval.automatic:
            raise WrongAt(
                "four_eyes needs a person, but approval.automatic approves without one",
                "four_eyes",
            )
        return self

    def rules(self) -> Rules:
        """Return the rules of this policy for the analysis.

        Examples
        --------
        >>> Policy(objective="PT2M").rules().objective_s
        120.0
        """
        return Rules(
            objective_s=self.objective.total_seconds(),
            horizon_s=self.horizon.total_seconds(),
            target_utilisation=self.target_utilisation,
            move_downtime_s=self.move_downtime.total_seconds(),
            max_moves=self.max_moves,
            cooldown_s=self.cooldown.total_seconds() if self.cooldown else None,
            racks=self.racks != "ignore",
            **(self.racks.model_dump() if isinstance(self.racks, RackPrice) else {}),
        )

    @property
    def doubt(self) -> str:
        """A warning if this policy is probably a mistake, else "".

        Examples
        --------
        >>> Policy(objective="PT30M", horizon="PT10M").doubt
        'the objective, 30 min, is longer than the horizon, 10 min: lag is forecast too late'
        """
        if self.objective <= self.horizon:
            return ""
        return (
            f"the objective, {length(self.objective)}, is longer than the horizon, "
            f"{length(self.horizon)}: lag is forecast too late"
        )

    def assignor_options(self, name: str) -> dict[str, Any]:
        """Return an assignor's options: the policy's `SHARED_OPTIONS`, overridden by `options`.

        Examples
        --------
        >>> policy = Policy(max_moves=20, options={"sticky-lag-aware": {"band": 0.2}})
        >>> policy.assignor_options("sticky-lag-aware"), policy.assignor_options("fair")
        ({'max_moves': 20, 'band': 0.2}, {})
        """
        from assignors.registry import option_defaults  # noqa: PLC0415 - as above

        known = option_defaults(name)
        shared = {key: getattr(self, key) for key in SHARED_OPTIONS if key in known}
        set_options = {key: value for key, value in shared.items() if value is not None}
        return set_options | self.options.get(name, {})


def _check_option(assignor: str, option: str, value: Any) -> None:
    """Raise an error if the assignor does not accept the option or its value."""
    from assignors.problem import InvalidProblemError, Problem  # noqa: PLC0415 - as above
    from assignors.registry import assign  # noqa: PLC0415 - as above

    try:
        assign(assignor, Problem.of({}, {}), **{option: value})
    except InvalidProblemError as error:
        message = str(error).removeprefix(f"options.{option}: ")
        raise WrongAt(message, "options", assignor, option) from None


class Discovery(_Rule):
    """Selects the consumer groups that are planned."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def covers(self, group: str) -> bool:
        """Return whether an include pattern matches the group, and no exclude pattern does."""
        return any(fnmatchcase(group, pattern) for pattern in self.include) and not any(
            fnmatchcase(group, pattern) for pattern in self.exclude
        )


def policy_for(group: str, policies: Iterable[Policy]) -> Policy:
    """Return the policy that decides for a group; the defaults if none matches.

    Examples
    --------
    >>> rules = [Policy(groups="*"), Policy(groups="orders-*", choose="first")]
    >>> policy_for("orders-eu", rules).groups
    'orders-*'
    """
    return next((policy for _, policy in ranked(group, policies)), Policy())


def ranked(group: str, policies: Iterable[Policy]) -> list[tuple[int, Policy]]:
    """Return the policies that match a group, each with its position in the file, from 1.

    The first policy in the result decides.

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
    """Return the number of literal characters in a policy's pattern."""
    return len(_WILDCARDS.sub("", policy.groups))
