"""The states of a plan. The trigger `plan_event_apply` enforces the transitions."""

from typing import Final, Literal, get_args

State = Literal[
    "proposed",
    "approved",
    "sending",
    "published",
    "superseded",
    "rejected",
    "expired",
    "stale",
    "refused",
    "withdrawn",
]
STATES: Final[tuple[str, ...]] = get_args(State)
